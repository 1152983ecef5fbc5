"""What kteardown has measured that a live machine can have: ``laws.json`` and ``costs.json``, which
``make tables`` writes from the published results."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files

from kteardown.catalogue.costs import MeasuredCost
from kteardown.catalogue.problems import LiveProblem
from kteardown.model.record_fields import ParamValue


@dataclass(frozen=True)
class MeasuredLaw:
    """What one more object costs a kernel, by a published result: in ``unit``, with its interval.

    ``series`` is empty for a kernel without patches. ``point`` has the other parameters.
    """

    workload: str
    metric: str
    param: str
    release: str
    series: str
    point: Mapping[str, ParamValue]
    per_unit: float
    interval: Sequence[float]
    unit: str
    result: str


_LAW_KEYS = [field.name for field in fields(MeasuredLaw)]


@cache
def measured_laws() -> tuple[MeasuredLaw, ...]:
    """Return every law of a workload."""
    rows = json.loads(files("kteardown.catalogue").joinpath("laws.json").read_text())
    return tuple(MeasuredLaw(**dict(zip(_LAW_KEYS, row, strict=True))) for row in rows)


@cache
def measured_costs() -> tuple[MeasuredCost, ...]:
    """Return every cost of a kind of the hunt."""
    rows = json.loads(files("kteardown.catalogue").joinpath("costs.json").read_text())
    return tuple(MeasuredCost(**row) for row in rows)


def costs_of(problem: LiveProblem) -> list[MeasuredCost]:
    """Return every cost of the kind and way of a problem."""
    wanted = problem.kind, problem.way, problem.cost
    return [cost for cost in measured_costs() if (cost.kind, cost.way, cost.cost) == wanted]


def laws_of(problem: LiveProblem, further: Iterable[MeasuredLaw] = ()) -> list[MeasuredLaw]:
    """Return every law at the point of a problem, and then those of ``further`` with the same
    parameter and unit. A parameter of the machine may have any value."""
    workload, _, metric = problem.law.partition(".")

    def fits(law: MeasuredLaw) -> bool:
        point = {key: value for key, value in law.point.items() if key not in problem.machine}
        return (law.workload, law.metric, point) == (workload, metric, problem.point)

    known = list(filter(fits, measured_laws()))
    kinds = {(law.param, law.unit) for law in known}
    return [*known, *(law for law in further if fits(law) and (law.param, law.unit) in kinds)]


def interpolated(
    laws: Iterable[MeasuredLaw], parameter: str, value: float
) -> tuple[float, float, float] | None:
    """Return the low end, the middle and the high end of the cost of one more object at ``value``
    of a parameter of the machine, by laws that differ in nothing else.

    A straight line through the two nearest values, which goes on beyond them. None if there are
    not two values, and the only one is another.
    """
    by_value = sorted((float(law.point[parameter]), law) for law in laws if parameter in law.point)
    exact = [law for at, law in by_value if at == value]
    if exact:
        return exact[0].interval[0], exact[0].per_unit, exact[0].interval[1]
    if len(by_value) < 2:
        return None
    (start, first), (end, second) = _around([at for at, _ in by_value], by_value, value)
    part = (value - start) / (end - start)

    def between(low: float, high: float) -> float:
        return low + (high - low) * part

    ends = [between(first.interval[a], second.interval[b]) for a in (0, 1) for b in (0, 1)]
    return min(ends), between(first.per_unit, second.per_unit), max(ends)


def _around(
    values: Sequence[float], laws: Sequence[tuple[float, MeasuredLaw]], value: float
) -> tuple[tuple[float, MeasuredLaw], tuple[float, MeasuredLaw]]:
    """Return the two laws between which ``value`` is, or that are nearest to it."""
    after = next((at for at, other in enumerate(values) if other > value), len(values) - 1)
    after = max(1, after)
    return laws[after - 1], laws[after]
