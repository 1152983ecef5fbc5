"""The law of what is paid for residents, from costs with a known law."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kteardown.rundir.counting import BootRecords
from kteardown_hunt.plan import NO_RESIDENTS, Case
from kteardown_hunt.stay_plan import DECLARED, StayGrid
from kteardown_hunt.stays import StayLaw, differing, law_of, laws_of, stay_costs
from unit.hunt.trial_records import ReportedTrial, reported

OBJECTS = (72, 144, 288)
RESIDENTS = (576, 1152, 2304, 4608)
FLOOR = 20_000.0
Cost = Callable[[int, int], float]

FREE: dict[str, Cost] = {
    "nothing": lambda n, m: 1e6 + 5e3 * n,
    "the residents end, too": lambda n, m: 5e3 * n + 2e3 * m,
    "a tree": lambda n, m: 5e3 * n + 20 * n * np.log2(m + 1),
    "one step": lambda n, m: 5e3 * n + (3e6 if m else 0),
}
PAYS: dict[str, Cost] = {
    "each object looks at all": lambda n, m: 5e3 * n + 12 * n * m,
    "and the residents end, too": lambda n, m: 5e3 * n + 2e3 * m + 12 * n * m,
    "the release looks at all once": lambda n, m: 5e3 * n + (800 * m if n else 0),
    "a square of the residents": lambda n, m: 5e3 * n + n * m * m / 500,
}


def law(cost: Cost, noise: float, seed: int = 1) -> StayLaw:
    grid = StayGrid(DECLARED, OBJECTS, RESIDENTS, baseline=True)
    rng = np.random.default_rng(seed)
    costs = {
        (boot, point.objects, point.stay): cost(point.objects, int(point.stay.split("=")[1]))
        * float(np.exp(rng.normal(0, noise)))
        + float(rng.uniform(0, FLOOR))
        for boot in range(3)
        for point in grid.points()
    }
    return law_of(costs, grid, FLOOR)


@pytest.mark.parametrize("name", PAYS)
def test_what_is_paid_for_residents_is_found(name: str) -> None:
    for seed in range(20):
        assert law(PAYS[name], 0.01, seed).verdict == "pays", seed


@pytest.mark.parametrize("name", FREE)
def test_what_does_not_grow_with_the_residents_is_not_found(name: str) -> None:
    for seed in range(50):
        assert law(FREE[name], 0.01, seed).verdict != "pays", seed


def test_the_law_says_who_pays_and_how_much() -> None:
    each = law(PAYS["each object looks at all"], 0.0)
    assert each.for_each_object
    assert each.instructions == pytest.approx(12, rel=0.05)
    assert each.objects_exponent == pytest.approx(1, abs=0.05)
    both = law(lambda n, m: 5e3 * n + 12 * n * m + (900 * m if n else 0), 0.0)
    assert both.for_each_object
    assert both.instructions == pytest.approx(12, rel=0.05)
    once = law(PAYS["the release looks at all once"], 0.0)
    assert not once.for_each_object
    assert once.instructions == pytest.approx(800, rel=0.05)


def test_without_the_largest_number_of_residents_nothing_is_known() -> None:
    grid = StayGrid("files", OBJECTS, RESIDENTS)
    costs = {
        (0, point.objects, point.stay): 1e6
        for point in grid.points()
        if point.stay != grid.text(RESIDENTS[-1])
    }
    assert law_of(costs, grid, FLOOR).verdict == "unknown"


def boot(*points: tuple[int, str, float | None]) -> BootRecords:
    """A boot with a trial for each number of objects, what stays, and its cost; None: it failed."""
    return reported(
        [
            ReportedTrial(
                objects, stay, {} if cost is None else {"sync_ns": cost}, detail="limit: nofile"
            )
            for objects, stay, cost in points
        ]
    )


def test_what_differs_less_than_the_guest_drifts_is_not_looked_at() -> None:
    none = NO_RESIDENTS
    ((_, costs),) = stay_costs([boot((9, none, 1e6), (9, "a=1", 2e6), (9, none, 1e6))]).items()
    assert differing(costs, ["a=1"]) == ["a=1"]
    ((_, costs),) = stay_costs([boot((9, none, 1e6), (9, "a=1", 2e6), (9, none, 1.8e6))]).items()
    assert differing(costs, ["a=1"]) == []


def test_a_resident_that_cannot_be_made_is_a_failure_with_its_limit() -> None:
    costs = stay_costs([boot((9, NO_RESIDENTS, 1e6), (9, "a=1", None))])["k", Case("a", "exit")]
    failure = costs.failed_beside("a=1")
    assert failure and "nofile" in failure.detail
    assert costs.failed_beside("b=1") is None


def test_laws_of_one_sort_of_residents_leave_others_out() -> None:
    measured = stay_costs(
        [boot(*((n, stay, 1e6) for n in OBJECTS for stay in (NO_RESIDENTS, "b=1")))]
    )["k", Case("a", "exit")]
    assert laws_of(measured, StayGrid("a", OBJECTS, RESIDENTS)) == {}
