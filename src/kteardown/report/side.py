"""The parts of a result.json that are compared with those of another one.

Reads result.json of any version with schema 1; unknown fields are ignored.
"""

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kteardown.errors import InputError
from kteardown.model.record import ParamValue
from kteardown.model.result import Result
from kteardown.model.workload import Better
from kteardown.report.metrics import name_of, with_statistic

Interval = tuple[float, float]


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Summary(_Read):
    median: float
    percentile: float | None = None

    @property
    def compared(self) -> float:
        return self.median if self.percentile is None else self.percentile


class SideMetric(_Read):
    """The verdict of a headline metric over all its points."""

    workload: str
    variant: str
    metric: str
    statistic: str = "median"
    better: Better
    ratio: float | None
    ci: Interval | None
    verdict: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what it is the verdict of, without the variant."""
        return self.workload, self.metric, self.statistic


class SideComparison(SideMetric):
    """A comparison of one side: of one metric at one point."""

    unit: str
    point: dict[str, ParamValue]
    base: _Summary
    changed: _Summary

    def key_with(self, variant: str) -> tuple[object, ...]:
        """Return what it is a comparison of, with its variant called ``variant``."""
        return (*self.key, variant, *sorted(self.point.items()))


class SideFault(_Read):
    """A fault of a kernel."""

    kernel: str
    status: str


class _SideFacts(_Read):
    """The name of a metric."""

    workload: str
    metric: str
    name: str


class Side(_Read):
    """The parts of one result.json that are compared."""

    schema_: int = Field(alias="schema")
    experiment: str
    clock: str
    machine: dict[str, Any]
    kernels: dict[str, dict[str, Any]]
    comparisons: tuple[SideComparison, ...]
    metric_verdicts: tuple[SideMetric, ...] = ()
    faults: tuple[SideFault, ...] = ()
    metrics: tuple[_SideFacts, ...] = ()
    sentence: str = ""

    def name(self, of: SideMetric) -> str:
        """Return the recorded name of a metric; its key in words, in results without names."""
        recorded = (f.name for f in self.metrics if (f.workload, f.metric) == (of.workload, of.metric))
        return with_statistic(next(recorded, "") or name_of(of.metric, None), of.statistic)

    @property
    def variants(self) -> tuple[str, ...]:
        """Return the variants that were compared."""
        return tuple(dict.fromkeys(row.variant for row in self.comparisons))

    def broken(self, variant: str) -> bool:
        """Return whether a variant is broken."""
        return any(fault.kernel == variant and fault.status == "broken" for fault in self.faults)


_Parsed = TypeVar("_Parsed", Side, Result)


class _Both(_Read):
    """The results in the JSON of a run on both clocks, by clock."""

    results: dict[str, Side]


def read(text: str | bytes, name: str) -> Side:
    """Parse a result.json. Raises InputError with the name of the file and what is wrong."""
    return parse(Side, text, "give a run, or the file that `kteardown run --json FILE` writes.", name)


def parse(kind: type[_Parsed], text: str | bytes, hint: str, name: str = "") -> _Parsed:
    """Parse a result.json as ``kind``. Raises InputError with what is wrong, and with ``hint``."""
    try:
        found = kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        reason = f"not a result.json: {key + ': ' if key else ''}{first['msg']}"
        raise InputError(f"{name} is {reason}" if name else reason, hint=hint) from error
    if found.schema_ != 1:
        raise InputError(
            f"{name or 'result.json'} has schema {found.schema_}; this kteardown reads schema 1",
            hint="use the kteardown that wrote it, or a newer one.",
        )
    return found


def read_all(text: str | bytes, name: str) -> list[Side]:
    """Parse a result.json, or the JSON of a run on both clocks, which has two. Raises InputError."""
    try:
        both = _Both.model_validate_json(text)
    except ValidationError:
        return [read(text, name)]
    return list(both.results.values())
