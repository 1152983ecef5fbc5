"""What a public posting measured, printed beside our own figures with its source named.

A file of ``reference/`` keeps the posting's numbers under ``[result]`` as they were posted, and says
in ``[[figures]]`` which of them stand beside which metric of ours.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kteardown.errors import InputError
from kteardown.model.record import ParamValue
from kteardown.paths import data_dir


class Source(BaseModel):
    """Where the figures were posted. What else a file says about that stays in the file."""

    model_config = ConfigDict(frozen=True, extra="allow")

    title: str
    posted: str
    machine: str = ""
    method: str = ""


class Figure(BaseModel):
    """One posted comparison: which keys of ``[result]`` (dots go into tables) beside which metric."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: str
    param: str
    """Our parameter over which the posting's values run."""
    at: str
    """Key of the parameter's values."""
    base: str
    changed: str
    unit: str
    """As posted: nothing is converted, two machines are not one."""
    variant: str = ""
    """The variant of ours that the posting's change is; empty: any."""
    statistic: str = "median"
    """Of our metric: ``median``, or a percentile as ``p99``."""
    speedup: bool = False
    """Posted as base / changed, a column for each step of the series; else as a change in percent."""
    means: bool = False
    """Posted as means with standard deviations, and a change that is positive where changed is better."""
    runs: int = Field(default=0, ge=0)
    """Of how many runs the posted means are; then they can be judged. 0: not known."""
    label: str = ""
    """What tells this figure from another one of the same metric, such as the machine."""


class Posted(BaseModel):
    """One value as posted, with its standard deviation where there was one."""

    value: float
    sd: float | None = None


class PostedRow(BaseModel):
    """What the posting says at one value of the parameter."""

    at: ParamValue
    base: Posted
    changed: Posted

    @property
    def change(self) -> float | None:
        """Changed / base - 1; None where base is zero."""
        return self.changed.value / self.base.value - 1 if self.base.value else None


class Reference(BaseModel):
    """A whole file of ``reference/``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    source: Source
    result: dict[str, Any]
    figures: tuple[Figure, ...] = ()

    def rows(self, figure: Figure) -> list[PostedRow]:
        """The figure's values, one row for each value of its parameter."""
        at, base, changed = (_list(self._value(key)) for key in (figure.at, figure.base, figure.changed))
        return [
            PostedRow(at=x, base=_posted(b), changed=_posted(c))
            for x, b, c in zip(at, base, changed, strict=True)
        ]

    def _value(self, key: str) -> Any:
        place: Any = self.result
        for part in key.split("."):
            place = place[part]
        return place


def load_reference(name: str | None) -> Reference | None:
    """The shipped ``reference/NAME.toml``; None for None. Raises InputError that names file and key."""
    return None if name is None else read_reference(data_dir("reference") / f"{name}.toml")


def read_reference(path: Path) -> Reference:
    """A reference file, its figures checked. Raises InputError that names the file and the key."""
    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        have = ", ".join(sorted(file.stem for file in path.parent.glob("*.toml")))
        raise InputError(f"{path}: there is no such reference", hint=f"there are: {have}.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}", hint="mend the file at that place.") from error
    try:
        reference = Reference.model_validate({"name": path.stem, **fields})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path}: {key}: {first['msg']}", hint="mend that key.") from error
    for number, figure in enumerate(reference.figures):
        try:
            reference.rows(figure)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{path}: figures.{number}: {figure.base} over {figure.at}: {error}",
                hint="at, base and changed must name lists of the same length under [result].",
            ) from error
    return reference


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


def _posted(value: Any) -> Posted:
    """A number, or a pair of mean and standard deviation."""
    if isinstance(value, list):
        mean, sd = value
        return Posted(value=mean, sd=sd)
    return Posted(value=value)
