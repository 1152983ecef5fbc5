"""What the screen of a hunt asks for, from recorded boots."""

from __future__ import annotations

from kteardown_hunt import finds as finds_module
from kteardown_hunt.finds import MeasuredCase
from unit.hunt.recorded import FLOCKS, KINDS, ZOMBIES, stage


def test_the_screen_asks_for_both_up_to_the_budget() -> None:
    screened = stage("screen")
    assert finds_module.worth_confirming(screened.values()) == {FLOCKS: 4608, ZOMBIES: 1152}
    assert screened[FLOCKS].beyond_budget == 18432
    assert screened[ZOMBIES].beyond_budget == 4608


def test_memory_at_one_size_or_two_asks_for_nothing() -> None:
    linear = {(1, size): 100_000.0 * size for size in (72, 288, 1152, 4608)}
    figures = {f"{cost}_ns": linear for cost in ("sync", "deferred", "make")}
    for sizes in [(4608,), (1152, 4608)]:
        few = {"held_kb": {(1, size): 40_000.0 * size for size in sizes}}
        assert not finds_module.worth_confirming([MeasuredCase(FLOCKS, figures | few)])
    square = {"held_kb": {(1, size): size**2 / 100 for size in (72, 288, 1152, 4608)}}
    assert finds_module.worth_confirming([MeasuredCase(FLOCKS, figures | square)]) == {FLOCKS: 4608}


def test_memory_that_begins_in_slabs_that_are_there_asks_for_nothing() -> None:
    """Recorded: processes that wait for a byte of a pipe, kB."""
    held = {"held_kb": {(1, 72): 2032.0, (1, 288): 11612.0, (1, 1152): 56404.0}}
    assert not finds_module.worth_confirming([MeasuredCase(FLOCKS, held)])


def test_a_size_that_was_left_out_and_measured_later_is_not_beyond_the_budget() -> None:
    measured_later = MeasuredCase(FLOCKS, {"sync_ns": {(1, 72): 1.0, (1, 288): 4.0}})
    measured_later.left_out |= {288, 1152}
    assert measured_later.beyond_budget == 1152
    measured_later.left_out.remove(1152)
    assert measured_later.beyond_budget is None


def test_after_one_seed_only_what_may_still_grow_is_confirmed() -> None:
    sizes = [144 * 2**n for n in range(6)]
    linear = {"sync_ns": {(1, size): 1000.0 * size for size in sizes}}
    square = {"sync_ns": {(1, size): 10.0 * size**2 for size in sizes}}
    # What made the screen ask: one size that is too dear, which is no law.
    step = {"sync_ns": {(1, size): 1000.0 * size + 5e6 * (size > 1000) for size in sizes}}
    assert finds_module.may_grow(MeasuredCase(FLOCKS, square))
    assert not finds_module.may_grow(MeasuredCase(FLOCKS, linear))
    assert not finds_module.may_grow(MeasuredCase(FLOCKS, step))


def test_deferred_work_of_a_few_million_instructions_asks_for_a_confirmation() -> None:
    """Recorded: masters of pseudoterminals, closed one by one."""
    deferred = {
        "deferred_ns": {(1, 18): 58e3, (1, 72): 449e3, (1, 288): 1_815e3, (1, 1152): 10_485e3}
    }
    assert finds_module.worth_confirming([MeasuredCase(FLOCKS, deferred)]) == {FLOCKS: 1152}


def test_what_the_screen_does_not_ask_for_is_never_superlinear() -> None:
    held = {"held_kb": {(1, size): 40.0 * size**1.2 for size in (72, 288, 1152, 4608)}}
    (case,) = finds_module.case_results(KINDS, {FLOCKS: MeasuredCase(FLOCKS, held)}, {}, {}, {})
    growth = case.growth["held"]
    assert growth.verdict == "unknown"
    assert growth.reason.startswith("exponents ")
    assert growth.reason.endswith("too little to be confirmed")
