"""Which releases pay for what stays: from records to a law in two numbers.

Let cost(L, M) be the cost of releasing L objects while M residents stay. What is paid for them is

    extra(L, M) = cost(L, M) - cost(L, 0) - (cost(0, M) - cost(0, 0))

The last two terms are what the end of the residents costs by itself, where they are the owner's own
and end with it. Residents that other processes hold do not end, so these terms are zero.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

import numpy as np

from kteardown.rundir.counting import BootRecords, trials
from kteardown_hunt.catalogue import Cost
from kteardown_hunt.finds import FLOORS, METRICS, failure_of
from kteardown_hunt.folder import case_of
from kteardown_hunt.growth import NOTICED, Curve, half_width
from kteardown_hunt.plan import NO_RESIDENTS, Case
from kteardown_hunt.result import FailureResult
from kteardown_hunt.stay_plan import StayGrid

STAY_COSTS: Final[tuple[Cost, ...]] = ("sync", "deferred", "make")
"""Memory says nothing here: that of the residents is far more."""
_DIFFERENCES = 2
"""An extra is the difference of two costs, or of four: it may be wrong by twice the floor."""
_DRIFT = 3
"""What residents cost is more than so many times what differs without them."""
_CONFIDENCE = 0.95
"""Of each one-sided bound."""
_LEAST_EXPONENT = 0.5
"""Costs with a smaller exponent, such as logarithms, do not grow in proportion."""
_LEAST_SHARE = 0.3
"""The last doublings of the residents add at least this share of what they would in proportion: a
step at one number, and a logarithm, add nothing or less."""
_FOR_EACH_OBJECT = 0.5
"""With a larger exponent in the number of objects, each object pays; else the release does as a
whole."""

Costs = Mapping[tuple[int, int, str], float]
"""By seed, number of objects and the parameter ``stay``."""


@dataclass
class StayCosts:
    """What the trials of one case on one kernel cost beside residents."""

    costs: dict[Cost, dict[tuple[int, int, str], float]] = field(default_factory=dict)
    repeated: dict[Cost, dict[tuple[int, int, str], list[float]]] = field(default_factory=dict)
    """All figures of one point, in the order in which they were measured."""
    failures: list[tuple[str, FailureResult]] = field(default_factory=list)
    """By the parameter ``stay``."""

    def failed_beside(self, stay: str) -> FailureResult | None:
        """Return what failed first with this parameter; None if nothing did."""
        return next((failure for text, failure in self.failures if text == stay), None)


def stay_costs(boots: Sequence[BootRecords]) -> dict[tuple[str, Case], StayCosts]:
    """Return what was measured, by kernel and case."""
    measured: dict[tuple[str, Case], StayCosts] = {}
    for boot in boots:
        for trial in trials(boot.records):
            into = measured.setdefault((boot.start.kernel, case_of(trial.params)), StayCosts())
            objects = int(trial.params["objects"])
            stay = str(trial.params["stay"])
            if not trial.usable:
                into.failures.append((stay, failure_of(trial, boot, objects)))
                continue
            for cost in STAY_COSTS:
                if values := trial.samples.get(METRICS[cost]):
                    at = boot.start.seed, objects, stay
                    figures = into.repeated.setdefault(cost, {}).setdefault(at, [])
                    figures.append(float(median(values)))
                    into.costs.setdefault(cost, {})[at] = float(median(figures))
    return measured


def differing(measured: StayCosts, stays: Iterable[str]) -> list[str]:
    """Return those of ``stays`` with which a cost of the case differs from the one without
    residents.

    The costs without are those before and after; what these differ by is the drift of the guest.
    """
    chosen = []
    for stay in stays:
        if any(_differs(measured.repeated.get(cost, {}), cost, stay) for cost in STAY_COSTS):
            chosen.append(stay)
    return chosen


def _differs(figures: Mapping[tuple[int, int, str], list[float]], cost: Cost, stay: str) -> bool:
    for (seed, objects, with_stay), values in figures.items():
        if with_stay != stay:
            continue
        without = figures.get((seed, objects, NO_RESIDENTS), [])
        if not without:
            return True
        drift = max(without) - min(without)
        extra = median(values) - median(without)
        if extra > max(NOTICED * FLOORS[cost], _DRIFT * drift):
            return True
    return False


@dataclass(frozen=True)
class StayLaw:
    """How a cost grows with what stays.

    ``verdict``: ``pays`` if it grows at least in proportion to the residents, ``free`` if they do
    not matter, else ``unknown``. ``instructions``: for each resident, and for each object too if
    ``for_each_object``. ``extras``: by the number of residents, the median over seeds.
    """

    verdict: str
    reason: str
    residents_exponent: float | None = None
    objects_exponent: float | None = None
    instructions: float | None = None
    for_each_object: bool = False
    extras: tuple[float, ...] = ()


def law_of(costs: Costs, grid: StayGrid, floor: float) -> StayLaw:
    """Return the law of one cost; ``floor`` is that of one cost, in its unit."""
    seeds = sorted({seed for seed, _, _ in costs})
    most = grid.objects[-1]
    error = _DIFFERENCES * floor
    rows = np.array(
        [[_extra(costs, grid, seed, most, number) for number in grid.residents] for seed in seeds]
    ).reshape(len(seeds), len(grid.residents))
    curve = Curve(grid.residents, rows, error).complete()
    if not curve.sizes or curve.sizes[-1] != grid.residents[-1]:
        return StayLaw("unknown", "the largest number of residents was not measured")
    extras = tuple(float(value) for value in np.median(curve.rows, axis=0))
    if extras[-1] <= NOTICED * error:
        text = f"{extras[-1]:,.0f} instructions more beside {curve.sizes[-1]:,} residents"
        return StayLaw("free", text, extras=extras)
    verdict, reason, exponent = _grows_with_residents(curve)
    by_objects = _by_objects(costs, grid, seeds)
    for_each = by_objects is None or by_objects.exponent > _FOR_EACH_OBJECT
    slope = (extras[-1] - extras[-2]) / (curve.sizes[-1] - curve.sizes[-2])
    if for_each:
        slope = by_objects.each / curve.sizes[-1] if by_objects else slope / most
    return StayLaw(
        verdict,
        reason,
        exponent,
        by_objects.exponent if by_objects else None,
        slope,
        for_each,
        extras,
    )


def _grows_with_residents(curve: Curve) -> tuple[str, str, float | None]:
    """Return the verdict on the extras by the number of residents, why, and their exponent.

    No resident costs nothing, so two numbers of residents give an exponent: that from the fewest to
    the most. Its bounds are those of both extras.
    """
    means = curve.rows.mean(axis=0)
    errors = half_width(curve.rows, _CONFIDENCE) + curve.floor
    numbers = np.array(curve.sizes, dtype=np.float64)
    doublings = float(np.log(numbers[-1] / numbers[0]))
    few, most = float(means[0]), float(means[-1])
    low, high = (
        float(np.log((most + sign * errors[-1]) / (few - sign * errors[0]))) / doublings
        if most + sign * errors[-1] > 0 and few - sign * errors[0] > 0
        else sign * np.inf
        for sign in (-1, 1)
    )
    exponent = float(np.log(most / few)) / doublings if few > 0 else None
    # In proportion, each doubling would add what the residents have that it adds.
    shares = np.diff(means) / (most / numbers[-1] * np.diff(numbers))
    text = f"exponent {'-' if exponent is None else f'{exponent:.2f}'} [{low:.2f}, {high:.2f}]"
    if low > _LEAST_EXPONENT and (shares[-2:] > _LEAST_SHARE).all():
        return "pays", text, exponent
    if high <= _LEAST_EXPONENT:
        return "free", f"{text}: less than in proportion", exponent
    least = f"the last doublings add {shares[-2]:.0%} and {shares[-1]:.0%} of that in proportion"
    return "unknown", f"{text}; {least}", exponent


def _extra(costs: Costs, grid: StayGrid, seed: int, objects: int, residents: int) -> float:
    def cost(number: int, stay: str) -> float:
        return costs.get((seed, number, stay), np.nan)

    stay, none = grid.text(residents), grid.text(0)
    extra = cost(objects, stay) - cost(objects, none)
    return extra - (cost(0, stay) - cost(0, none)) if grid.baseline else extra


@dataclass(frozen=True)
class _ByObjects:
    """How the extra beside the most residents grows with the number of objects."""

    exponent: float
    each: float
    """What one object more pays for all residents, between the two largest numbers of objects."""


def _by_objects(costs: Costs, grid: StayGrid, seeds: Sequence[int]) -> _ByObjects | None:
    """Return None if fewer than three numbers of objects were measured, or the extra does not
    grow."""
    if len(grid.objects) < 3:
        return None
    rows = np.array(
        [
            [_extra(costs, grid, seed, number, grid.residents[-1]) for number in grid.objects]
            for seed in seeds
        ]
    )
    curve = Curve(grid.objects, rows, 0.0).complete()
    if curve.sizes != grid.objects:
        return None
    first, *_, before, last = curve.rows.mean(axis=0)
    if last <= 0 or first <= 0:
        return None
    # From the smallest number to the largest: an extra of no object is none.
    exponent = float(np.log(last / first) / np.log(grid.objects[-1] / grid.objects[0]))
    # What is paid once, however many objects there are, is no part of it.
    return _ByObjects(exponent, float(last - before) / (grid.objects[-1] - grid.objects[-2]))


def laws_of(measured: StayCosts, grid: StayGrid) -> dict[Cost, StayLaw]:
    """Return the law of each cost that was measured beside the residents of a grid."""
    wanted = {grid.text(number) for number in (0, *grid.residents)}
    laws: dict[Cost, StayLaw] = {}
    for cost, costs in measured.costs.items():
        these = {at: value for at, value in costs.items() if at[2] in wanted}
        if any(stay != grid.text(0) for _, _, stay in these):
            laws[cost] = law_of(these, grid, FLOORS[cost])
    return laws
