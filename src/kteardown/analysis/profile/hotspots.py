"""Find the functions that take the time, grow faster than N, or differ from base."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from kteardown.analysis.estimate.rounding import tidy, tidy_pair
from kteardown.analysis.profile.stacks import (
    FunctionCosts,
    Stretches,
    TimeGrowth,
    collect,
    growth,
    merged,
    quantile,
)
from kteardown.model.experiment import Experiment
from kteardown.model.point import Key, size_of
from kteardown.model.profile_result import FunctionCost, Profile, ProfiledFunction, ProfiledStretch
from kteardown.model.record import BASE, ParamValue
from kteardown.model.workload import Workload
from kteardown.rundir.counting import BootRecords

LEAST_SHARE = 0.01
"""A function with a smaller share of the busy time on every kernel is not reported."""
MARGIN = 0.1
"""An exponent counts as more than 1 only above 1.1, because caches and trees add a factor of log N."""
_LEAST_SAMPLES = 10
"""With fewer samples of a function, an interval by the normal distribution is not valid."""


def profiles(
    boots: Iterable[BootRecords],
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    kernels: Sequence[str],
) -> tuple[Profile, ...]:
    """Return a profile of each workload and each setting of its parameters other than that of its law.

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
            workloads[workload], chosen.get(workload, set()), found, kernels, experiment.design.confidence
        )
        for (workload, _), found in families.items()
    )


def _profile(
    workload: Workload,
    chosen: Collection[str],
    found: Sequence[Stretches],
    kernels: Sequence[str],
    confidence: float,
) -> Profile:
    law = workload.law
    by_kernel = {
        kernel: sorted(
            (FunctionCosts(s) for s in found if s.kernel == kernel),
            key=lambda c: size_of(dict(c.stretches.key), law),
        )
        for kernel in kernels
    }
    series = {kernel: _KernelCosts(costs, law) for kernel, costs in by_kernel.items() if costs}
    names = merged({kernel: one.largest for kernel, one in series.items()})
    z = quantile(confidence, len(names) * len(series))
    functions = []
    for name in names:
        costs = tuple(
            _cost(name, kernel, one, series.get(BASE), z, confidence) for kernel, one in series.items()
        )
        if any(c.self_share >= LEAST_SHARE or c.grows or c.differs for c in costs):
            sampled = next((one for one in series.values() if one.largest.sampled(name)), None)
            callers = sampled.largest.callers(name) if sampled else ()
            functions.append(ProfiledFunction(function=name, callers=callers, costs=costs))
    stretches = []
    for one in (costs for costs_of_kernel in by_kernel.values() for costs in costs_of_kernel):
        periods = one.stretches.periods
        whole = one.busy_ns + one.idle_ns
        stretch = ProfiledStretch.model_validate(
            {
                "kernel": one.stretches.kernel,
                "point": _shown(one.stretches, {law, *chosen}),
                "boots": len(one.stretches.boots),
                "stretches": len(periods),
                "stretch_ns": tidy(sum(s.stretch_ns for s in periods) / len(periods)),
                "busy_ns": tidy(one.busy_ns),
                "idle_share": tidy(one.idle_ns / whole) if whole else 0.0,
                "period_ns": max(s.period_ns for s in periods),
                "cpus": max(s.cpus for s in periods),
                "samples": one.samples,
                "lost": sum(s.lost for s in periods),
            }
        )
        stretches.append(stretch)
    return Profile(
        workload=workload.name,
        param=law,
        rest=_shown(found[0], chosen, but=law),
        confidence=confidence,
        least_share=LEAST_SHARE,
        margin=MARGIN,
        stretches=tuple(stretches),
        functions=tuple(functions),
    )


class _KernelCosts:
    """The costs of one kernel at each size, smallest first."""

    def __init__(self, costs: Sequence[FunctionCosts], law: str) -> None:
        self.costs = costs
        self.largest = costs[-1]
        self.sizes = [float(size_of(dict(c.stretches.key), law)) for c in costs]
        self.objects = self.sizes[-1] or 1.0
        """The number of objects at the largest point, by which its times are divided."""

    def growth(self, function: str) -> TimeGrowth | None:
        """Return the growth of the time in the function itself."""
        return growth(self.sizes, [costs.own(function) for costs in self.costs])


def _cost(
    name: str, kernel: str, one: _KernelCosts, base: _KernelCosts | None, z: float, confidence: float
) -> FunctionCost:
    """Return the cost of a function on a kernel.

    ``z`` is the quantile for one claim among all; the shown intervals are each at ``confidence``.
    """
    shown = quantile(confidence, 1)
    costs, own, per = one.largest, one.largest.own(name), 1 / one.objects
    share, grown = costs.share(name), one.growth(name)
    fields: dict[str, object] = {}
    if grown is not None:
        ends = (grown.exponent - shown * grown.se, grown.exponent + shown * grown.se)
        fields |= {"exponent": tidy(grown.exponent), "exponent_ci": tidy_pair(ends)}
        fields["grows"] = (
            grown.exponent - z * grown.se > 1 + MARGIN
            and share >= LEAST_SHARE
            and costs.sampled(name) >= _LEAST_SAMPLES
        )
    if base is not None and kernel != BASE:
        before, after = base.largest.own(name), own
        difference = after.ns * per - before.ns / base.objects
        se = ((after.se * per) ** 2 + (before.se / base.objects) ** 2) ** 0.5
        enough = max(costs.sampled(name), base.largest.sampled(name)) >= _LEAST_SAMPLES
        large = abs(difference) >= LEAST_SHARE * base.largest.busy_ns / base.objects
        fields |= {
            "difference_ns": tidy(difference),
            "difference_ci": tidy_pair((difference - shown * se, difference + shown * se)),
            "differs": enough and large and abs(difference) > z * se,
        }
    return FunctionCost.model_validate(
        {
            "kernel": kernel,
            "self_share": tidy(share),
            "all_share": tidy(costs.share_with_callees(name)),
            "smallest_share": tidy(one.costs[0].share(name)),
            "self_ns": tidy(own.ns * per),
            "self_ci": tidy_pair(own.interval(shown, per)),
            "no_interrupts": tidy(costs.no_interrupts(name)),
            "samples": costs.sampled(name),
            **fields,
        }
    )


def _shown(stretches: Stretches, names: Collection[str], *, but: str = "") -> dict[str, ParamValue]:
    return {name: value for name, value in stretches.key if name in names and name != but}
