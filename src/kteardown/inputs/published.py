"""Postings: what was claimed in public, printed next to our figures, and tested by ``kteardown
replicate``.

A file of ``postings/`` has tables of numbers under ``[result]``, as they were posted;
``[[figures]]`` assigns them to our metrics. Every row of them is a claim, and so is each of
``[[claims]]``. ``[run]`` is the measurement that tests the claims with the posted patch itself.
"""

import math
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kteardown.errors import InputError
from kteardown.inputs.toml_files import read_toml, validated
from kteardown.model.clock import Clock
from kteardown.model.record_fields import Float, Int, ParamValue
from kteardown.model.workload import FiniteModel, Name
from kteardown.paths import data_dir


class PublishedSource(BaseModel):
    """Where the figures were posted. Other keys are allowed and not used."""

    model_config = ConfigDict(frozen=True, extra="allow")

    title: str
    posted: str
    message_id: str = ""
    """Of the posting, as in the address ``https://lore.kernel.org/all/MESSAGE-ID/``."""
    machine: str = ""
    method: str = ""


class Figure(FiniteModel):
    """One posted comparison: keys of ``[result]``, with dots for tables, and the metric they belong
    to."""

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
    """Posted as base / changed, a column for each step of the series; otherwise as a change in
    percent."""
    means: bool = False
    """Posted as means with standard deviations; a positive change means that changed is better."""
    runs: int = Field(default=0, ge=0)
    """The number of runs behind the posted means, which a verdict needs. 0: not known."""
    label: str = ""
    """What distinguishes this figure from others of the same metric, such as the machine."""
    step: float = Field(default=0, ge=0)
    """The resolution of the posted values, as in a claim."""
    cpus: bool = False
    """The parameter is also the number of CPUs that are used at the same time."""
    cannot: str = ""
    """Why these rows cannot be replicated here; empty if they can."""


class Posted(BaseModel):
    """One value as posted, with its standard deviation if it was posted."""

    value: Float
    sd: Float | None = None


class PostedRow(BaseModel):
    """The posted values at one value of the parameter."""

    at: Int | str
    base: Posted
    changed: Posted

    @property
    def change(self) -> float | None:
        """Changed / base - 1; None if base is zero, or so small that no number is large enough."""
        change = self.changed.value / self.base.value - 1 if self.base.value else math.inf
        return change if math.isfinite(change) else None


class Claim(FiniteModel):
    """One claim: a value before and after the posted change, at a point of one of our workloads."""

    what: str
    before: Float = Field(gt=0)
    after: Float = Field(gt=0)
    unit: str
    step: float = Field(default=0, ge=0)
    """The resolution of both values, such as 1 of times that were logged in whole ms; 0: not
    known."""
    metric: str = ""
    """The metric of ours that is the same; empty if no workload measures it."""
    point: dict[Name, ParamValue] = Field(default={})
    """The values of parameters at which it was posted; ``cpus`` is the number of CPUs that it is
    about."""
    per: str = ""
    """The claim is the cost of one more of this parameter, which is compared with the slope of
    ours."""
    difference: bool = False
    """With ``per``: after - before is compared, since before is only a part of what our metric
    counts."""
    machine: str = ""
    """The machine, if it is not that of the posting."""
    cannot: str = ""
    """Why it cannot be replicated here; empty if it can."""

    @property
    def ratio(self) -> float:
        return self.after / self.before

    @property
    def least(self) -> tuple[float, float]:
        """Return the values before and after whose change is the least that the resolution
        allows."""
        half = (
            math.copysign(self.step / 2, self.before - self.after)
            if self.before != self.after
            else 0
        )
        return self.before - half, self.after + half


class Run(FiniteModel):
    """How a posting is replicated: what is run with the posted patch."""

    patch: str = ""
    """The message id of the patch, or of the cover letter of the series; empty if it was never
    posted."""
    source: str = ""
    """The kernel to which it applies."""
    patches: int = Field(default=0, ge=0)
    """Only the first so many patches of the series; 0: all."""
    workload: Name
    clock: Clock = "instructions"
    params: dict[Name, tuple[ParamValue, ...]] = Field(default={})
    differs: str = ""
    """What differs from what was posted, such as a smaller size."""


class Posting(FiniteModel):
    name: str
    source: PublishedSource
    result: dict[str, Any] = Field(default={})
    figures: tuple[Figure, ...] = ()
    claims: tuple[Claim, ...] = ()
    run: Run | None = None
    cannot: str = ""
    """Why nothing of it can be replicated here; empty if something can."""

    @model_validator(mode="after")
    def _has_rows(self) -> Self:
        for number, figure in enumerate(self.figures):
            try:
                self.rows(figure)
            except (KeyError, TypeError, ValueError) as error:
                reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
                raise ValueError(
                    f"figures.{number}: {figure.base} over {figure.at}: {reason}; name lists of "
                    "the same length under [result] with the keys at, base and changed"
                ) from error
        return self

    @property
    def all_claims(self) -> tuple[Claim, ...]:
        """Return the rows of the figures as claims, then the others."""
        rows = [(figure, row) for figure in self.figures for row in self.rows(figure)]
        return (*(_claim_of(figure, row) for figure, row in rows), *self.claims)

    def rows(self, figure: Figure) -> list[PostedRow]:
        """Return the values of ``figure``, one row for each value of its parameter.

        Raises KeyError, TypeError or ValueError if the keys of ``figure`` do not fit ``result``, or
        if a value is not a number.
        """
        keys = (figure.at, figure.base, figure.changed)
        values: list[Any] = [reduce(getitem, key.split("."), self.result) for key in keys]
        at, base, changed = (value if isinstance(value, list) else [value] for value in values)
        return [
            PostedRow(at=x, base=_posted(b), changed=_posted(c))
            for x, b, c in zip(at, base, changed, strict=True)
        ]


def posting_names() -> list[str]:
    return sorted(file.stem for file in data_dir("postings").glob("*.toml"))


def load_posting(name: str | None) -> Posting | None:
    """Load the shipped ``postings/NAME.toml``; None for None. Raises InputError with the file and
    the key."""
    return None if name is None else read_posting(data_dir("postings") / f"{name}.toml")


def read_posting(path: Path) -> Posting:
    """Load and check a posting. Raises InputError that names the file and the key."""
    if not path.exists():
        have = sorted(file.stem for file in path.parent.glob("*.toml"))
        raise InputError.unknown(f"{path}: there is no such posting", path.stem, have)
    return validated(
        Posting,
        {"name": path.stem, **read_toml(path)},
        path,
        "correct these keys; CONTRIBUTING.md describes the format of a posting.",
    )


def _posted(value: Any) -> Posted:
    """Convert a number, or a pair of mean and standard deviation."""
    mean, sd = value if isinstance(value, list) else (value, None)
    return Posted(value=mean, sd=sd)


def _claim_of(figure: Figure, row: PostedRow) -> Claim:
    """Return a row of a figure as a claim. The parameters of a figure are those of our
    workloads."""
    return Claim(
        what=f"{figure.metric} at {row.at:,} {figure.param}"
        if isinstance(row.at, int)
        else figure.metric,
        before=row.base.value,
        after=row.changed.value,
        unit=figure.unit,
        step=figure.step,
        metric=figure.metric,
        point={figure.param: row.at, **({"cpus": row.at} if figure.cpus else {})},
        machine=figure.label,
        cannot=figure.cannot,
    )
