"""Whether processes that release at once wait for each other, and for what, from counts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.model.record import BootEnd, BootStart, Record, Sample, TrialEnd, TrialStart
from kteardown.model.record_fields import ParamValue
from kteardown.model.sharing import SharedData, Sharing
from kteardown.rundir.counting import BootRecords
from kteardown_hunt.owners import (
    Release,
    Waited,
    counted_releases,
    failed_releases,
    scaling,
    scalings,
)
from kteardown_hunt.plan import Case

CASE = Case("a", "exit")
COSTS = (100, 200)
Releases = dict[tuple[int, int], dict[int, Release]]
FIXED = 5_000.0
"""What every release takes, however many objects it has."""


def release(ticks: float, owners: int, asleep: float = 0.0) -> Release:
    one = Release(ticks, asleep * owners, moves=ticks / 100, locked=ticks / 50)
    one.waited["tasklist_lock", ()] = Waited(ticks / 2, 1)
    one.waited["", ("do_exit", "release_task")] = Waited(ticks / 8, 12)
    return one


def releases(
    ratio: float, owners: int, noise: float = 0.02, costs: tuple[int, ...] = (100, 200)
) -> dict[tuple[int, int], dict[int, Release]]:
    return {
        (seed, cost): {
            objects: release(
                FIXED + 1000 * objects * ratio * (1 + noise * (-1) ** seed * (owners > 1)), owners
            )
            for objects in (50, 100)
        }
        for seed in range(4)
        for cost in costs
    }


@pytest.mark.parametrize(
    ("owners", "ratio", "verdict"),
    [
        (2, 1.0, "parallel"),
        (2, 1.9, "serial"),
        (2, 2.6, "convoy"),
        (4, 1.2, "parallel"),
        (4, 4.0, "serial"),
        (4, 6.0, "convoy"),
    ],
)
def test_the_verdict_is_that_of_the_ratio(owners: int, ratio: float, verdict: str) -> None:
    result = scaling(CASE, owners, releases(1.0, 1), releases(ratio, owners), COSTS, 2)
    assert result is not None
    assert (result.verdict, result.boots, result.objects) == (verdict, 8, 100)
    assert result.ci[0] < ratio < result.ci[1]


def test_seeds_that_differ_much_decide_nothing() -> None:
    result = scaling(CASE, 2, releases(1.0, 1), releases(1.6, 2, noise=0.5), COSTS, 2)
    assert result is not None
    assert result.verdict == "unknown"


def test_a_verdict_needs_both_costs_of_a_moved_line() -> None:
    alone = releases(1.0, 1)
    together = releases(1.1, 2, costs=(100,)) | releases(1.9, 2, costs=(200,))
    result = scaling(CASE, 2, alone, together, COSTS, 2)
    assert result is not None
    assert (result.verdict, result.ci[0] < 1.2, result.ci[1] > 1.8) == ("unknown", True, True)


def test_what_a_release_pays_once_has_no_part_in_the_ratio() -> None:
    alone = {(0, 100): {50: release(1e6 + 50, 1), 100: release(1e6 + 100, 1)}}
    together = {(0, 100): {50: release(1e6 + 100, 2), 100: release(1e6 + 200, 2)}}
    result = scaling(CASE, 2, alone, together, COSTS[:1], 1)
    assert result is not None
    assert result.ratio == pytest.approx(2.0)
    # One seed shows no scatter.
    assert result.ci == pytest.approx((2.0, 2.0))


def test_nothing_is_said_without_both_numbers_of_objects() -> None:
    assert scaling(CASE, 2, {}, releases(2.0, 2), COSTS, 2) is None
    one_size = {(0, 100): {50: release(1e6, 2)}}
    assert scaling(CASE, 2, releases(1.0, 1), one_size, COSTS, 2) is None


def test_the_shares_are_of_all_waiting() -> None:
    together = {(0, 100): {50: release(50e3, 2), 100: release(100e3, 2, asleep=18_750.0)}}
    result = scaling(CASE, 2, {(0, 100): releases(1.0, 1)[0, 100]}, together, COSTS[:1], 1)
    assert result is not None
    # Of the larger number: 50,000 ticks for the lock, 12,500 for other lines, 37,500 asleep.
    assert [(data.name, data.movers) for data in result.data] == [
        ("tasklist_lock", ()),
        ("", ("do_exit", "release_task")),
    ]
    assert [data.share for data in result.data] == pytest.approx([0.5, 0.125])
    assert [data.lines for data in result.data] == [1, 12]
    assert result.asleep_share == pytest.approx(0.375)
    # 500 moves of 100 objects, 50 of each process.
    assert (result.moves_each, result.locked_each) == (5.0, 10.0)


@given(st.floats(1e-3, 1e3))
def test_the_unit_of_the_clock_changes_nothing(unit: float) -> None:
    def scaled(of: Releases) -> Releases:
        return {
            at: {n: Release(one.elapsed_ticks * unit) for n, one in by.items()}
            for at, by in of.items()
        }

    alone, together = releases(1.0, 1), releases(2.6, 2)
    result = scaling(CASE, 2, alone, together, COSTS, 2)
    other = scaling(CASE, 2, scaled(alone), scaled(together), COSTS, 2)
    assert result is not None and other is not None
    assert other.ratio == pytest.approx(result.ratio)
    assert other.verdict == result.verdict


def boot(number: int, ticks: dict[tuple[int, int], float], transfer_ticks: int) -> BootRecords:
    """A boot with a trial for each number of processes and of objects."""
    records: list[Record] = []
    for index, ((owners, objects), elapsed) in enumerate(ticks.items()):
        params: dict[str, ParamValue] = {
            "kind": "a",
            "way": "exit",
            "user": "root",
            "objects": objects,
            "owners": owners,
            "transfer_ticks": transfer_ticks,
        }
        data = SharedData(name="l", lines=1, cpus=2, moves=5, movers=(), waited_ticks=elapsed / 2)
        records += [
            TrialStart(trial=index, workload="hunt", params=params),
            Sample(trial=index, repetition=0, metric="line_moves_count", value=5.0),
            Sample(trial=index, repetition=0, metric="locked_count", value=7.0),
            Sharing(
                trial=index,
                repetition=0,
                elapsed_ticks=elapsed,
                busy_ticks=(elapsed, 0.0, 500.0),
                functions=(),
                data=(data,),
            ),
            TrialEnd(trial=index, status="ok"),
        ]
    start = BootStart(
        kernel="kernel",
        block=number,
        seed=1001 + number,
        acceleration="icount",
        host_load=0,
        started_at="2026-01-01T00:00:00",
    )
    end = BootEnd(
        outcome="ok", detail="", duration_s=1, first_record_s=0.5, command=[], host_load=0
    )
    return BootRecords(number, 0, start, end, tuple(records))


def test_counts_are_read_from_the_records_of_each_boot() -> None:
    ticks = {(1, 10): 1e4, (1, 20): 2e4, (2, 10): 3e4, (2, 20): 6e4}
    boots = [boot(number, ticks, cost) for number in range(3) for cost in (100, 200)]
    counted = counted_releases(boots)
    assert {at: sorted(by) for at, by in counted[CASE, 2].items()} == {
        (1001 + number, cost): [10, 20] for number in range(3) for cost in (100, 200)
    }
    (result,) = scalings(counted, {CASE: "linear"}, COSTS, 2)
    assert (result.kind, result.way, result.user, result.alone) == ("a", "exit", "root", "linear")
    assert (result.owners, result.objects, result.boots, result.verdict) == (2, 20, 6, "convoy")
    assert result.ratio == pytest.approx(3)
    # One process was busy all the time, the other one not at all; the third CPU has none.
    assert result.asleep_share == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("costs", "seeds", "verdict"),
    [((100, 200), 2, "serial"), ((100,), 2, "unknown"), ((100, 200), 1, "unknown")],
)
def test_a_verdict_needs_enough_seeds_of_each_cost(
    costs: tuple[int, ...], seeds: int, verdict: str
) -> None:
    def some(of: Releases) -> Releases:
        return {at: by for at, by in of.items() if at[0] < seeds and at[1] in costs}

    alone, together = some(releases(1.0, 1, noise=0)), some(releases(1.9, 2, noise=0))
    result = scaling(CASE, 2, alone, together, COSTS, 2)
    assert result is not None
    assert (result.verdict, result.boots) == (verdict, len(costs) * seeds)


def test_a_guest_that_fails_is_named_with_its_processes() -> None:
    failing = boot(0, {(1, 10): 1e4, (2, 10): 3e4, (2, 20): 5e4}, 100)
    end = failing.end.model_copy(update={"outcome": "panic", "detail": "Oops"})
    # The guest dies in its last trial.
    records = tuple(
        record
        for record in failing.records
        if not (isinstance(record, TrialEnd) and record.trial == 2)
    )
    (failure,) = failed_releases([replace(failing, end=end, records=records)])
    assert (failure.kind, failure.way, failure.owners) == ("a", "exit", 2)
    assert (failure.failed.outcome, failure.failed.objects) == ("panic", 20)
