"""What statistics hand to reports: the models behind ``result.json``.

Field names are fixed by schema 1; more may be added.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from kteardown.records.schema import Outcome, ParamValue
from kteardown.spec.model import Better, Clock

Verdict = Literal["better", "worse", "same", "inconclusive"]
LawModel = Literal["constant", "linear", "nlogn", "quadratic", "power"]


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Summary(_Result):
    """Of one kernel at one point: the median over boots of the medians inside them.

    ``mean`` and ``sd`` are over all samples. ``n`` counts samples, ``boots`` boots.
    """

    median: float
    mean: float
    sd: float
    n: int
    boots: int


class Comparison(_Result):
    """One metric at one parameter point, changed against base.

    ``ratio`` is changed / base of the medians; ``ci`` its interval at ``confidence``;
    ``mde`` the smallest relative difference that this many boots could have detected;
    ``exact``: every sample of each side is the same number, or seed by seed both sides are
    (instruction clock). ``null_ci`` is the interval of the A/A twin against base, None without
    a twin. ``p`` is the chance of a difference like this without any, two-sided, before Holm's
    correction over the report, which the verdict applies; None where nothing can be tested.
    """

    workload: str
    variant: str
    metric: str
    unit: str
    better: Better
    point: dict[str, ParamValue]
    base: Summary
    changed: Summary
    ratio: float | None
    ci: tuple[float, float] | None
    confidence: float
    mde: float | None
    verdict: Verdict
    exact: bool = False
    null_ci: tuple[float, float] | None = None
    p: float | None = None
    reason: str = ""
    """Why the verdict is what it is, in a few words."""


class Law(_Result):
    """How a metric of one kernel grows with one parameter, the others held at ``point``.

    ``per_unit``: cost of one more, in the metric's unit (the slope of the straight line);
    ``exponent``: of the power law of the part that grows. None where it cannot be told.
    """

    workload: str
    kernel: str
    metric: str
    unit: str
    param: str
    model: LawModel
    per_unit: float | None
    per_unit_ci: tuple[float, float] | None
    intercept: float | None
    exponent: float | None
    exponent_ci: tuple[float, float] | None = None
    r2: float | None
    points: int
    point: dict[str, ParamValue] = {}


class KernelFacts(_Result):
    """One kernel of a result, as it was built and as it called itself when it ran."""

    release: str
    source: str
    series: str = ""
    arch: str
    compiler: str
    config_hash: str
    image_hash: str


class VoidTrials(_Result):
    """Trials that cannot be used, counted by kernel, workload and what was wrong."""

    kernel: str
    workload: str
    point: dict[str, ParamValue]
    status: Literal["void", "failed", "missing"]
    detail: str
    count: int


class Result(_Result):
    """A whole ``result.json``."""

    schema_: int = 1
    experiment: str
    question: str
    clock: Clock
    command: str
    machine: dict[str, Any]
    kernels: dict[str, KernelFacts]
    comparisons: tuple[Comparison, ...]
    laws: tuple[Law, ...]
    boots: dict[Outcome, int]
    voids: tuple[VoidTrials, ...] = ()
    notes: tuple[str, ...] = ()

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, alias_generator=lambda n: n.rstrip("_")
    )
