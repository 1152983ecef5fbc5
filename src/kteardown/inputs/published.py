"""Published figures, printed next to ours with their source.

A file of ``reference/`` has the numbers of a posting under ``[result]``, as they were posted. ``[[figures]]``
assigns them to our metrics.
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


class PublishedSource(BaseModel):
    """Where the figures were posted. Other keys are allowed and not used."""

    model_config = ConfigDict(frozen=True, extra="allow")

    title: str
    posted: str
    machine: str = ""
    method: str = ""


class Figure(BaseModel):
    """One posted comparison: keys of ``[result]``, with dots for tables, and the metric they belong to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: str
    param: str
    """The parameter of our workload that the posting varies."""
    at: str
    """The key of the values of this parameter."""
    base: str
    changed: str
    unit: str
    """The unit as posted; nothing is converted."""
    variant: str = ""
    """Our variant that corresponds to the posted change; empty: any variant."""
    statistic: str = "median"
    """The statistic of our metric: ``median``, or a percentile such as ``p99``."""
    speedup: bool = False
    """Posted as base / changed, a column for each step of the series; otherwise as a change in percent."""
    means: bool = False
    """Posted as means with standard deviations; a positive change means that changed is better."""
    runs: int = Field(default=0, ge=0)
    """The number of runs behind the posted means, which a verdict needs. 0: not known."""
    label: str = ""
    """What distinguishes this figure from others of the same metric, such as the machine."""


class Posted(BaseModel):
    """One value as posted, with its standard deviation if it was posted."""

    value: float
    sd: float | None = None


class PostedRow(BaseModel):
    """The posted values at one value of the parameter."""

    at: ParamValue
    base: Posted
    changed: Posted

    @property
    def change(self) -> float | None:
        """Changed / base - 1; None if base is zero."""
        return self.changed.value / self.base.value - 1 if self.base.value else None


class Reference(BaseModel):
    """A file of ``reference/``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    source: PublishedSource
    result: dict[str, Any]
    figures: tuple[Figure, ...] = ()

    def rows(self, figure: Figure) -> list[PostedRow]:
        """Return the values of ``figure``, one row for each value of its parameter.

        Raises KeyError, TypeError or ValueError if the keys of ``figure`` do not fit ``result``.
        """
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
    """Load the shipped ``reference/NAME.toml``; None for None.

    Raises InputError that names the file and the key.
    """
    return None if name is None else read_reference(data_dir("reference") / f"{name}.toml")


def read_reference(path: Path) -> Reference:
    """Load and check a file of published figures. Raises InputError that names the file and the key."""
    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        have = ", ".join(sorted(file.stem for file in path.parent.glob("*.toml")))
        raise InputError(f"{path}: there is no such reference", hint=f"choose one of: {have}.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            f"{path}: cannot be read: {error}", hint="correct the file at this position."
        ) from error
    try:
        reference = Reference.model_validate({"name": path.stem, **fields})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        message = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
        raise InputError(f"{path}: {key}: {message}", hint="correct this key.") from error
    for number, figure in enumerate(reference.figures):
        try:
            reference.rows(figure)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{path}: figures.{number}: {figure.base} over {figure.at}: {error}",
                hint="name lists of the same length under [result] with the keys at, base and changed.",
            ) from error
    return reference


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


def _posted(value: Any) -> Posted:
    """Convert a number, or a pair of mean and standard deviation."""
    if isinstance(value, list):
        mean, sd = value
        return Posted(value=mean, sd=sd)
    return Posted(value=value)
