"""Profiles: find the functions that take the time, grow faster than N, or differ from base.

A sample represents the time since the previous sample of its CPU. Time with interrupts disabled is
therefore not lost, but is attributed to the place where they are enabled again. The time of a
function is a sum of n weights with a standard deviation of at most the root of their sum of
squares, multiplied by the average excess of the boots, and at least that between the boots of the
function itself (docs/profile.md has the sources).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, mean, variance

import numpy as np

from kteardown.analysis.stretches import (
    NO_INTERRUPTS,
    Stretches,
    Weight,
    collect,
    frames_of,
    innermost,
    is_idle,
)
from kteardown.model.experiment import Experiment
from kteardown.model.judged import tidy, tidy_pair
from kteardown.model.point import Key, size_of
from kteardown.model.record import BASE
from kteardown.model.record_fields import ParamValue
from kteardown.model.stack_profile import FunctionCost, Profile, ProfiledFunction, ProfiledStretch
from kteardown.model.workload import Workload
from kteardown.rundir.counting import BootRecords

_CALLERS = 2
_OFTEN = 10
"""From this many samples of a function on, the spread between boots can be estimated."""
LEAST_SHARE = 0.01
"""A function with a smaller share of the busy time on every kernel is not reported."""
MARGIN = 0.1
"""An exponent counts as more than 1 only above 1.1, because caches and trees add a factor of log
N."""
_LEAST_SAMPLES = 10
"""With fewer samples of a function, an interval by the normal distribution is not valid."""


@dataclass(frozen=True)
class MeanTime:
    """A mean per stretch in ns, and its standard error."""

    ns: float
    se: float

    def interval(self, z: float, scale: float = 1.0) -> tuple[float, float]:
        """Return the interval of ``ns * scale``, at least zero."""
        return max(0.0, self.ns - z * self.se) * scale, (self.ns + z * self.se) * scale


class FunctionCosts:
    """The functions of one kernel at one point: times per stretch in ns, summed over all CPUs.

    ``busy_ns`` and ``idle_ns`` are the times in which CPUs were busy and idle. Shares are between 0
    and 1. ``stretches`` must have at least one repetition.
    """

    def __init__(self, stretches: Stretches, law: str = "") -> None:
        self.stretches = stretches
        self.size = float(size_of(dict(stretches.key), law))
        """The value of the parameter ``law``; 0 without one."""
        idle = 0
        self._self: dict[str, Weight] = defaultdict(Weight)
        self._all: Counter[str] = Counter()
        self._no_interrupt_ns: Counter[str] = Counter()
        self._callers: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
        for text, weight in stretches.stacks.items():
            frames = frames_of(text)
            if is_idle(frames):
                idle += weight.ns
                continue
            function = innermost(frames)
            total = self._self[function]
            total.count += weight.count
            total.ns += weight.ns
            total.variance += weight.variance
            for frame in set(frames):
                self._all[frame] += weight.ns
            if frames[-1] == NO_INTERRUPTS:
                self._no_interrupt_ns[function] += weight.ns
            depth = len(frames) - 1 - frames[::-1].index(function)
            self._callers[function][frames[:depth][::-1]] += weight.ns
        self.busy_ns = sum(weight.ns for weight in self._self.values()) / stretches.count
        self.idle_ns = idle / stretches.count
        self.samples = sum(weight.count for weight in stretches.stacks.values())
        often = [name for name, weight in self._self.items() if weight.count >= _OFTEN]
        ratios = [self._between_boots(name) / self._scatter(self._self[name]) for name in often]
        self.functions = set(self._self)
        """Those in which a sample was taken."""
        self._dispersion = max(1.0, mean(ratios)) if ratios else 1.0

    def own(self, function: str) -> MeanTime:
        """Return the time in the function itself, zero if it was not sampled."""
        weight = self._self.get(function, Weight())
        scatter = max(self._scatter(weight) * self._dispersion, self._between_boots(function))
        return MeanTime(weight.ns / self.stretches.count, math.sqrt(scatter))

    def sampled(self, function: str) -> int:
        """Return the number of samples in the function itself."""
        return self._self[function].count if function in self._self else 0

    def share(self, function: str) -> float:
        return self.own(function).ns / self.busy_ns if self.busy_ns else 0.0

    def share_with_callees(self, function: str) -> float:
        """Return the share of the busy time in the function and its callees."""
        return self._all[function] / self.stretches.count / self.busy_ns if self.busy_ns else 0.0

    def no_interrupts(self, function: str) -> float:
        """Return the share of the function's own time in which its CPU took no interrupts."""
        self_ns = self._self[function].ns if function in self._self else 0.0
        return self._no_interrupt_ns[function] / self_ns if self_ns else 0.0

    def callers(self, function: str) -> tuple[str, ...]:
        """Return up to two callers, the nearest first, through which more than half of its time
        came."""
        chain: tuple[str, ...] = ()
        times = self._callers.get(function, Counter())
        whole = sum(times.values())
        while len(chain) < _CALLERS:
            longer: Counter[tuple[str, ...]] = Counter()
            for callers, ns in times.items():
                if callers[: len(chain)] == chain and len(callers) > len(chain):
                    longer[callers[: len(chain) + 1]] += ns
            best, ns = max(longer.items(), key=lambda item: (item[1], item[0]), default=((), 0))
            if not best or ns <= whole / 2:
                break
            chain = best
        return chain

    def chain_to(self, function: str, says: Callable[[str], bool]) -> tuple[str, ...]:
        """Return its callers up to the first that ``says`` accepts, the nearest first.

        Of several such callers it is the one with most time; stacks that reach it in different ways
        count together. Empty if no caller is accepted.
        """
        times: Counter[str] = Counter()
        chains: dict[str, Counter[tuple[str, ...]]] = {}
        for callers, ns in self._callers.get(function, Counter()).items():
            length = next((number for number, name in enumerate(callers, 1) if says(name)), 0)
            if length:
                times[callers[length - 1]] += ns
                chains.setdefault(callers[length - 1], Counter())[callers[:length]] += ns
        if not times:
            return ()
        best = max(times, key=lambda name: (times[name], name))
        return max(chains[best], key=lambda chain: (chains[best][chain], chain))

    def _scatter(self, weight: Weight) -> float:
        """Return the variance of a mean per stretch if only the sampling were random."""
        return weight.variance / self.stretches.count**2

    def _between_boots(self, function: str) -> float:
        """Return the same variance from the differences between boots; 0 with a single boot."""
        boots = self.stretches.boots
        if len(boots) < 2:
            return 0.0
        means = [
            self.stretches.by_boot[block][function] / number for block, number in boots.items()
        ]
        return variance(means) / len(means)


def growth(sizes: Sequence[float], times: Sequence[MeanTime]) -> tuple[float, float] | None:
    """Return the exponent with which a time grows with the size, and its standard error.

    It is the slope of log time over log size, by least squares that are weighted by the errors. If
    the points are farther from the line than their errors explain, the error of the slope is
    multiplied by the same factor (the Birge ratio; Birge, Physical Review 40, 1932). Times of zero
    are not used: the function was not sampled there. None with fewer than two different sizes.
    """
    points = [
        (1 / max(t.se / t.ns, 1e-9), math.log(n), math.log(t.ns))
        for n, t in zip(sizes, times, strict=True)
        if t.ns > 0 and n > 0
    ]
    if len({x for _, x, _ in points}) < 2:
        return None
    w, x, y = np.array(points).T
    line, covariance = np.polyfit(x, y, 1, w=w, cov="unscaled")
    free = len(points) - 2
    residual = float(np.square(w * (y - np.polyval(line, x))).sum())
    birge = math.sqrt(max(1.0, residual / free)) if free else 1.0
    return float(line[0]), birge * math.sqrt(covariance[0, 0])


def quantile(confidence: float, claims: int) -> float:
    """Return the number of standard errors with which ``claims`` claims hold jointly
    (Bonferroni)."""
    return NormalDist().inv_cdf(1 - (1 - confidence) / 2 / max(1, claims))


def folded(stretches: Stretches) -> str:
    """Return the stacks in the format of flame graph tools: ``outermost;...;innermost
    MICROSECONDS`` per line.

    Times are per stretch, and functions are named as by the guest; stacks below half a microsecond
    are left out.
    """
    lines = []
    for stack, weight in sorted(stretches.stacks.items()):
        us = round(weight.ns / stretches.count / 1000)
        if us:
            lines.append(f"{stack} {us}\n")
    return "".join(lines)


def profiles(
    boots: Iterable[BootRecords],
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    kernels: Sequence[str],
) -> tuple[Profile, ...]:
    """Return a profile of each workload and each setting of its parameters other than that of its
    law.

    ``boots`` are those that were sampled. ``kernels`` are in report order and contain base.
    """
    families: dict[tuple[str, Key], list[Stretches]] = {}
    for stretches in collect(boots):
        if stretches.workload in workloads and stretches.kernel in kernels:
            law = workloads[stretches.workload].law
            rest = tuple(pair for pair in stretches.key if pair[0] != law)
            families.setdefault((stretches.workload, rest), []).append(stretches)
    machine = experiment.machine.swept
    chosen = {sweep.workload: {*machine, *sweep.params} for sweep in experiment.workloads}
    return tuple(
        _profile(
            workloads[workload],
            chosen.get(workload, set()),
            family,
            kernels,
            experiment.design.confidence,
        )
        for (workload, _), family in families.items()
    )


def _profile(
    workload: Workload,
    chosen: Collection[str],
    family: Sequence[Stretches],
    kernels: Sequence[str],
    confidence: float,
) -> Profile:
    law = workload.law
    by_kernel = {
        kernel: sorted(
            (FunctionCosts(s, law) for s in family if s.kernel == kernel), key=lambda c: c.size
        )
        for kernel in kernels
    }
    series = {kernel: costs for kernel, costs in by_kernel.items() if costs}
    largest = [costs[-1] for costs in series.values()]
    sampled_at_all = set[str]().union(*(costs.functions for costs in largest))
    names = sorted(
        sampled_at_all, key=lambda name: (-max(costs.own(name).ns for costs in largest), name)
    )
    z = quantile(confidence, len(names) * len(series))
    functions = []
    for name in names:
        costs = tuple(
            _cost(name, kernel, by_size, series.get(BASE), z, confidence)
            for kernel, by_size in series.items()
        )
        if any(c.self_share >= LEAST_SHARE or c.grows or c.differs for c in costs):
            sampled = next((at_largest for at_largest in largest if at_largest.sampled(name)), None)
            callers = sampled.callers(name) if sampled else ()
            functions.append(ProfiledFunction(function=name, callers=callers, costs=costs))
    measured = (costs for of_kernel in by_kernel.values() for costs in of_kernel)
    return Profile(
        workload=workload.name,
        param=law,
        rest=_shown(family[0], chosen, but=law),
        confidence=confidence,
        least_share=LEAST_SHARE,
        margin=MARGIN,
        stretches=tuple(_stretch(costs, {law, *chosen}) for costs in measured),
        functions=tuple(functions),
    )


def _stretch(costs: FunctionCosts, chosen: Collection[str]) -> ProfiledStretch:
    periods = costs.stretches.periods
    whole_ns = costs.busy_ns + costs.idle_ns
    return ProfiledStretch.model_validate(
        {
            "kernel": costs.stretches.kernel,
            "point": _shown(costs.stretches, chosen),
            "boots": len(costs.stretches.boots),
            "stretches": len(periods),
            "stretch_ns": tidy(sum(s.stretch_ns for s in periods) / len(periods)),
            "busy_ns": tidy(costs.busy_ns),
            "idle_share": tidy(costs.idle_ns / whole_ns) if whole_ns else 0.0,
            "period_ns": max(s.period_ns for s in periods),
            "cpus": max(s.cpus for s in periods),
            "samples": costs.samples,
            "lost": sum(s.lost for s in periods),
        }
    )


def _cost(
    name: str,
    kernel: str,
    costs: Sequence[FunctionCosts],
    base: Sequence[FunctionCosts] | None,
    z: float,
    confidence: float,
) -> FunctionCost:
    """Return the cost of a function on a kernel, from its costs at each size, the smallest first.

    ``z`` is the quantile for one claim among all; the shown intervals are each at ``confidence``.
    """
    shown = quantile(confidence, 1)
    last = costs[-1]
    self_time = costs[-1].own(name)
    per = 1 / (last.size or 1.0)
    share = last.share(name)
    grown = growth([at_size.size for at_size in costs], [at_size.own(name) for at_size in costs])
    fields: dict[str, object] = {}
    if grown is not None:
        exponent, se = grown
        ends = (exponent - shown * se, exponent + shown * se)
        fields |= {"exponent": tidy(exponent), "exponent_ci": tidy_pair(ends)}
        fields["grows"] = (
            exponent - z * se > 1 + MARGIN
            and share >= LEAST_SHARE
            and last.sampled(name) >= _LEAST_SAMPLES
        )
    if base is not None and kernel != BASE:
        before = base[-1].own(name)
        objects = base[-1].size or 1.0
        difference = self_time.ns * per - before.ns / objects
        se = ((self_time.se * per) ** 2 + (before.se / objects) ** 2) ** 0.5
        enough = max(last.sampled(name), base[-1].sampled(name)) >= _LEAST_SAMPLES
        large = abs(difference) >= LEAST_SHARE * base[-1].busy_ns / objects
        fields |= {
            "difference_ns": tidy(difference),
            "difference_ci": tidy_pair((difference - shown * se, difference + shown * se)),
            "differs": enough and large and abs(difference) > z * se,
        }
    return FunctionCost.model_validate(
        {
            "kernel": kernel,
            "self_share": tidy(share),
            "all_share": tidy(last.share_with_callees(name)),
            "smallest_share": tidy(costs[0].share(name)),
            "self_ns": tidy(self_time.ns * per),
            "self_ci": tidy_pair(self_time.interval(shown, per)),
            "no_interrupts": tidy(last.no_interrupts(name)),
            "samples": last.sampled(name),
            **fields,
        }
    )


def _shown(stretches: Stretches, names: Collection[str], *, but: str = "") -> dict[str, ParamValue]:
    return {name: value for name, value in stretches.key if name in names and name != but}
