"""What so many objects cost a machine: a law or a measured growth, evaluated for its release."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from kteardown.catalogue.costs import MeasuredCost
from kteardown.catalogue.laws import MeasuredLaw, costs_of, interpolated, laws_of
from kteardown.catalogue.problems import LiveProblem
from kteardown.catalogue.releases import nearest, newer_than, version_of
from kteardown_observe.counts import ObservedMachine

INSTRUCTIONS = "instructions"
OTHER_RELEASE = 1.45
"""Between 6.12 and 7.3, nine of ten kinds of the hunt changed by no more than this factor."""
_MATTERS = 0.8
"""A release helps if the cost is below this share, also at the ends of the intervals."""


@dataclass(frozen=True)
class CostEstimate:
    """A cost in ``unit`` (``instructions`` or ``kb``), with the ends of its range.

    ``releases``: those in which it was measured. ``reach``: the largest number of objects that was
    measured; None for a law, which is the cost of one more. ``is_whole``: whether no part is left
    out. ``results``: the published results.
    """

    low: float
    value: float
    high: float
    unit: str
    releases: tuple[str, ...]
    reach: int | None
    is_whole: bool
    results: tuple[str, ...]
    is_superlinear: bool = False
    sleeps_in: str = ""


@dataclass(frozen=True)
class Improvement:
    """A release or a series of ours with which the cost is less: ``saved`` is a share, with its
    ends."""

    name: str
    is_series: bool
    on_release: str
    """Of a series: the release on which it was measured."""
    low: float
    saved: float
    high: float


_At = Callable[[str, str], CostEstimate | None]
"""The estimate for a release and a series."""


def estimate(problem: LiveProblem, number: int, machine: ObservedMachine) -> CostEstimate | None:
    """Return what ``number`` of a count cost the machine; None if nothing was measured that stands
    for it.

    If the machine's release was not measured, the range has those of both neighbours. If it is
    older or newer than all that were measured, the range is wider (``OTHER_RELEASE``).
    """
    at, measured = _estimates(problem, number, machine)
    near = [cost for name in nearest(machine.release or "", measured) if (cost := at(name, ""))]
    return _for(machine, near) if near else None


def _for(machine: ObservedMachine, near: Sequence[CostEstimate]) -> CostEstimate:
    """Return the estimate for a machine by those of the nearest releases."""
    is_other = version_of(machine.release or "") != version_of(near[0].releases[0])
    return _together(near) if len(near) > 1 or not is_other else _widened(near[0])


def estimate_by(
    problem: LiveProblem, number: int, machine: ObservedMachine, release: str
) -> CostEstimate | None:
    """Return the estimate by the laws of one release, for a machine that has another; None if that
    release was not measured."""
    cost = _estimates(problem, number, machine)[0](release, "")
    return _widened(cost) if cost else None


def _widened(cost: CostEstimate) -> CostEstimate:
    return replace(cost, low=cost.low / OTHER_RELEASE, high=cost.high * OTHER_RELEASE)


def improvements(
    problem: LiveProblem, number: int, machine: ObservedMachine
) -> tuple[Improvement, ...]:
    """Return what makes the cost surely less, the most first."""
    if problem.relief:
        problem = problem.model_copy(update={"law": problem.relief, "point": {}, "relief": ""})
    at, measured = _estimates(problem, number, machine)
    near = nearest(machine.release or "", measured)
    here = [cost for name in near if (cost := at(name, ""))]
    if not here:
        return ()
    now = _for(machine, here)
    newer = newer_than(machine.release or "", measured)
    better = [_better(name, "", now, at(name, "")) for name in newer]
    for release, series in _series_of(problem):
        base = at(release, "")
        if release in near and base:
            better.append(_better(release, series, base, at(release, series)))
    by_name: dict[str, Improvement] = {}
    # If a series was measured on both neighbours of the machine's release, the smaller gain counts.
    for gain in sorted(filter(None, better), key=lambda gain: gain.saved):
        by_name.setdefault(gain.name, gain)
    return tuple(sorted(by_name.values(), key=lambda gain: -gain.saved))


def _better(
    release: str, series: str, now: CostEstimate, then: CostEstimate | None
) -> Improvement | None:
    if then is None or then.unit != now.unit or then.high > _MATTERS * now.low:
        return None
    return Improvement(
        series or release,
        bool(series),
        release,
        low=max(0.0, 1 - then.high / now.low),
        saved=1 - then.value / now.value,
        high=1 - then.low / now.high,
    )


def _together(estimates: Sequence[CostEstimate]) -> CostEstimate:
    """Return the range that has the ranges of all; the value is the middle of their values."""
    if len(estimates) == 1:
        return estimates[0]
    reaches = [cost.reach for cost in estimates if cost.reach is not None]
    return CostEstimate(
        min(cost.low for cost in estimates),
        sum(cost.value for cost in estimates) / len(estimates),
        max(cost.high for cost in estimates),
        estimates[0].unit,
        tuple(name for cost in estimates for name in cost.releases),
        min(reaches, default=None),
        all(cost.is_whole for cost in estimates),
        tuple(dict.fromkeys(name for cost in estimates for name in cost.results)),
        any(cost.is_superlinear for cost in estimates),
        next((cost.sleeps_in for cost in estimates if cost.sleeps_in), ""),
    )


def _estimates(
    problem: LiveProblem, number: int, machine: ObservedMachine
) -> tuple[_At, Iterable[str]]:
    """Return the estimate for a release and a series, and the releases without patches."""
    objects = number * problem.scale
    if problem.kind:
        costs = {(cost.release, cost.series): cost for cost in costs_of(problem)}
        return (
            lambda release, series: _of_cost(costs.get((release, series)), objects),
            [release for release, series in costs if not series],
        )
    laws = laws_of(problem)

    def at(release: str, series: str) -> CostEstimate | None:
        these = [law for law in laws if (law.release, law.series) == (release, series)]
        return _of_laws(problem, these, objects, machine)

    measured = {law.release for law in laws if not law.series}
    return at, [release for release in sorted(measured) if at(release, "")]


def _series_of(problem: LiveProblem) -> list[tuple[str, str]]:
    """Return the series that were measured for a problem, with the release."""
    if problem.kind:
        pairs = {(cost.release, cost.series) for cost in costs_of(problem) if cost.series}
    else:
        pairs = {(law.release, law.series) for law in laws_of(problem) if law.series}
    return sorted(pairs)


def _of_cost(cost: MeasuredCost | None, objects: float) -> CostEstimate | None:
    if cost is None:
        return None
    low, value, high = cost.at(objects)
    return CostEstimate(
        low,
        value,
        high,
        INSTRUCTIONS if cost.cost == "work" else "kb",
        (cost.release,),
        cost.sizes[-1],
        cost.is_whole,
        (cost.result,),
        not cost.is_linear,
        cost.sleeps_in,
    )


def _of_laws(
    problem: LiveProblem, laws: Sequence[MeasuredLaw], objects: float, machine: ObservedMachine
) -> CostEstimate | None:
    if not laws:
        return None
    first = laws[0]
    each: tuple[float, float, float] | None = (first.interval[0], first.per_unit, first.interval[1])
    for parameter in problem.machine:
        at = getattr(machine, parameter)
        each = interpolated(laws, parameter, at) if at else None
    if each is None:
        return None
    low, value, high = (max(0.0, cost) * objects for cost in each)
    return CostEstimate(low, value, high, first.unit, (first.release,), None, True, (first.result,))
