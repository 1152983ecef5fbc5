"""The function that is responsible for the cost of a find."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.analysis.stretches import Stretches, Weight
from kteardown.model.record import (
    BootEnd,
    BootStart,
    ProfileStretch,
    Record,
    Sample,
    TrialEnd,
    TrialStart,
)
from kteardown.model.record_fields import ParamValue
from kteardown.rundir.counting import BootRecords
from kteardown_hunt.functions import paying_function, place_of, scaling, scalings
from kteardown_hunt.plan import OWNER_BOOTS, Case, Options, owners_plan


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


CASE = Case("a", "exit")
ALONE = {(boot, 100): 1e6 * (1 + boot / 50) for boot in range(5)}


def times(ratio: float, noise: float = 0.02) -> Mapping[tuple[int, int], float]:
    return {at: ns * ratio * (1 + noise * (-1) ** at[0]) for at, ns in ALONE.items()}


@pytest.mark.parametrize(
    ("owners", "ratio", "verdict"),
    [
        (2, 1.0, "parallel"),
        (2, 1.9, "serial"),
        (2, 2.0, "serial"),
        (2, 2.6, "convoy"),
        (4, 1.2, "parallel"),
        (4, 4.0, "serial"),
        (4, 6.0, "convoy"),
    ],
)
def test_the_verdict_is_that_of_the_ratio(owners: int, ratio: float, verdict: str) -> None:
    found = scaling(CASE, owners, ALONE, times(ratio))
    assert found is not None
    assert (found.verdict, found.boots, found.objects) == (verdict, 5, 100)
    assert found.ci[0] < ratio < found.ci[1]


def test_boots_that_differ_much_decide_nothing() -> None:
    found = scaling(CASE, 2, ALONE, times(1.6, noise=0.5))
    assert found is not None
    assert found.verdict == "unknown"


def test_one_boot_is_too_few() -> None:
    assert scaling(CASE, 2, ALONE, {(0, 100): 2e6}) is None
    assert scaling(CASE, 2, {}, times(2.0)) is None


@given(st.floats(1e-6, 1e6))
def test_the_speed_of_the_machine_changes_nothing(unit: float) -> None:
    slow = {at: ns * unit for at, ns in ALONE.items()}
    slow_too = {at: ns * unit for at, ns in times(2.6).items()}
    one, other = scaling(CASE, 2, ALONE, times(2.6)), scaling(CASE, 2, slow, slow_too)
    assert one is not None and other is not None
    assert other.ratio == pytest.approx(one.ratio)
    assert other.verdict == one.verdict


def test_the_plan_has_each_number_of_processes_in_every_boot_with_a_cpu_for_each() -> None:
    plan = owners_plan({Case("a", "exit"): 4608}, "kernel", (2, 4), Options(budget_minstr=0))
    assert (plan.cpus, len(plan.boots)) == (4, OWNER_BOOTS)
    for boot in plan.boots:
        assert [(trial.params["owners"], trial.params["objects"]) for trial in boot.trials] == [
            (1, 1152),
            (2, 1152),
            (4, 1152),
        ]


def test_times_are_read_from_the_records_of_each_boot() -> None:
    def boot(number: int, seed: int) -> BootRecords:
        records: list[Record] = []
        for index, (owners, ns) in enumerate(((1, 1e6), (2, 3e6 + number))):
            params: dict[str, ParamValue] = {
                "kind": "a",
                "way": "exit",
                "user": "root",
                "objects": 50,
                "owners": owners,
            }
            records += [
                TrialStart(trial=index, workload="hunt", params=params),
                Sample(trial=index, repetition=0, metric="elapsed_ns", value=ns, warmup=False),
                TrialEnd(trial=index, status="ok"),
            ]
        start = BootStart(
            kernel="kernel",
            block=number,
            seed=seed,
            acceleration="mttcg",
            host_load=0,
            started_at="2026-01-01T00:00:00",
        )
        end = BootEnd(
            outcome="ok", detail="", duration_s=1, first_record_s=0.5, command=[], host_load=0
        )
        return BootRecords(number, 0, start, end, tuple(records))

    (found,) = scalings([boot(number, 1001 + number) for number in range(3)], {CASE: "linear"})
    assert (found.kind, found.way, found.user, found.alone) == ("a", "exit", "root", "linear")
    assert (found.owners, found.objects, found.boots, found.verdict) == (2, 50, 3, "convoy")
    assert found.ratio == pytest.approx(3, rel=1e-3)


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
