"""The models of ``result.json``, which the analysis produces and reports read.

Field names are fixed by schema 1; fields may be added.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field

from kteardown.model.clock import Clock
from kteardown.model.profile_result import Profile
from kteardown.model.record import NOT_VARIANTS, Outcome, ParamValue, ProblemKind
from kteardown.model.timing import Timing
from kteardown.model.workload import Better, StrictModel

Verdict = Literal["broken", "better", "worse", "same", "inconclusive", "mixed"]
"""``mixed`` is a verdict of metrics only: changes at its points are opposite, or their mean hides them."""
FaultKind = Literal[Outcome, ProblemKind, "invariant", "failed trial"]
FaultStatus = Literal["broken", "suspected", "base too", "base"]
LawModel = Literal["constant", "linear", "nlogn", "quadratic", "power", "unknown"]


class _Result(StrictModel):
    model_config = ConfigDict(allow_inf_nan=False)


class _Valued(_Result):
    """Something with values of a metric: ``unit`` is that of the workload's file, ``value_unit`` theirs.

    On the instruction clock a metric in ns has values in instructions. ``value_unit`` is empty in results
    that did not record it.
    """

    unit: str
    value_unit: str = ""


class Summary(_Result):
    """The summary of one kernel at one point: ``median`` is the median over boots of the medians inside them.

    ``mean`` and ``sd`` are over all samples. ``n`` counts samples, ``boots`` boots. ``percentile`` is the
    median over boots of the percentile inside them if a percentile is compared, else None.
    """

    median: float
    mean: float
    sd: float
    n: int
    boots: int
    percentile: float | None = None

    @property
    def compared(self) -> float:
        """Return the compared value: the percentile if one is compared, else the median."""
        return self.median if self.percentile is None else self.percentile


class Comparison(_Valued):
    """One metric at one point, changed compared with base.

    ``statistic`` is computed inside each boot: ``median``, or a percentile such as ``p99`` or ``p99.9``.
    ``ratio`` is changed / base of it; ``ci`` is its interval at ``confidence``; ``mde`` is the smallest
    detectable change. ``exact`` (instruction clock): every sample of each side is the same number, or both
    sides are equal seed by seed.

    The twins give intervals of base compared with a kernel that does the same: ``null_ci`` of the A/A twin,
    ``layout_ci`` of the layout twin; None without a twin. A p-value is None if nothing can be tested.
    ``p`` is the two-sided p-value of no change; ``p_holm`` is the same after the correction for the number of
    tests, which the verdict uses: for a headline metric that of the metrics and their points, else Holm's
    over the other metrics. ``p_rank`` is that of a rank test over boots (wall clock); ``p_same`` is that of a
    true change of the margin or more (two one-sided tests). ``outliers`` counts the boots of both sides that
    ``Result.outliers`` names.
    """

    workload: str
    variant: str
    metric: str
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
    """The reason of the verdict, in a few words."""
    statistic: str = "median"
    layout_ci: tuple[float, float] | None = None
    p_holm: float | None = None
    p_rank: float | None = None
    p_same: float | None = None
    outliers: int = 0
    same_within: float | None = None
    """The margin of the verdict "same"; None in results that did not record it."""


class MetricVerdict(_Valued):
    """The verdict of one headline metric of one variant, over all its points together.

    ``ratio`` is the geometric mean over boots of the boots' own weighted geometric means over points of
    changed / base; ``ci`` is its interval at ``confidence``. A metric with one point has the values of that
    point's comparison. ``points`` are the points that count, of the ``planned`` ones; ``boots`` the pairs of
    boots that have all of them. ``mde``, the twins and the p-values are as in a comparison; ``p_corrected``
    is the p-value after the correction over headline metrics and variants, and ``p_mixed`` that of no
    opposite changes among the points. ``spread`` is the standard deviation over boots of the log ratio, and
    ``point_spread`` the median of those of the single points; None without a ratio.
    """

    workload: str
    variant: str
    metric: str
    better: Better
    statistic: str = "median"
    points: int
    planned: int
    boots: int
    ratio: float | None
    ci: tuple[float, float] | None
    confidence: float
    mde: float | None
    verdict: Verdict
    reason: str = ""
    exact: bool = False
    null_ci: tuple[float, float] | None = None
    layout_ci: tuple[float, float] | None = None
    p: float | None = None
    p_corrected: float | None = None
    p_same: float | None = None
    p_mixed: float | None = None
    spread: float | None = None
    point_spread: float | None = None
    same_within: float | None = None


class Distribution(_Valued):
    """All values of a metric of one kernel at one point, merged over its boots. It has no verdict.

    ``percentiles`` are by their percent, such as ``"99.9"``; ``error`` is their largest relative error.
    """

    workload: str
    kernel: str
    metric: str
    point: dict[str, ParamValue]
    n: int
    percentiles: dict[str, float]
    error: float


class Prediction(_Result):
    """A growth law evaluated at ``at``, in the metric's unit, with its prediction interval.

    ``refused`` is the reason why there is no value, if the data does not support one; otherwise it is empty.
    """

    at: float
    value: float | None = None
    low: float | None = None
    high: float | None = None
    refused: str = ""


class Law(_Valued):
    """How a metric of one kernel grows with one parameter; the other parameters are fixed at ``point``.

    ``per_unit`` is the cost of one more, in the metric's unit (the slope of the straight line). ``exponent``
    is that of the power law of the part that grows. None if it cannot be estimated.

    ``ratio`` is the slope of a variant divided by that of base, for headline metrics: the mean over boots of
    both, with Fieller's interval. ``verdict`` is None if the slopes are not compared.
    """

    workload: str
    kernel: str
    metric: str
    param: str
    model: LawModel
    per_unit: float | None
    per_unit_ci: tuple[float, float] | None
    intercept: float | None
    exponent: float | None
    exponent_ci: tuple[float, float] | None = None
    r2: float | None
    points: int
    point: dict[str, ParamValue] = Field(default={})
    predictions: tuple[Prediction, ...] = ()
    ratio: float | None = None
    ratio_ci: tuple[float, float] | None = None
    ratio_p: float | None = None
    verdict: Verdict | None = None
    reason: str = ""


class PatchSet(_Result):
    """The patches of a series that a kernel has: ``patches``, counted from 1, of ``total``.

    ``subjects`` has the subject of each patch in ``patches``. ``for_ablation``: the kernel was built to find
    the effect of each patch, and not requested as a variant.
    """

    series: str
    patches: tuple[int, ...]
    total: int
    subjects: tuple[str, ...] = ()
    for_ablation: bool = False

    @property
    def whole(self) -> bool:
        """Return whether it has every patch of the series."""
        return self.patches == tuple(range(1, self.total + 1))


class KernelFacts(_Result):
    """One kernel of a result, as it was built and with the release that it reported when it ran."""

    release: str
    source: str
    series: str = ""
    arch: str
    compiler: str
    config_hash: str
    image_hash: str
    patch_set: PatchSet | None = None
    """None for base and for a second source."""
    sandboxed: bool = True
    """False if it was built without the sandbox (``--unsafe-build``)."""
    unchanged: bool = False
    """Whether no object differs from that of base, although the kernel has patches."""

    @property
    def for_ablation(self) -> bool:
        """Return whether it was built only for an ablation."""
        return self.patch_set is not None and self.patch_set.for_ablation


def not_built(kernels: Mapping[str, KernelFacts]) -> tuple[str, ...]:
    """Return the requested variants with patches of which nothing is in the kernel that was built."""
    return tuple(
        name
        for name, facts in kernels.items()
        if facts.unchanged and facts.patch_set is not None and not facts.for_ablation
    )


class Unavailable(_Result):
    """A kernel of an ablation that could not be built, and why: its patches do not apply, or do not build."""

    kernel: str
    patch_set: PatchSet
    reason: str


class Part(_Result):
    """The effect of one patch on one metric, as a change and as a share of the effect of the whole series.

    ``ratio`` is with the patch / without it, ``ci`` its interval. ``share`` is the logarithm of ``ratio``
    divided by that of the whole: 0.6 is sixty percent of the change, and a negative share has the opposite
    direction. None if it cannot be estimated; ``reason`` then says why. ``exact``: all values that it is
    computed from are exact.
    """

    ratio: float | None = None
    ci: tuple[float, float] | None = None
    share: float | None = None
    share_ci: tuple[float, float] | None = None
    exact: bool = False
    reason: str = ""


class PatchParts(_Result):
    """One patch, counted from 1: ``step`` adds it to those before it, ``leave_out`` removes it alone."""

    patch: int
    subject: str
    step: Part
    leave_out: Part


class Ablation(_Valued):
    """The share of each patch in the effect of a series on a metric at a point.

    ``ratio``, ``ci`` and ``exact`` are those of the whole compared with base; the shares of the steps add up
    to 1.
    """

    workload: str
    variant: str
    series: str
    metric: str
    better: Better
    point: dict[str, ParamValue]
    ratio: float | None
    ci: tuple[float, float] | None
    confidence: float
    exact: bool = False
    patches: tuple[PatchParts, ...]
    unavailable: tuple[Unavailable, ...] = ()


class Outlier(_Result):
    """A boot whose value is far from those of the other boots of its kernel. It is not removed.

    ``value`` is that of the boot (of ``statistic``), ``median`` that over all boots. ``ranges`` is the
    distance from the nearer quartile in interquartile ranges of the logarithms, None if the quartiles are
    equal.
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
    """The status of a run with a stopping rule at its last look.

    ``rule`` is as given: ``verdict`` or ``ci=2%``. ``looks`` are the numbers of blocks after which it may
    stop; the last one is the maximum. ``stopped_at`` is the look of this result. ``confidence`` is the level
    of tests and intervals there, ``alpha`` the error that all looks so far have spent. ``spent``: the time
    budget is used up. ``done``: nothing is left to measure; ``reason`` says why in a few words.
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
    """Trials that cannot be used, counted by kernel, workload and reason."""

    kernel: str
    workload: str
    point: dict[str, ParamValue]
    status: Literal["void", "failed", "missing", "disturbed"]
    detail: str
    count: int


def boot_failed(outcome: Outcome) -> str:
    """Return the ``detail`` of trials that are missing because their boot ended like this."""
    return f"boot: {outcome}"


class FaultPoint(_Result):
    """A point of a workload at which a kernel failed."""

    workload: str
    point: dict[str, ParamValue]


class Fault(_Result):
    """A way in which a kernel failed: how boots ended, an invariant, or a problem that its log reports.

    ``status``: ``broken``, the kernel fails where base does not; ``suspected``, too few boots show it;
    ``base too``, base fails in the same way; ``base``, a fault of base itself. ``message`` is the line of the
    console or of the invariant. ``points`` are those of the trials that ran; empty if it was before the
    first trial. ``boots`` are the numbers of the boots with the fault, ``of`` how many boots of the kernel
    ended; ``base_boots`` and ``base_of`` count those of base and its A/A twin. ``p`` is the one-sided p-value
    of Fisher's exact test of these counts, None where no test is needed. ``excerpt`` is the report of the
    kernel, or the end of the console, of the first of these boots.
    """

    kernel: str
    kind: FaultKind
    status: FaultStatus
    message: str
    points: tuple[FaultPoint, ...]
    boots: tuple[int, ...]
    of: int
    base_boots: int
    base_of: int
    p: float | None = None
    excerpt: tuple[str, ...] = ()


class Uncompared(_Result):
    """A point of the plan at which nothing of a variant was compared with base, and why."""

    variant: str
    workload: str
    point: dict[str, ParamValue]
    reason: str


class MetricFacts(_Result):
    """A metric of the comparisons in words.

    ``unit`` is what the clock of the run gives: instructions, not the ns of the workload's file. The values
    are in it as they are.
    """

    workload: str
    metric: str
    name: str
    help: str
    unit: str
    better: Better
    headline: bool


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
    """None if the whole design is measured."""
    ablations: tuple[Ablation, ...] = ()
    outliers: tuple[Outlier, ...] = ()
    profiles: tuple[Profile, ...] = ()
    ended_boots: int | None = None
    """How many boots had ended, those of the profile included; None in results that did not say."""
    boots_left: int = 0
    """How many boots of a design without a stopping rule had not ended: its run can be resumed."""
    distributions: tuple[Distribution, ...] = ()
    metric_verdicts: tuple[MetricVerdict, ...] = ()
    """In the order of the comparisons; empty in results that did not have them."""
    faults: tuple[Fault, ...] = ()
    uncompared: tuple[Uncompared, ...] = ()
    timing: Timing | None = None
    """How its time was made; None in results that did not record it."""
    sentence: str = ""
    """The result in one sentence; empty in results that did not record it, where a report makes it."""
    metrics: tuple[MetricFacts, ...] = ()
    """Every metric that is compared, in words; as ``sentence`` in results that did not record it."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, alias_generator=lambda n: n.rstrip("_")
    )

    @property
    def asked_for(self) -> tuple[Comparison, ...]:
        """Return the comparisons of requested variants, without the parts of an ablation."""
        return tuple(c for c in self.comparisons if self.is_asked_for(c.variant))

    def broken(self, variant: str) -> tuple[Fault, ...]:
        """Return the faults by which this variant is broken; empty if it is not."""
        return tuple(f for f in self.faults if f.kernel == variant and f.status == "broken")

    @property
    def requested(self) -> tuple[str, ...]:
        """Return the requested variants, in the order of the report, also those that were never compared."""
        return tuple(name for name in self.kernels if name not in NOT_VARIANTS and self.is_asked_for(name))

    @property
    def not_built(self) -> tuple[str, ...]:
        """Return the requested variants of which nothing is in their kernel: they have no verdict."""
        return not_built(self.kernels)

    @property
    def unfinished(self) -> bool:
        """Return whether boots of the plan are left, or the stopping rule has not decided yet."""
        return self.boots_left > 0 or (self.stopping is not None and not self.stopping.done)

    def is_asked_for(self, kernel: str) -> bool:
        """Return whether the kernel was requested, and not built only for an ablation."""
        return kernel not in self.kernels or not self.kernels[kernel].for_ablation
