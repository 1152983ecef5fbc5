"""The function that is responsible for the cost of a find."""

from __future__ import annotations

import pytest

from kteardown.analysis.stretches import Stretches, Weight
from kteardown.model.record import (
    ProfileStretch,
)
from kteardown_hunt.functions import paying_function, place_of


@pytest.mark.parametrize(
    ("name", "callers", "place"),
    [
        ("do_sigtimedwait", ("__x64_sys_rt_sigtimedwait",), "do_sigtimedwait()"),
        ("_raw_write_unlock_irq", ("do_exit", "do_group_exit"), "do_exit()"),
        (
            "finish_task_switch",
            ("__schedule", "schedule", "fcntl_setlk", "do_fcntl"),
            "fcntl_setlk()",
        ),
        (
            "finish_task_switch",
            ("__schedule", "schedule", "schedule_timeout", "__wait_for_common"),
            None,
        ),
        ("_raw_spin_unlock_irqrestore", ("__wake_up", "perf_event_wakeup"), "perf_event_wakeup()"),
        (
            "generic_exec_single",
            ("__smp_call_function_single", "perf_event_open"),
            "perf_event_open()",
        ),
        (
            "clear_highpages_kasan_tagged",
            ("__alloc_pages_noprof", "do_swap_page"),
            "do_swap_page()",
        ),
        ("kmem_cache_free", ("unlink_anon_vmas",), "unlink_anon_vmas()"),
        ("kfree", ("free_fib_info_rcu",), "free_fib_info_rcu()"),
        ("pcpu_alloc_noprof", ("fib_nh_common_init",), "pcpu_alloc_noprof()"),
        ("__wait_rcu_gp", ("synchronize_rcu", "perf_trace_destroy"), "perf_trace_destroy()"),
        ("__synchronize_srcu", ("uprobe_unregister_sync",), "uprobe_unregister_sync()"),
        ("free_pid", ("release_task",), "free_pid()"),
        ("free_nsproxy", ("do_exit",), "free_nsproxy()"),
    ],
)
def test_the_place_is_what_the_switch_of_tasks_or_the_unlock_is_for(
    name: str, callers: tuple[str, ...], place: str | None
) -> None:
    assert place_of(name, callers) == (place or f"{name}()")


def sampled(**stacks: int) -> Stretches:
    """One stretch with so many samples of 1 ns in each function."""
    stretches = Stretches("kernel", "hunt", ())
    period = ProfileStretch(
        trial=0, repetition=0, period_ns=1, cpus=1, stretch_ns=100, samples=1, lost=0
    )
    stretches.periods.append(period)
    stretches.boots[0] += 1
    for name, count in stacks.items():
        stretches.stacks[f"entry;{name}"] = Weight(count, count, float(count))
    return stretches


def test_what_residents_cost_by_themselves_is_not_paid_for_them() -> None:
    """``frees`` ends residents, with and without objects; ``walks`` looks at them."""
    function = paying_function(
        sampled(frees=1000, walks=200, closes=50),
        [sampled(closes=45), sampled(frees=990, closes=5)],
        [sampled()],
    )
    assert function is not None
    assert function.name == "walks"
    assert 0.9 < function.share < 1
    assert paying_function(sampled(closes=5), [sampled(closes=5)]) is None
