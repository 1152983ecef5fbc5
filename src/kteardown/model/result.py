"""What statistics hand to reports: the models behind ``result.json``.

Field names are fixed by schema 1; more may be added.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from kteardown.model.experiment import Clock
from kteardown.model.profile_result import Profile
from kteardown.model.record import Outcome, ParamValue
from kteardown.model.workload import Better

Verdict = Literal["better", "worse", "same", "inconclusive"]
LawModel = Literal["constant", "linear", "nlogn", "quadratic", "power"]


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Summary(_Result):
    """Of one kernel at one point: the median over boots of the medians inside them.

    ``mean`` and ``sd`` are over all samples. ``n`` counts samples, ``boots`` boots. ``percentile``: the
    median over boots of the percentile inside them, where one is compared; else None.
    """

    median: float
    mean: float
    sd: float
    n: int
    boots: int
    percentile: float | None = None

    @property
    def compared(self) -> float:
        """What the ratio is of: the percentile where one is compared, else the median."""
        return self.median if self.percentile is None else self.percentile


class Comparison(_Result):
    """One metric at one parameter point, changed against base.

    ``statistic`` is what is taken inside each boot: ``median``, or a percentile as ``p99`` or ``p99.9``.
    ``ratio`` is changed / base of it; ``ci`` its interval at ``confidence``; ``mde`` the smallest relative
    difference that this many boots could have detected. ``exact``: every sample of each side is the
    same number, or seed by seed both sides are (instruction clock).

    The nulls, each the interval of base against a kernel that does the same: ``null_ci`` of the A/A twin,
    ``layout_ci`` of the layout twin; None without one. The chances, each before Holm's correction and
    None where nothing can be tested: ``p`` of a difference like this without any, two-sided; ``p_holm``
    the same after the correction over the report, which the verdict uses; ``p_rank`` the same by a rank
    test over boots (wall clock); ``p_same`` of being this close with a true change of the margin or
    more (two one-sided tests). ``outliers`` counts boots, of both sides, that ``Result.outliers`` names.
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
    statistic: str = "median"
    layout_ci: tuple[float, float] | None = None
    p_holm: float | None = None
    p_rank: float | None = None
    p_same: float | None = None
    outliers: int = 0
    same_within: float | None = None
    """The margin of the verdict "same"; None in results that did not say."""


class Distribution(_Result):
    """All values of a metric of one kernel at one point, merged over its boots. Shown, never judged.

    ``percentiles`` by their percent, as ``"99.9"``; each is off by at most the share ``error`` of itself.
    """

    workload: str
    kernel: str
    metric: str
    unit: str
    point: dict[str, ParamValue]
    n: int
    percentiles: dict[str, float]
    error: float


class Prediction(_Result):
    """A law carried on to ``at``, in the metric's unit, with its prediction interval.

    ``refused`` says why there is no figure, where the data does not support one; it is empty else.
    """

    at: float
    value: float | None = None
    low: float | None = None
    high: float | None = None
    refused: str = ""


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
    predictions: tuple[Prediction, ...] = ()


class PatchSet(_Result):
    """Which patches of a series a kernel has: ``patches``, counted from 1, of ``total``.

    ``subjects`` has the subject of each patch in ``patches``. ``for_ablation``: the kernel was built to
    tell what the patches carry, not asked for as a variant.
    """

    series: str
    patches: tuple[int, ...]
    total: int
    subjects: tuple[str, ...] = ()
    for_ablation: bool = False

    @property
    def whole(self) -> bool:
        """Every patch of the series."""
        return self.patches == tuple(range(1, self.total + 1))


class KernelFacts(_Result):
    """One kernel of a result, as it was built and as it called itself when it ran."""

    release: str
    source: str
    series: str = ""
    arch: str
    compiler: str
    config_hash: str
    image_hash: str
    patch_set: PatchSet | None = None
    """None for base and for a second source."""


class Unavailable(_Result):
    """A kernel of an ablation that there is not, and why: its patches do not apply, or do not build."""

    kernel: str
    patch_set: PatchSet
    reason: str


class Part(_Result):
    """What one patch does to one metric, as a change and as a share of what the whole series does.

    ``ratio`` is with the patch / without it, ``ci`` its interval. ``share`` is the logarithm of ``ratio``
    over that of the whole: 0.6 is sixty percent of the change, a negative one works against it. None
    where it cannot be told; ``reason`` then says why. ``exact``: all figures that went in are.
    """

    ratio: float | None = None
    ci: tuple[float, float] | None = None
    share: float | None = None
    share_ci: tuple[float, float] | None = None
    exact: bool = False
    reason: str = ""


class PatchParts(_Result):
    """One patch, counted from 1: ``step`` adds it to those before it, ``leave_out`` takes it alone away."""

    patch: int
    subject: str
    step: Part
    leave_out: Part


class Ablation(_Result):
    """How much of what a series does to a metric at a point each of its patches carries.

    ``ratio``, ``ci`` and ``exact`` are those of the whole against base; the shares of the steps add up to 1.
    """

    workload: str
    variant: str
    series: str
    metric: str
    unit: str
    better: Better
    point: dict[str, ParamValue]
    ratio: float | None
    ci: tuple[float, float] | None
    confidence: float
    exact: bool = False
    patches: tuple[PatchParts, ...]
    unavailable: tuple[Unavailable, ...] = ()


class Outlier(_Result):
    """A boot whose figure lies far from those of the other boots of its kernel. It is kept.

    ``value`` is the boot's (of ``statistic``), ``median`` that over all boots; ``ranges`` how many
    interquartile ranges of the logarithms lie between it and the nearer quartile, None where the
    quartiles are one.
    """

    kernel: str
    workload: str
    metric: str
    statistic: str
    point: dict[str, ParamValue]
    block: int
    value: float
    median: float
    ranges: float | None


class Stopping(_Result):
    """How a run that stops when sure stood at its last look.

    ``rule`` is as given: ``verdict`` or ``ci=2%``. ``looks`` are the numbers of blocks after which it may
    stop, the last one the most; ``stopped_at`` is the look of this result. ``confidence`` is the level
    of tests and intervals there, ``alpha`` the error spent by all looks until then. ``spent``: the budget of
    time is used up. ``done``: nothing is left to measure; ``reason`` says why in a few words.
    """

    rule: str
    looks: tuple[int, ...]
    stopped_at: int
    confidence: float
    alpha: float
    spent: bool = False
    done: bool
    reason: str


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
    stopping: Stopping | None = None
    """None where the whole design is measured."""
    ablations: tuple[Ablation, ...] = ()
    outliers: tuple[Outlier, ...] = ()
    profiles: tuple[Profile, ...] = ()
    ended_boots: int | None = None
    """How many boots had ended, those of the profile included; None in results that did not say."""
    distributions: tuple[Distribution, ...] = ()

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, alias_generator=lambda n: n.rstrip("_")
    )

    @property
    def asked_for(self) -> tuple[Comparison, ...]:
        """The comparisons of the variants that were asked for, without the parts of an ablation."""
        return tuple(c for c in self.comparisons if self.is_asked_for(c.variant))

    def is_asked_for(self, kernel: str) -> bool:
        """Not built for an ablation alone."""
        facts = self.kernels.get(kernel)
        return facts is None or facts.patch_set is None or not facts.patch_set.for_ablation
