"""Compare two results, for example those of a reviewer and an author, or of two machines.

Reads result.json of any version with schema 1; unknown fields are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kteardown.errors import InputError
from kteardown.model.record import ParamValue
from kteardown.model.result import Verdict
from kteardown.rundir.environment import differences

Interval = tuple[float, float]
_KERNEL_FACTS = ("release", "source", "series", "arch", "compiler", "config_hash", "image_hash")
_HASH_DIGITS = 12


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Summary(_Read):
    median: float
    percentile: float | None = None

    @property
    def compared(self) -> float:
        return self.median if self.percentile is None else self.percentile


class _Comparison(_Read):
    workload: str
    variant: str
    metric: str
    unit: str
    statistic: str = "median"
    point: dict[str, ParamValue]
    base: _Summary
    ratio: float | None
    ci: Interval | None
    verdict: str

    @property
    def key(self) -> tuple[object, ...]:
        return (self.workload, self.variant, self.metric, self.statistic, *sorted(self.point.items()))


class Side(_Read):
    """The parts of one result.json that are compared."""

    schema_: int = Field(alias="schema")
    experiment: str
    clock: str
    machine: dict[str, Any]
    kernels: dict[str, dict[str, Any]]
    comparisons: tuple[_Comparison, ...]


class _Both(_Read):
    """The results in the JSON of a run on both clocks, by clock."""

    results: dict[str, Side]


class SideValue(BaseModel):
    """The result of one side for one comparison."""

    ratio: float | None
    ci: Interval | None
    verdict: str

    @property
    def tone(self) -> Verdict | None:
        """Return the verdict if this version knows it, else None."""
        return next((known for known in get_args(Verdict) if known == self.verdict), None)


class ComparedRow(BaseModel):
    """One comparison that both sides have.

    ``agree``: the two intervals overlap; None if a side has no interval. ``base_ratio``: the value of base in
    b / in a, None if the clocks differ or a value is not positive.
    """

    workload: str
    variant: str
    metric: str
    unit: str
    statistic: str
    point: dict[str, ParamValue]
    a: SideValue
    b: SideValue
    agree: bool | None
    same_verdict: bool
    base_ratio: float | None


class Difference(BaseModel):
    """Two compared results; each sentence gives the value of a before that of b."""

    a: str
    b: str
    environment: tuple[str, ...]
    kernels: tuple[str, ...]
    rows: tuple[ComparedRow, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


def read(text: str | bytes, name: str) -> Side:
    """Parse a result.json. Raises InputError with the name of the file and what is wrong."""
    try:
        side = Side.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{name} is not a result.json: {location + ': ' if location else ''}{first['msg']}",
            hint="give a run, or the file that `kteardown run --json FILE` writes.",
        ) from error
    if side.schema_ != 1:
        raise InputError(
            f"{name} has schema {side.schema_}; this kteardown reads schema 1",
            hint="use the kteardown that wrote it, or a newer one.",
        )
    return side


def read_all(text: str | bytes, name: str) -> list[Side]:
    """Parse a result.json, or the JSON of a run on both clocks, which has two. Raises InputError."""
    try:
        both = _Both.model_validate_json(text)
    except ValidationError:
        return [read(text, name)]
    return list(both.results.values())


def compare_results(a: Side, b: Side, names: tuple[str, str], guests: tuple[str, ...] = ()) -> Difference:
    """Compare ``a`` with ``b``.

    ``guests`` are sentences about differences of their guests, if those are known.
    """
    ours = {row.key: row for row in a.comparisons}
    theirs = {row.key: row for row in b.comparisons}
    arch = a.kernels.get("base", {}).get("arch")
    return Difference(
        a=names[0],
        b=names[1],
        environment=(*_conditions(a, b), *differences(a.machine, b.machine, arch=arch), *guests),
        kernels=tuple(_kernels(a.kernels, b.kernels)),
        rows=tuple(_row(row, theirs[key], a.clock == b.clock) for key, row in ours.items() if key in theirs),
        only_a=tuple(_label(row) for key, row in ours.items() if key not in theirs),
        only_b=tuple(_label(row) for key, row in theirs.items() if key not in ours),
    )


def _conditions(a: Side, b: Side) -> Iterator[str]:
    if a.experiment != b.experiment:
        yield f"experiment: {a.experiment} / {b.experiment}"
    if a.clock != b.clock:
        yield f"clock: {a.clock} / {b.clock}, which measure different things"


def _kernels(a: Mapping[str, Mapping[str, Any]], b: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name in dict.fromkeys((*a, *b)):
        if name not in a or name not in b:
            yield f"{name}: only in {'a' if name in a else 'b'}"
            continue
        for fact in _KERNEL_FACTS:
            ours, theirs = a[name].get(fact), b[name].get(fact)
            if ours is not None and theirs is not None and ours != theirs:
                yield f"{name}: {fact.replace('_', ' ')}: {_short(fact, ours)} / {_short(fact, theirs)}"


def _row(a: _Comparison, b: _Comparison, same_clock: bool) -> ComparedRow:
    base_a, base_b = a.base.compared, b.base.compared
    return ComparedRow(
        workload=a.workload,
        variant=a.variant,
        metric=a.metric,
        unit=a.unit,
        statistic=a.statistic,
        point=a.point,
        a=SideValue(ratio=a.ratio, ci=a.ci, verdict=a.verdict),
        b=SideValue(ratio=b.ratio, ci=b.ci, verdict=b.verdict),
        agree=None if a.ci is None or b.ci is None else a.ci[0] <= b.ci[1] and b.ci[0] <= a.ci[1],
        same_verdict=a.verdict == b.verdict,
        base_ratio=base_b / base_a if same_clock and base_a > 0 and base_b > 0 else None,
    )


def _label(row: _Comparison) -> str:
    statistic = "" if row.statistic == "median" else f" {row.statistic}"
    point = "".join(f" {name}={value}" for name, value in row.point.items())
    return f"{row.workload} {row.variant} {row.metric}{statistic}{point}"


def _short(fact: str, value: object) -> str:
    return str(value)[:_HASH_DIGITS] if fact.endswith("_hash") else str(value) or "none"
