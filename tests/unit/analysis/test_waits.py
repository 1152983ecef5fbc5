"""Where tasks wait, by their stacks."""

from __future__ import annotations

import pytest

from kteardown.analysis.waits import WaitLocation, _events, _Waits, event_of, location_of
from kteardown.model.script_records import Wait, WaitedStretch

CALL = "entry_SYSCALL_64_after_hwframe;do_syscall_64;"
THREAD = "ret_from_fork_asm;ret_from_fork;kthread;"
SLEEP = "schedule_timeout;schedule;__schedule"


@pytest.mark.parametrize(
    ("stack", "function", "callers"),
    [
        (
            f"{CALL}__x64_sys_exit_group;do_exit;__fput;uprobe_unregister_sync;"
            "synchronize_rcu_tasks_trace;synchronize_rcu_tasks_generic;__wait_rcu_gp;"
            f"__wait_for_common;{SLEEP}",
            "synchronize_rcu_tasks_trace",
            ("uprobe_unregister_sync", "__fput", "do_exit"),
        ),
        (
            f"{CALL}__x64_sys_openat;path_openat;down_write;rwsem_down_write_slowpath;"
            "schedule_preempt_disabled;schedule;__schedule",
            "down_write",
            ("path_openat",),
        ),
        (
            f"{CALL}ksys_write;wbt_wait;rq_qos_wait;io_schedule;schedule;__schedule",
            "rq_qos_wait",
            ("wbt_wait", "ksys_write"),
        ),
        (
            f"{CALL}__do_sys_vfork;kernel_clone;mutex_lock.isra.0;__mutex_lock.constprop.0;{SLEEP}",
            "mutex_lock",
            ("kernel_clone",),
        ),
    ],
)
def test_a_process_waits_in_the_innermost_function_that_says_for_what(
    stack: str, function: str, callers: tuple[str, ...]
) -> None:
    assert location_of(stack) == WaitLocation(
        function, callers, is_process=True, waits_for="kernel"
    )


def test_a_process_that_waits_for_another_one_is_apart() -> None:
    place = location_of(f"{CALL}__x64_sys_wait4;kernel_wait4;do_wait;schedule;__schedule")
    assert place is not None
    assert (place.function, place.waits_for) == ("do_wait", "process")


def test_a_process_that_sleeps_because_it_wants_to_is_apart() -> None:
    place = location_of(f"{CALL}__x64_sys_clock_nanosleep;common_nsleep;hrtimer_nanosleep;{SLEEP}")
    assert place is not None
    assert (place.function, place.waits_for) == ("hrtimer_nanosleep", "time")


def test_of_kernel_threads_only_work_items_wait() -> None:
    work = f"{THREAD}worker_thread;process_one_work;cleanup_net;synchronize_rcu_expedited;{SLEEP}"
    place = location_of(work)
    assert place is not None
    assert (place.function, place.is_process) == ("synchronize_rcu_expedited", False)
    assert place.callers[:2] == ("cleanup_net", "process_one_work")
    assert location_of(f"{THREAD}worker_thread;schedule;__schedule") is None
    assert location_of(f"{THREAD}rcu_gp_kthread;rcu_gp_fqs_loop;{SLEEP}") is None
    assert location_of("ret_from_fork_asm;ret_from_fork;kthreadd;schedule;__schedule") is None


def test_what_has_ended_does_not_wait() -> None:
    assert location_of(f"{CALL}__x64_sys_exit_group;do_exit;do_task_dead;__schedule") is None


@pytest.mark.parametrize("stack", ["", ";;", "__schedule", "schedule;__schedule", "[unknown]"])
def test_any_text_of_a_guest_has_an_answer(stack: str) -> None:
    place = location_of(stack)
    assert place is None or place.function in stack


GONE = f"{CALL}__x64_sys_close;__fput;"
COMPLETION = "wait_for_completion;__wait_for_common;"


@pytest.mark.parametrize(
    ("stack", "event"),
    [
        # 6.12: synchronize_rcu() jumps to synchronize_rcu_normal(), which is not in every stack.
        (f"{GONE}psi_trigger_destroy;synchronize_rcu_normal;__wait_rcu_gp;{SLEEP}", "rcu"),
        (f"{GONE}synchronize_rcu;synchronize_rcu_normal.part.0;{COMPLETION}{SLEEP}", "rcu"),
        (f"{GONE}synchronize_rcu_expedited;schedule;__schedule", "rcu_expedited"),
        (f"{GONE}synchronize_srcu;__synchronize_srcu;{COMPLETION}{SLEEP}", "srcu"),
        (f"{GONE}fsnotify_destroy_group;__synchronize_srcu;{COMPLETION}{SLEEP}", "srcu"),
        (
            f"{GONE}synchronize_rcu_tasks_trace;synchronize_rcu_tasks_generic;__wait_rcu_gp;{SLEEP}",
            "tasks_trace",
        ),
        (f"{GONE}rcu_barrier;{COMPLETION}{SLEEP}", "barrier"),
        (
            f"{GONE}stop_machine;stop_machine_cpuslocked;stop_cpus;{COMPLETION}{SLEEP}",
            "stop_machine",
        ),
        (f"{GONE}cancel_work_sync;__flush_work;{COMPLETION}{SLEEP}", "flush"),
        (
            f"{THREAD}worker_thread;process_one_work;cleanup_net;rcu_barrier;{COMPLETION}{SLEEP}",
            "barrier",
        ),
        # Another task waits for the grace period, or the task only gives up its CPU.
        (f"{GONE}rcu_barrier;mutex_lock;__mutex_lock.constprop.0;{SLEEP}", None),
        (
            f"{GONE}synchronize_rcu_expedited;__cond_resched;preempt_schedule_common;__schedule",
            None,
        ),
        (
            f"{GONE}synchronize_rcu;asm_sysvec_apic_timer_interrupt;preempt_schedule_irq;__schedule",
            None,
        ),
        (f"{GONE}__flush_work;some_callee;schedule;__schedule", None),
        # The threads of RCU itself, and a task that waits for something else.
        (f"{THREAD}rcu_tasks_kthread;rcu_tasks_one_gp;synchronize_rcu;{SLEEP}", None),
        (f"{GONE}wbt_wait;io_schedule;schedule;__schedule", None),
    ],
)
def test_the_event_that_a_task_waits_for(stack: str, event: str | None) -> None:
    assert event_of(stack) == event


def test_events_are_counted_by_stretch_and_by_object() -> None:
    rcu = f"{GONE}psi_trigger_destroy;synchronize_rcu_normal;__wait_rcu_gp;{SLEEP}"
    other = f"{GONE}swap;synchronize_rcu;{SLEEP}"
    once = f"{GONE}stop_cpus;{COMPLETION}{SLEEP}"

    def waits(size: int, stacks: dict[str, int]) -> _Waits:
        at_point = _Waits("base", "x", (("N", size),))
        for _ in range(2):
            at_point.stretches.append(
                WaitedStretch(trial=0, repetition=0, stretch_ns=10**9, waits=1, lost=0)
            )
            for stack, count in stacks.items():
                at_point.add(Wait(trial=0, repetition=0, stack=stack, count=count, ns=1000 * count))
        return at_point

    smallest = waits(10, {rcu: 10, once: 1})
    largest = waits(50, {rcu: 90, other: 2, once: 1, f"{GONE}do_wait;{SLEEP}": 7})
    found = _events(smallest, largest, 40)
    assert [(e.event, e.count, e.ns, e.count_per_object) for e in found] == [
        ("rcu", 92, 92_000, 2.05),
        ("stop_machine", 1, 1000, 0),
    ]
    # One size says nothing of one more object.
    assert [e.count_per_object for e in _events(largest, largest, 0)] == [None, None]
