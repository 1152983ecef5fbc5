"""What is waited for once for each object."""

from __future__ import annotations

import pytest

from kteardown.rundir.counting import BootRecords
from kteardown_hunt.finds import MeasuredCase
from kteardown_hunt.plan import Case
from kteardown_hunt.result import WaitingFunction
from kteardown_hunt.waits import (
    Watched,
    wait_law,
    wait_results,
    waiting_functions,
    watched_points,
)
from unit.hunt.trial_records import ReportedTrial, reported

CASE = Case("a", "exit")
SIZES = (72, 288, 1152, 4608)
MS = 1e6


def case(metric: str, *values_ns: float, work_ns: float = 0.0) -> MeasuredCase:
    figures = {metric: {(1, size): ns for size, ns in zip(SIZES, values_ns, strict=True)}}
    figures["deferred_ns"] = {(1, size): work_ns * size for size in SIZES}
    return MeasuredCase(CASE, figures)


@pytest.mark.parametrize(
    ("values_ns", "verdict"),
    [
        ([0, 0, 0, 0], "none"),
        ([20 * MS, 20 * MS, 24 * MS, 16 * MS], "for all at once"),
        ([size * 4 * MS for size in SIZES], "for each object"),
        ([20 * MS + size * MS for size in SIZES], "for each object"),
        ([size * size * 1e4 for size in SIZES], "for each object"),
    ],
)
def test_the_time_asleep_has_a_law(values_ns: list[float], verdict: str) -> None:
    assert wait_law(case("idle_ns", *values_ns), "release").verdict == verdict


def test_deferred_work_that_only_shares_the_cpu_does_not_wait() -> None:
    work = 2e5
    shared = case("deferred_elapsed_ns", *(2 * work * size for size in SIZES), work_ns=work)
    assert wait_law(shared, "deferred").verdict == "none"
    waits = case("deferred_elapsed_ns", *(10 * MS * size for size in SIZES), work_ns=work)
    assert wait_law(waits, "deferred").verdict == "for each object"


def test_the_largest_sizes_are_watched() -> None:
    law = wait_law(case("idle_ns", *(size * MS for size in SIZES)), "release")
    points = watched_points(law)
    assert [point.objects for point in points] == list(SIZES[-3:])
    assert {point.watch for point in points} == {"waits"}


RELEASES = "entry_SYSCALL_64;do_syscall_64;ksys_umount;namespace_unlock;synchronize_rcu_expedited"
WORKER = "ret_from_fork;kthread;worker_thread;process_one_work;cleanup_net;rcu_barrier"
IDLE_WORKER = "ret_from_fork;kthread;worker_thread"


def watched(objects: int, stacks: dict[str, int]) -> BootRecords:
    sleeps = "__wait_for_common;schedule_timeout;schedule"
    waits = {f"{stack};{sleeps}": number for stack, number in stacks.items()}
    return reported([ReportedTrial(objects, waits=waits)])


def test_the_functions_that_wait_for_each_object_are_named() -> None:
    boots = [
        watched(objects, {RELEASES: objects, WORKER: 2 * objects, IDLE_WORKER: 5 * objects})
        for objects in (100, 200)
    ]
    functions = waiting_functions(boots)["k", CASE].functions
    (release,) = functions["release"]
    assert (release.name, release.count_each) == ("synchronize_rcu_expedited", 1)
    assert release.event == "grace periods (RCU expedited)"
    (deferred,) = functions["deferred"]
    assert (deferred.name, deferred.callers[0], deferred.count_each) == (
        "rcu_barrier",
        "cleanup_net",
        2,
    )


SLEEP = "entry_SYSCALL_64;do_syscall_64;__x64_sys_clock_nanosleep;common_nsleep;hrtimer_nanosleep"
FUNCTION = WaitingFunction(name="rcu_barrier", callers=(), count_each=1, ns_each=MS)


def test_a_pause_that_a_kind_asks_for_is_no_wait() -> None:
    boots = [watched(objects, {SLEEP: 3 * objects}) for objects in (100, 200)]
    seen = waiting_functions(boots)["k", CASE]
    assert (seen.functions, seen.asked_ns_each) == ({}, 3)
    sleeps = {CASE: case("idle_ns", *(size * MS for size in SIZES))}
    mostly = Watched({"release": (FUNCTION,)}, 0.9 * MS)
    assert wait_results(sleeps, {CASE: mostly}, {}) == ()


def test_what_waits_for_all_at_once_or_in_no_function_is_no_result() -> None:
    waits = case("idle_ns", *(size * MS for size in SIZES))
    once = MeasuredCase(Case("b", "oldest"), case("idle_ns", *[20 * MS] * 4).figures)
    nowhere = MeasuredCase(Case("c", "oldest"), waits.figures)
    screened = {CASE: waits, once.case: once, nowhere.case: nowhere}
    watched_cases = {CASE: Watched({"release": (FUNCTION,)}, 0.1 * MS)}
    (result,) = wait_results(screened, watched_cases, {CASE: {"other": once}})
    assert result.each_ns == pytest.approx(0.9 * MS)
    assert result.elsewhere == {"other": 0.0}
