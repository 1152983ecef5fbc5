"""Which functions a profile names: that take the time, grow faster than N, or differ from base."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from kteardown.analysis.estimate.rounding import tidy, tidy_pair
from kteardown.analysis.profile.stacks import Costs, Growth, Key, Stretches, collect, growth, merged, quantile
from kteardown.model.experiment import Experiment
from kteardown.model.profile_result import FunctionCost, Profile, ProfiledFunction, ProfiledStretch
from kteardown.model.record import BASE, ParamValue
from kteardown.model.workload import Workload
from kteardown.rundir.counting import BootRecords

LEAST_SHARE = 0.01
"""A function that takes less of the busy time everywhere is not worth a line."""
MARGIN = 0.1
"""An exponent is called more than 1 only above 1.1: caches and trees make log N out of N."""
_LEAST_SAMPLES = 10
"""Where a function was sampled less often, a normal interval says nothing about it."""


def profiles(
    boots: Iterable[BootRecords],
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    kernels: Sequence[str],
) -> tuple[Profile, ...]:
    """A profile of each workload, and of each set of its parameters beside the one that its law is over.

    ``boots``: those that were sampled. ``kernels``: in report order, base among them.
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
        kernel: sorted((Costs(s) for s in found if s.kernel == kernel), key=lambda c: _size(c, law))
        for kernel in kernels
    }
    series = {kernel: _Series(costs, law) for kernel, costs in by_kernel.items() if costs}
    names = merged({kernel: one.largest for kernel, one in series.items()})
    z = quantile(confidence, len(names) * len(series))
    functions = []
    for name in names:
        costs = tuple(
            _cost(name, kernel, one, series.get(BASE), z, confidence) for kernel, one in series.items()
        )
        if any(c.self_share >= LEAST_SHARE or c.grows or c.differs for c in costs):
            seen = next((one for one in series.values() if one.largest.sampled(name)), None)
            callers = seen.largest.callers(name) if seen else ()
            functions.append(ProfiledFunction(function=name, callers=callers, costs=costs))
    return Profile(
        workload=workload.name,
        param=law,
        rest=_shown(found[0], chosen, but=law),
        confidence=confidence,
        least_share=LEAST_SHARE,
        margin=MARGIN,
        stretches=tuple(_stretch(costs, {law, *chosen}) for one in by_kernel.values() for costs in one),
        functions=tuple(functions),
    )


class _Series:
    """One kernel's costs at each size, smallest first."""

    def __init__(self, costs: Sequence[Costs], law: str) -> None:
        self.costs = costs
        self.largest = costs[-1]
        self.sizes = [float(_size(c, law)) for c in costs]
        self.objects = self.sizes[-1] or 1.0
        """What the time of the largest point is divided by."""

    def growth(self, function: str) -> Growth | None:
        """How the function's own time grows."""
        return growth(self.sizes, [costs.own(function) for costs in self.costs])


def _cost(
    name: str, kernel: str, one: _Series, base: _Series | None, z: float, confidence: float
) -> FunctionCost:
    """``z``: for a claim among all; the intervals shown are each at ``confidence``."""
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
        worth = abs(difference) >= LEAST_SHARE * base.largest.busy_ns / base.objects
        fields |= {
            "difference_ns": tidy(difference),
            "difference_ci": tidy_pair((difference - shown * se, difference + shown * se)),
            "differs": enough and worth and abs(difference) > z * se,
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


def _stretch(costs: Costs, names: Collection[str]) -> ProfiledStretch:
    stretches = costs.stretches
    seen = stretches.periods
    whole = costs.busy_ns + costs.idle_ns
    return ProfiledStretch.model_validate(
        {
            "kernel": stretches.kernel,
            "point": _shown(stretches, names),
            "boots": len(stretches.boots),
            "stretches": len(seen),
            "stretch_ns": tidy(sum(s.stretch_ns for s in seen) / len(seen)),
            "busy_ns": tidy(costs.busy_ns),
            "idle_share": tidy(costs.idle_ns / whole) if whole else 0.0,
            "period_ns": max(s.period_ns for s in seen),
            "cpus": max(s.cpus for s in seen),
            "samples": costs.samples,
            "lost": sum(s.lost for s in seen),
        }
    )


def _size(costs: Costs, law: str) -> int:
    value = dict(costs.stretches.key).get(law, 0)
    return value if isinstance(value, int) else 0
