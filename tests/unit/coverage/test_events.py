"""From entries of functions to events, and which of them a change makes different."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.coverage.attribute import Entered
from kteardown.coverage.events import NAMES, compare_events, events_of
from kteardown.model.events import EVENTS, EventFigure

RECORDED = Path(__file__).parents[2] / "data" / "events" / "psi_trigger.json"


def entries(*given: tuple[str, str, int]) -> list[Entered]:
    """Each with its callers, outermost last, in one text."""
    return [Entered(name, frozenset(callers.split()), times) for name, callers, times in given]


@pytest.mark.parametrize(
    ("given", "events"),
    [
        # 6.12: what waits is woken by a callback, which is queued through a pointer and, without
        # CONFIG_RCU_LAZY, by an inline function.
        (
            [
                ("synchronize_rcu", "psi_trigger_destroy", 3),
                ("synchronize_rcu", "rcu_tasks_trace_postscan", 4),
                ("__wait_rcu_gp", "synchronize_rcu_normal synchronize_rcu", 3),
                ("call_rcu_hurry", "", 3),
                ("call_rcu", "call_rcu_hurry", 3),
                ("call_rcu", "__put_task_struct", 5),
            ],
            {"rcu": 3, "callbacks": 5},
        ),
        # While the kernel suspends, all grace periods are expedited.
        (
            [
                ("synchronize_rcu", "percpu_down_write", 2),
                ("synchronize_rcu_expedited", "synchronize_rcu", 2),
                ("synchronize_rcu_expedited", "namespace_unlock", 1),
            ],
            {"rcu": 2, "rcu_expedited": 1},
        ),
        # 7.x: RCU tasks trace is SRCU, and an idle domain is expedited.
        (
            [
                ("synchronize_rcu_tasks_trace", "uprobe_unregister_sync", 4),
                ("synchronize_srcu", "synchronize_rcu_tasks_trace uprobe_unregister_sync", 4),
                ("synchronize_srcu_expedited", "synchronize_srcu", 5),
                ("synchronize_srcu", "fsnotify_mark_destroy_workfn", 1),
                ("call_rcu_tasks_trace", "bpf_link_free", 2),
                ("call_srcu", "call_rcu_tasks_trace bpf_link_free", 2),
            ],
            {"srcu": 1, "tasks_trace": 4, "callbacks": 2},
        ),
        # A TLB flush is no other function call, and stop_machine() is one stop.
        (
            [
                ("flush_tlb_multi", "flush_tlb_mm_range", 6),
                ("on_each_cpu_cond_mask", "on_each_cpu_mask native_flush_tlb_multi", 6),
                ("on_each_cpu_cond_mask", "on_each_cpu text_poke_sync", 2),
                ("stop_machine", "timekeeping_notify", 1),
                ("stop_machine_cpuslocked", "stop_machine", 1),
                ("stop_machine_cpuslocked", "takedown_cpu", 1),
            ],
            {"ipi": 2, "tlb": 6, "stop_machine": 2},
        ),
        ([("kmalloc", "", 7)], {}),
    ],
)
def test_each_event_is_counted_once(
    given: Sequence[tuple[str, str, int]], events: dict[str, int]
) -> None:
    assert events_of(entries(*given)) == events


@given(
    st.lists(
        st.builds(
            Entered,
            st.sampled_from(sorted(NAMES)),
            st.frozensets(st.sampled_from([*sorted(NAMES), "vfs_read"]), max_size=2),
            st.integers(0, 1000),
        )
    )
)
def test_no_entry_is_two_events(entered: list[Entered]) -> None:
    events = events_of(entered)
    assert sum(events.values()) <= sum(entry.times for entry in entered)
    assert all(count > 0 for count in events.values())


def test_recorded_counts_of_a_patch_that_replaces_a_wait_by_a_callback() -> None:
    """6.12 at 10 and 20 triggers, which psi_trigger_destroy() frees after synchronize_rcu() or by
    call_rcu()."""
    recorded = json.loads(RECORDED.read_text())
    sides = [
        [events_of(Entered(name, frozenset(callers), times) for name, callers, times in side)]
        for kernel in ("base", "changed")
        for side in recorded[kernel]
    ]
    assert [side[0]["rcu"] for side in sides] == [11, 21, 1, 1]
    shown = [f for f in compare_events(sides, "N", 10) if f.shown]
    assert [(f.event, f.objects, f.base, f.changed) for f in shown] == [
        ("rcu", "N", (1,), (0,)),
        ("callbacks", "N", (0.2,), (1.2,)),
        ("switch", "N", (5.6,), (-0.3,)),
    ]


def test_the_words_of_an_event() -> None:
    assert len({kind.label for kind in EVENTS.values()}) == len(EVENTS)
    # A function that means two events would be counted twice.
    functions = [name for kind in EVENTS.values() for name in kind.functions]
    waits = [name for kind in EVENTS.values() for name in kind.waits_in]
    assert len(set(functions)) == len(functions)
    assert len(set(waits)) == len(waits)


def figures(
    event: str, base: Sequence[Sequence[int]], changed: Sequence[Sequence[int]], objects: int = 10
) -> EventFigure:
    """``base`` and ``changed``: the counts at both sizes, by seed."""
    sides = [[{event: n} for n in side] for side in (*base, *changed)]
    (figure,) = compare_events(sides, "N", objects)
    return figure


def test_a_wait_that_becomes_a_callback() -> None:
    waits = figures("rcu", [[11, 11, 11], [21, 21, 21]], [[1, 1, 1], [1, 1, 1]])
    assert (waits.objects, waits.base, waits.changed) == ("N", (1, 1, 1), (0, 0, 0))
    assert waits.differs
    assert waits.shown


@pytest.mark.parametrize(
    ("event", "base", "changed"),
    [
        # The kernel changes its clock source in one of the stretches.
        ("stop_machine", [[0, 0, 0], [1, 1, 1]], [[1, 1, 1], [0, 0, 0]]),
        ("stop_machine", [[5, 5, 5], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]),
        # Seeds of one kernel differ as much as the kernels.
        ("switch", [[100, 103, 99], [205, 201, 210]], [[90, 88, 95], [190, 199, 193]]),
        # One seed does not show by how much seeds differ.
        ("switch", [[100], [205]], [[90], [190]]),
        # So many for each object, with both kernels, that nobody waits for.
        ("callbacks", [[100], [110]], [[100], [110]]),
    ],
)
def test_what_is_not_shown(
    event: str, base: Sequence[Sequence[int]], changed: Sequence[Sequence[int]]
) -> None:
    assert not figures(event, base, changed).shown


def test_one_seed_is_enough_for_a_wait_that_is_gone() -> None:
    waits = figures("rcu", [[11], [21]], [[1], [1]])
    assert (waits.objects, waits.base, waits.changed, waits.shown) == ("N", (1,), (0,), True)


def test_a_wait_for_each_object_is_shown_though_it_does_not_differ() -> None:
    waits = figures("srcu", [[5, 5], [15, 15]], [[5, 5], [15, 15]])
    assert not waits.differs
    assert waits.shown


def test_what_happens_once_for_all_objects_is_a_number_in_a_stretch() -> None:
    stops = figures("stop_machine", [[4, 4], [4, 4]], [[0, 0], [0, 0]])
    assert (stops.objects, stops.base, stops.changed) == ("", (4, 4), (0, 0))
    assert stops.shown
    # A workload with one size.
    alone = figures("flush", [[8], [8]], [[2], [2]], objects=0)
    assert (alone.objects, alone.shown) == ("", True)


def test_what_never_happens_has_no_figure() -> None:
    assert compare_events([[{}], [{}], [{}], [{}]], "N", 10) == []


@given(st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3), min_size=4, max_size=4))
def test_base_and_variant_are_the_same_as_themselves(sides: list[list[int]]) -> None:
    counts = [[{"work": n} for n in side] for side in sides]
    for figure in compare_events([*counts[:2], *counts[:2]], "N", 10):
        assert not figure.differs
    one_way = compare_events(counts, "N", 10)
    other_way = compare_events([*counts[2:], *counts[:2]], "N", 10)
    assert [f.differs for f in one_way] == [f.differs for f in other_way]
