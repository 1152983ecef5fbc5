"""The models of ``result.json``. Field names are fixed by schema 1; fields may be added.

After them, what charts need besides: every valid sample by boot, and the sampled stacks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from pydantic import Field

from kteardown.model.clock import Clock, value_unit
from kteardown.model.record import NOT_VARIANTS, Outcome, ParamValue, Placed, ProblemKind
from kteardown.model.workload import Better, Document, FiniteModel, StrictModel

_DIGITS = 10
"""Significant digits of values computed with logarithms and roots, whose last digits depend on the host."""


def tidy(value: float | None) -> float | None:
    """Return ``value`` with ten significant digits; None is kept."""
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def tidy_pair(pair: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return both ends of an interval with ten significant digits; None is kept."""
    return None if pair is None else (float(f"{pair[0]:.{_DIGITS}g}"), float(f"{pair[1]:.{_DIGITS}g}"))


Outside = Literal["agrees", "counted", "unresolved", "contradicts"]
"""What is seen from outside of a saving that a kernel or a script reports itself.

The call that contains it ``agrees``, or the instructions of the changed functions do (``counted``); neither
can show it (``unresolved``); or they do not show it though they would (``contradicts``): it is not better.
"""
Made = Literal["instruction clock", "kvm", "nested kvm", "mttcg", "metal", "metal guest"]
"""``nested kvm``: the host is itself a guest. ``mttcg``: emulated real time. ``metal``: exported boots."""


class LostShares(StrictModel):
    """The shares of their time that the trials of one kernel lost to other work of the host.

    ``trials`` counts those whose loss was measured; a trial that was repeated counts each time.
    """

    kernel: str
    trials: int
    median: float
    most: float
    disturbed: int = 0
    """How often a trial was disturbed: it lost more than the limit."""
    void: int = 0
    """How many trials stayed disturbed after the last try."""
    kept: int = 0
    """How many trials were not disturbed in the end."""


class Timing(StrictModel):
    """How the time of a result was made. On the instruction clock only ``made`` is set.

    The processor and its settings are those of the host in the first session; None where unknown.
    ``mitigated`` and ``vulnerable`` count vulnerabilities of the processor. ``clocksource`` are those of the
    guests. ``load`` is that of the host at the start and at the end of boots: least, median, most.
    ``lost`` is empty if no trial recorded what it lost.
    """

    made: tuple[Made, ...]
    """More than one if a run was resumed on another host."""
    processor: str | None = None
    hypervisor: str | None = None
    governor: str | None = None
    turbo: bool | None = None
    smt: str | None = None
    isolated: str | None = None
    mitigated: int | None = None
    vulnerable: int | None = None
    clocksource: tuple[str, ...] = ()
    load: tuple[float, float, float] | None = None
    placed: tuple[Placed, ...] = ()
    """Where guests ran under KVM; usually all of them at one place."""
    lost: tuple[LostShares, ...] = ()
    lost_limit: float | None = None
    """The share of its time above which a trial is disturbed; None: there was no limit."""


class ProfiledStretch(StrictModel):
    """The samples of one kernel at one point: ``stretches`` repetitions in ``boots`` boots.

    ``stretch_ns`` is the mean length of one stretch, sampling included. ``busy_ns`` is the busy time of all
    CPUs in one stretch; ``idle_share`` is the share of time in which they were idle. ``lost`` counts samples
    that did not fit into the buffer.
    """

    kernel: str
    point: dict[str, ParamValue]
    boots: int
    stretches: int
    stretch_ns: float
    busy_ns: float
    idle_share: float
    period_ns: int
    cpus: int
    samples: int
    lost: int


class FunctionCost(StrictModel):
    """The cost of one function on one kernel at the largest point.

    ``self_share`` is its share of the busy time, ``all_share`` includes its callees, and ``smallest_share``
    is its share at the smallest point. ``self_ns`` is the time in it for one object of the workload, or for
    one stretch if the workload has no such parameter. ``no_interrupts`` is the part of that in which its CPU
    took no interrupt for at least one and a half periods. ``exponent`` says how its time in the whole stretch
    grows with the number of objects: 1 is proportional; None if it was not sampled at two points.
    ``difference_ns`` is relative to base. Intervals are at the confidence of the profile. ``grows`` and
    ``differs`` are true if the samples support the claim, as defined in ``Profile``.
    """

    kernel: str
    self_share: float
    all_share: float
    smallest_share: float
    self_ns: float
    self_ci: tuple[float, float]
    no_interrupts: float
    samples: int
    exponent: float | None = None
    exponent_ci: tuple[float, float] | None = None
    grows: bool = False
    difference_ns: float | None = None
    difference_ci: tuple[float, float] | None = None
    differs: bool = False


class ProfiledFunction(StrictModel):
    """One function with its costs on each kernel.

    ``callers`` are the functions through which more than half of its time was reached, the nearest first, on
    base or, if it was not sampled there, on the first kernel on which it was.
    """

    function: str
    callers: tuple[str, ...]
    costs: tuple[FunctionCost, ...]


class Profile(StrictModel):
    """Where the time of one workload goes, over the values of ``param``.

    ``functions`` are those with a share of at least ``least_share`` on some kernel, and those that grow or
    differ, by decreasing time. A function ``grows`` if its exponent is above 1 + ``margin``, where the
    probability of naming any function of the profile wrongly is below 1 - ``confidence`` (Bonferroni). It
    ``differs`` if its difference is significant in the same sense and at least ``least_share`` of base's
    time.
    """

    workload: str
    param: str
    rest: dict[str, ParamValue]
    """The other parameters of the points that the experiment sets."""
    confidence: float
    least_share: float
    margin: float
    stretches: tuple[ProfiledStretch, ...]
    """By kernel, the smallest point first."""
    functions: tuple[ProfiledFunction, ...]


Verdict = Literal["broken", "better", "worse", "same", "inconclusive", "mixed"]
"""``mixed`` is a verdict of metrics only: changes at its points are opposite, or their mean hides them."""
FaultKind = Literal[Outcome, ProblemKind, "invariant", "failed trial", "forged record"]
FaultStatus = Literal["broken", "suspected", "base too", "base"]
LawModel = Literal["constant", "linear", "nlogn", "quadratic", "power", "unknown"]


class _Valued(FiniteModel):
    """Something with values of a metric: ``unit`` is that of the workload's file, ``value_unit`` theirs.

    On the instruction clock a metric in ns has values in instructions. ``value_unit`` is empty in results
    that did not record it.
    """

    workload: str
    metric: str
    unit: str
    value_unit: str = ""


class Summary(FiniteModel):
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


class Judged(_Valued):
    """A variant compared with base, and the verdict on it.

    ``statistic`` is computed inside each boot: ``median``, or a percentile such as ``p99`` or ``p99.9``.
    ``ratio`` is changed / base of it; ``ci`` is its interval at ``confidence``; ``mde`` is the smallest
    detectable change.

    The twins give intervals of base compared with a kernel that does the same: ``null_ci`` of the A/A twin,
    ``layout_ci`` of the layout twin; None without a twin. A p-value is None if nothing can be tested.
    ``p`` is the two-sided p-value of no change; ``p_same`` is that of a true change of the margin or more
    (two one-sided tests).
    """

    variant: str
    better: Better
    statistic: str = "median"
    ratio: float | None
    ci: tuple[float, float] | None
    confidence: float
    mde: float | None
    verdict: Verdict
    reason: str = ""
    """The reason of the verdict, in a few words."""
    exact: bool = False
    null_ci: tuple[float, float] | None = None
    layout_ci: tuple[float, float] | None = None
    p: float | None = None
    p_same: float | None = None
    same_within: float | None = None
    """The margin of the verdict "same"; None in results that did not record it."""
    outside: Outside | None = None
    """Of a figure that the kernel or the script made itself and that is better; None of any other."""


class Comparison(Judged):
    """One metric at one point, changed compared with base.

    ``exact`` (instruction clock): every sample of each side is the same number, or both sides are equal seed
    by seed. ``p_holm`` is ``p`` after the correction for the number of tests, which the verdict uses: for a
    headline metric that of the metrics and their points, else Holm's over the other metrics. ``p_rank`` is
    that of a rank test over boots (wall clock). ``outliers`` counts the boots of both sides that
    ``Result.outliers`` names.
    """

    point: dict[str, ParamValue]
    base: Summary
    changed: Summary
    p_holm: float | None = None
    p_rank: float | None = None
    outliers: int = 0


class MetricVerdict(Judged):
    """The verdict of one headline metric of one variant, over all its points together.

    ``ratio`` is the geometric mean over boots of the boots' own weighted geometric means over points. A
    metric with one point has the values of that point's comparison. ``points`` are the points that count, of
    the ``planned`` ones; ``boots`` the pairs of boots that have all of them. ``p_corrected`` is the p-value
    after the correction over headline metrics and variants, and ``p_mixed`` that of no opposite changes among
    the points. ``spread`` is the standard deviation over boots of the log ratio, and ``point_spread`` the
    median of those of the single points; None without a ratio.
    """

    points: int
    planned: int
    boots: int
    p_corrected: float | None = None
    p_mixed: float | None = None
    spread: float | None = None
    point_spread: float | None = None


class Distribution(_Valued):
    """All values of a metric of one kernel at one point, merged over its boots. It has no verdict.

    ``percentiles`` are by their percent, such as ``"99.9"``; ``error`` is their largest relative error.
    """

    kernel: str
    point: dict[str, ParamValue]
    n: int
    percentiles: dict[str, float]
    error: float


class Prediction(FiniteModel):
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

    kernel: str
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
    outside: Outside | None = None


class PatchSet(FiniteModel):
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
        return self.patches == tuple(range(1, self.total + 1))


class KernelFacts(FiniteModel):
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
        return self.patch_set is not None and self.patch_set.for_ablation


def not_built(kernels: Mapping[str, KernelFacts]) -> tuple[str, ...]:
    """Return the requested variants with patches of which nothing is in the kernel that was built."""
    return tuple(
        name
        for name, facts in kernels.items()
        if facts.unchanged and facts.patch_set is not None and not facts.for_ablation
    )


class Unavailable(FiniteModel):
    """A kernel of an ablation that could not be built, and why: its patches do not apply, or do not build."""

    kernel: str
    patch_set: PatchSet
    reason: str


class Part(FiniteModel):
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


class PatchParts(FiniteModel):
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

    variant: str
    series: str
    better: Better
    point: dict[str, ParamValue]
    ratio: float | None
    ci: tuple[float, float] | None
    confidence: float
    exact: bool = False
    patches: tuple[PatchParts, ...]
    unavailable: tuple[Unavailable, ...] = ()


class Outlier(FiniteModel):
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


class Stopping(FiniteModel):
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


class VoidTrials(FiniteModel):
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


class FaultPoint(FiniteModel):
    workload: str
    point: dict[str, ParamValue]


class Fault(FiniteModel):
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


class ChangeCost(FiniteModel):
    """The instructions of the changed functions, with all that they call, in one stretch at ``point``.

    They were counted from outside of both kernels, in a boot of each. Without counts, ``reason`` says
    why.
    """

    variant: str
    workload: str
    point: dict[str, ParamValue]
    base: float | None = None
    changed: float | None = None
    reason: str = ""


class Uncompared(FiniteModel):
    """A point of the plan at which nothing of a variant was compared with base, and why."""

    variant: str
    workload: str
    point: dict[str, ParamValue]
    reason: str


class MetricFacts(FiniteModel):
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


class Result(Document, FiniteModel):
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


Reading = Literal["disagree", "exact only", "wall only", "agree", "undecided"]
READINGS: tuple[Reading, ...] = get_args(Reading)
"""In the order of reports: what a reader must not miss is first."""


class OneClock(StrictModel):
    """What one clock says about a comparison; the fields are those of ``Comparison``.

    ``value_unit`` is the unit of the values that were compared; empty in files that did not record it.
    """

    ratio: float | None
    ci: tuple[float, float] | None
    verdict: Verdict
    mde: float | None
    exact: bool
    reason: str
    value_unit: str = ""

    @classmethod
    def of(cls, c: Judged, clock: Clock) -> "OneClock":
        """Return the side of one comparison, or of the verdict of one metric, on ``clock``."""
        fields = {name: getattr(c, name) for name in cls.model_fields}
        return cls.model_validate({**fields, "value_unit": value_unit(c.unit, clock)})


class ClockReading(StrictModel):
    """A comparison on both clocks.

    A side is None if its clock has no such comparison. ``reading`` says how the two relate: ``agree`` (both
    better, both worse, both the same), ``exact only`` (the wall clock finds no change, though it could have
    seen one), ``wall only``, ``disagree`` (opposite directions) or ``undecided``. ``reason``
    says why in a few words.
    """

    workload: str
    variant: str
    metric: str
    statistic: str
    unit: str
    better: Better
    point: dict[str, ParamValue]
    instructions: OneClock | None
    wall: OneClock | None
    reading: Reading
    reason: str


class ClockRate(StrictModel):
    """The wall nanoseconds of one instruction, fitted over the medians of a metric of all kernels and points.

    ``rate`` is the geometric mean; ``residual`` the typical relative deviation of a median from it (the
    standard deviation of the logarithms); ``low`` and ``high`` are the extremes of the ``medians``.
    """

    workload: str
    metric: str
    rate: float
    residual: float
    low: float
    high: float
    medians: int


class BothClocks(Document):
    """The JSON of a run on both clocks: every comparison read on both, and the whole result of each clock."""

    metrics: tuple[ClockReading, ...] = ()
    """The verdicts of headline metrics over all their points; a reading of these has an empty ``point``."""
    readings: tuple[ClockReading, ...]
    rates: tuple[ClockRate, ...]
    notes: tuple[str, ...]
    results: dict[Clock, Result]
    sentence: str = ""
    """Both clocks in one sentence; empty until it is written."""


PointOf = Mapping[str, ParamValue]


@dataclass(frozen=True)
class Samples:
    """Every valid sample of one metric of one kernel at one point.

    ``boots`` has the values by block, in order of measurement. ``intervals`` has, by statistic (``median``,
    ``p99``), the interval of its median over boots; it is empty for a single boot.
    """

    kernel: str
    workload: str
    metric: str
    unit: str
    better: Better
    headline: bool
    point: PointOf
    boots: Mapping[int, tuple[float, ...]]
    intervals: Mapping[str, tuple[float, float]]

    @property
    def count(self) -> int:
        return sum(len(values) for values in self.boots.values())


@dataclass(frozen=True)
class Stacks:
    """The profile of one kernel at one point: ns of one stretch by stack, outermost function first.

    Idle time of CPUs is not included. ``param`` is the parameter over which points are profiled.
    """

    kernel: str
    workload: str
    param: str
    point: PointOf
    ns: Mapping[tuple[str, ...], float]


@dataclass(frozen=True)
class Evidence:
    """The samples and stacks of a run that a report can draw; empty if only a result is known."""

    samples: tuple[Samples, ...] = ()
    stacks: tuple[Stacks, ...] = ()

    @cached_property
    def _index(self) -> dict[tuple[object, ...], Samples]:
        return {(s.kernel, s.workload, s.metric, *sorted(s.point.items())): s for s in self.samples}

    def of(self, kernel: str, workload: str, metric: str, point: PointOf) -> Samples | None:
        """Return the samples of this metric; None if it has no samples."""
        return self._index.get((kernel, workload, metric, *sorted(point.items())))
