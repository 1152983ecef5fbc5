"""Where tasks wait, by their stacks."""

from __future__ import annotations

import pytest

from kteardown.analysis.waits import WaitLocation, location_of

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
