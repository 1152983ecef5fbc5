"""The completeness of a run, from its records."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kteardown.model.plan import Plan, PlannedBoot
from kteardown.model.record import BootEnd, BootStart, Outcome
from kteardown.rundir.completeness import complete_blocks, measured_s, spent, up_to
from kteardown.rundir.counting import BootRecords

KERNELS = ("base", "v")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def plan(blocks: int) -> Plan:
    boots = tuple(
        PlannedBoot(index=2 * block + n, block=block, kernel=kernel, seed=1, trials=())
        for block in range(blocks)
        for n, kernel in enumerate(KERNELS)
    )
    return Plan(boots=boots, cpus=1, memory_mb=64, silence_s=1)


def boot(index: int, outcome: Outcome = "ok", at: float = 0.0, lasts: float = 10.0) -> BootRecords:
    start = BootStart(
        kernel=KERNELS[index % 2],
        block=index // 2,
        seed=1,
        acceleration="mttcg",
        host_load=0,
        started_at=(NOON + timedelta(seconds=at)).isoformat(timespec="milliseconds"),
    )
    end = BootEnd(outcome=outcome, duration_s=lasts, first_record_s=1, command=[], host_load=0)
    return BootRecords(index, 0, start, end, ())


def test_a_block_is_complete_when_every_boot_of_it_ended() -> None:
    assert complete_blocks(plan(4), [], 4) == 0
    assert complete_blocks(plan(4), [boot(n) for n in (0, 1, 2, 4, 5)], 4) == 1
    assert complete_blocks(plan(4), [boot(n) for n in range(8)], 4) == 4


def test_blocks_after_those_of_the_design_need_not_be_complete() -> None:
    assert complete_blocks(plan(6), [boot(n) for n in range(8)], 4) == 4


def test_a_boot_that_failed_because_of_the_host_is_not_complete() -> None:
    assert complete_blocks(plan(2), [boot(0), boot(1, "infrastructure-error")], 2) == 0


def test_skipped_boots_of_a_failing_kernel_are_not_missing() -> None:
    boots = [boot(0), boot(1, "panic"), boot(2), boot(3, "panic"), boot(4), boot(6)]
    assert complete_blocks(plan(4), boots, 4) == 4


def test_the_part_of_a_plan_up_to_a_look() -> None:
    assert [b.index for b in up_to(plan(4), 2).boots] == [0, 1, 2, 3]


def test_time_in_which_several_guests_ran_is_counted_once() -> None:
    assert measured_s([boot(0, at=0), boot(1, at=5), boot(2, at=100)]) == pytest.approx(25)
    assert measured_s([boot(0, at=0, lasts=50), boot(1, at=5)]) == pytest.approx(50)
    assert measured_s([]) == 0


def test_the_budget_is_spent_when_the_next_look_would_exceed_it() -> None:
    four = [boot(n, at=10 * n) for n in range(8)]
    looks = (4, 6, 8)
    assert not spent(four, looks, 4, None)
    assert not spent(four, looks, 4, 120)
    assert spent(four, looks, 4, 119)
    assert not spent(four[:6], looks, 3, 1)  # Before the first look nothing can be concluded.
    assert not spent([boot(n, at=10 * n) for n in range(16)], looks, 8, 1)  # All are there.
    # Boots after the look, before the process was killed, change nothing.
    assert spent([*four, boot(8, at=80)], looks, 4, 120) == spent(four, looks, 4, 120)
