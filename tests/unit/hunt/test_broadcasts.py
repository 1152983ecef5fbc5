"""What interrupts another CPU once for each object."""

from __future__ import annotations

from kteardown.rundir.counting import BootRecords
from kteardown_hunt.broadcasts import (
    broadcast_points,
    broadcast_results,
    counts_each,
    is_broadcast,
    middle_counts,
)
from kteardown_hunt.finds import MeasuredCase
from kteardown_hunt.plan import Case
from unit.hunt.trial_records import ReportedTrial, reported

CASE = Case("a", "exit")


def boot(kernel: str, seed: int, calls: dict[int, int], switches: int = 0) -> BootRecords:
    """A boot with one trial for each number of objects, and how many calls it counted.

    ``switches``: of tasks, for each object.
    """
    counted = [
        ReportedTrial(
            objects,
            samples={
                "calls_count": count,
                "flushes_count": 3,
                "switches_count": switches * objects,
            },
        )
        for objects, count in calls.items()
    ]
    return reported(counted, kernel, seed)


def test_calls_that_grow_with_the_objects_are_counted_for_each() -> None:
    boots = [
        boot("k", 1, {72: 80, 288: 296}),
        boot("k", 2, {72: 80, 288: 512}),
        boot("other", 1, {72: 8, 288: 8}),
    ]
    (result,) = broadcast_results(counts_each(boots), "k", {CASE: 288})
    assert (result.calls_each, result.flushes_each) == ((1.0, 2.0), (0.0, 0.0))
    assert (result.seeds, result.elsewhere) == (2, {"other": (0.0, 0.0)})


def test_calls_that_do_not_grow_with_every_seed_are_no_result() -> None:
    boots = [boot("k", 1, {72: 80, 288: 296}), boot("k", 2, {72: 80, 288: 90})]
    each = counts_each(boots)
    assert not is_broadcast(each["k", CASE])
    assert broadcast_results(each, "k", {CASE: 288}) == ()


def test_calls_that_wake_tasks_are_no_result() -> None:
    each = counts_each([boot("k", 1, {72: 144, 288: 576}, switches=3)])
    assert not is_broadcast(each["k", CASE])
    assert middle_counts(each["k", CASE])["switches_count"] == 3


def test_fewer_switches_for_more_objects_are_no_calls() -> None:
    each = counts_each([boot("k", 1, {1: 4, 5: 2}, switches=-3)])
    assert not is_broadcast(each["k", CASE])


def test_cases_with_too_few_objects_are_left_out() -> None:
    few = MeasuredCase(CASE, {"sync_ns": {(1, 3): 1.0}})
    many = MeasuredCase(CASE, {"sync_ns": {(1, size): 1.0 for size in (72, 288, 1152)}})
    assert broadcast_points({CASE: few}) == {}
    points = broadcast_points({CASE: many})[CASE]
    assert [point.objects for point in points] == [72, 288]
