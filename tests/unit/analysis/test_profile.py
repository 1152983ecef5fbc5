from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.analysis.profile import FunctionCosts, MeanTime, folded, growth, profiles, quantile
from kteardown.analysis.stretches import collect, frames_of, innermost, is_idle
from kteardown.model.experiment import Experiment, Sweep
from kteardown.model.record import (
    BootEnd,
    BootStart,
    ProfileStretch,
    Record,
    Stack,
    TrialEnd,
    TrialStart,
)
from kteardown.model.stack_profile import FunctionCost, Profile
from kteardown.model.workload import Metric, Parameter, Workload
from kteardown.rundir.counting import BootRecords

PERIOD_NS = 1000
Stacks = Mapping[str, tuple[int, int]]
"""By stack: samples and ns."""


def boot(
    stretches: Mapping[int, Iterable[Stacks]],
    *,
    kernel: str = "base",
    block: int = 0,
    status: str = "ok",
) -> BootRecords:
    """A boot that sampled, for each number of things, these stretches."""
    records: list[Record] = []
    for trial, (things, repetitions) in enumerate(stretches.items()):
        records.append(
            TrialStart(trial=trial, workload="exit", params={"things": things, "how": "well"})
        )
        for repetition, stacks in enumerate(repetitions):
            about = {"trial": trial, "repetition": repetition}
            samples = sum(count for count, _ in stacks.values())
            size = {
                "period_ns": PERIOD_NS,
                "stretch_ns": 10,
                "cpus": 2,
                "samples": samples,
                "lost": 0,
            }
            records.append(ProfileStretch.model_validate({**about, **size}))
            records += [
                Stack.model_validate({**about, "stack": stack, "count": count, "ns": ns})
                for stack, (count, ns) in stacks.items()
            ]
        records.append(TrialEnd.model_validate({"trial": trial, "status": status}))
    start = BootStart(
        kernel=kernel,
        block=block,
        seed=1,
        acceleration="icount",
        host_load=0.0,
        started_at="2026-01-01",
    )
    end = BootEnd(outcome="ok", duration_s=1.0, first_record_s=0.5, command=[], host_load=0.0)
    return BootRecords(block, 0, start, end, tuple(records))


def costs_of(stacks: Stacks) -> FunctionCosts:
    (stretches,) = collect([boot({1: [stacks]})])
    return FunctionCosts(stretches)


EXIT = Workload(
    name="exit",
    summary="things exit",
    silence_s=1,
    law="things",
    parameters={
        "things": Parameter(help="how many", default=1),
        "how": Parameter(help="how", default="well"),
    },
    metrics={"exit_ns": Metric(help="exit")},
)
EXPERIMENT = Experiment(
    name="exits",
    question="why?",
    source="debian:6.12",
    workloads=(Sweep(workload="exit", params={"things": (100, 400)}),),
)


def profile_of(boots: Iterable[BootRecords], kernels: tuple[str, ...] = ("base",)) -> Profile:
    (profile,) = profiles(boots, EXPERIMENT, {"exit": EXIT}, kernels)
    return profile


def cost(profile: Profile, function: str, kernel: str = "base") -> FunctionCost:
    (found,) = [
        c
        for f in profile.functions
        if f.function == function
        for c in f.costs
        if c.kernel == kernel
    ]
    return found


def test_time_belongs_to_the_function_that_was_sampled() -> None:
    costs = costs_of({"a;b;c": (3, 3000), "a;b": (1, 1500), "a;c": (2, 2000), "[user]": (1, 500)})
    assert costs.busy_ns == 7000
    assert costs.own("c").ns == 5000
    assert costs.own("b").ns == 1500
    assert costs.own("a").ns == 0
    assert costs.share("c") == pytest.approx(5 / 7)
    assert costs.share_with_callees("b") == pytest.approx(4.5 / 7)
    assert costs.share_with_callees("a") == pytest.approx(6.5 / 7)
    assert costs.functions == {"b", "c", "[user]"}
    assert costs.sampled("c") == 5
    assert costs.own("missing").ns == 0


def test_a_function_that_calls_itself_is_counted_once() -> None:
    assert costs_of({"a;b;a": (1, 1000)}).share_with_callees("a") == 1


def test_suffixes_that_the_compiler_adds_are_removed() -> None:
    assert frames_of("do_exit.part.0;x.isra.0.cold;y.constprop.12;z.llvm.123") == (
        "do_exit",
        "x",
        "y",
        "z",
    )
    assert frames_of("sub.domain.x") == ("sub.domain.x",)
    costs = costs_of({"a;f.isra.0": (1, 1000), "a;f.constprop.3": (1, 500), "a;f": (1, 500)})
    assert costs.own("f").ns == 2000


def test_time_without_interrupts_belongs_to_the_function_that_ends_it() -> None:
    costs = costs_of({"a;f;[no interrupts]": (1, 9000), "a;f": (1, 1000)})
    assert innermost(("a", "f", "[no interrupts]")) == "f"
    assert costs.own("f").ns == 10_000
    assert costs.no_interrupts("f") == pytest.approx(0.9)
    assert costs.callers("f") == ("a",)


@pytest.mark.parametrize(
    ("stack", "idle"),
    [
        ("[idle task];do_idle;default_idle_call;default_idle;pv_native_safe_halt", True),
        ("[idle task];do_idle;cpuidle_idle_call;cpuidle_enter;intel_idle", True),
        ("[idle task];do_idle;default_idle_call;pv_native_safe_halt;[no interrupts]", True),
        (
            "[idle "
            "task];do_idle;default_idle_call;asm_sysvec_apic_timer_interrupt;irq_exit_rcu;rcu_core",
            False,
        ),
        ("[idle task];do_idle;default_idle_call;handle_softirqs;rcu_core", False),
        ("[idle task];do_idle;schedule_idle;__schedule;finish_task_switch", False),
        ("do_syscall_64;default_idle_call", False),
    ],
)
def test_idle_time_does_not_include_interrupts(stack: str, idle: bool) -> None:
    assert is_idle(frames_of(stack)) is idle


def test_idle_time_has_no_share() -> None:
    costs = costs_of({"[idle task];do_idle;default_idle_call;halt": (5, 5000), "a;b": (1, 1000)})
    assert (costs.idle_ns, costs.busy_ns, costs.share("b")) == (5000, 1000, 1)
    (stretch,) = profile_of(
        [boot({100: [{"[idle task];default_idle_call": (3, 3000), "a": (1, 1000)}]})]
    ).stretches
    assert stretch.idle_share == 0.75


def test_callers_have_most_of_the_time() -> None:
    costs = costs_of({"x;y;f": (6, 6000), "z;y;f": (5, 5000), "w;f": (1, 1000)})
    assert costs.callers("f") == ("y",)
    assert costs_of({"x;y;f": (9, 9000), "z;y;f": (1, 1000)}).callers("f") == ("y", "x")
    assert costs_of({"x;f": (1, 1000), "y;f": (1, 1000)}).callers("f") == ()
    assert costs_of({"f": (1, 1000)}).callers("f") == ()


def test_trials_that_did_not_end_ok_are_not_used() -> None:
    assert collect([boot({1: [{"a": (1, 1000)}]}, status="failed")]) == []


def test_repetitions_and_boots_are_averaged() -> None:
    boots = [
        boot({1: [{"a": (1, 1000)}, {"a": (3, 3000)}]}),
        boot({1: [{"a": (2, 2000)}]}, block=1),
    ]
    (stretches,) = collect(boots)
    assert FunctionCosts(stretches).own("a").ns == 2000
    # n samples of one period each: the sum has a standard error of root n periods.
    assert FunctionCosts(stretches).own("a").se == pytest.approx(math.sqrt(6) * 1000 / 3)


def test_boots_that_differ_widen_the_interval() -> None:
    """The one that differs by its own difference, the others by the average difference of boots."""

    def boots(counts: Iterable[int]) -> list[BootRecords]:
        fixed = {"b": (100, 100_000), "c": (100, 100_000)}
        return [boot({1: [{"a": (n, n * 1000), **fixed}]}, block=i) for i, n in enumerate(counts)]

    (same,), (different,) = collect(boots([100] * 4)), collect(boots([50, 150, 60, 140]))
    alike, unlike = FunctionCosts(same), FunctionCosts(different)
    assert alike.own("a").ns == unlike.own("a").ns
    # The standard error of the mean of the four.
    assert unlike.own("a").se == pytest.approx(math.sqrt((50**2 * 2 + 40**2 * 2) / 3) * 1000 / 2)
    assert unlike.own("b").se > 1.5 * alike.own("b").se


def test_folded_stacks_are_what_flame_graph_tools_read() -> None:
    (stretches,) = collect(
        [boot({1: [{"b;c.isra.0": (2, 4000), "a": (1, 1600)}, {"d": (1, 600)}]})]
    )
    assert folded(stretches) == "a 1\nb;c.isra.0 2\n"


@given(
    exponent=st.floats(0.0, 3.0),
    first=st.floats(1.0, 1e6),
    sizes=st.lists(st.integers(1, 10**6), min_size=2, max_size=5, unique=True),
    error=st.floats(0.001, 0.3),
)
def test_growth_finds_a_power_law(
    exponent: float, first: float, sizes: list[int], error: float
) -> None:
    times = [MeanTime(first * size**exponent, first * size**exponent * error) for size in sizes]
    found = growth(sizes, times)
    assert found is not None
    assert found[0] == pytest.approx(exponent, abs=1e-6)
    assert found[1] > 0


def test_growth_needs_two_points() -> None:
    assert growth([100], [MeanTime(1.0, 0.1)]) is None
    assert growth([100, 400], [MeanTime(0.0, 0.0), MeanTime(1.0, 0.1)]) is None
    assert growth([0, 400], [MeanTime(1.0, 0.1), MeanTime(1.0, 0.1)]) is None


def test_points_far_from_the_line_widen_the_interval_of_the_slope() -> None:
    sizes = [100, 1000, 10_000]
    straight = growth(sizes, [MeanTime(n, n * 0.01) for n in sizes])
    bent = growth(
        sizes, [MeanTime(n * f, n * f * 0.01) for n, f in zip(sizes, (1, 2, 1), strict=True)]
    )
    assert straight and bent and bent[1] > 10 * straight[1]


def test_more_claims_need_more_standard_errors() -> None:
    assert quantile(0.95, 1) == pytest.approx(1.96, abs=0.001)
    assert quantile(0.95, 20) == pytest.approx(3.023, abs=0.001)


def sampled(rng: random.Random, rates: Mapping[str, float]) -> Stacks:
    """A stretch with Poisson counts of one period each."""
    found: dict[str, tuple[int, int]] = {}
    for stack, rate in rates.items():
        count, at = 0, rng.expovariate(1.0)
        while at < rate:
            count, at = count + 1, at + rng.expovariate(1.0)
        if count:
            found[stack] = (count, count * PERIOD_NS)
    return found


def test_functions_that_grow_faster_than_the_objects_are_reported() -> None:
    rng = random.Random(5)
    sizes = (100, 400, 1600)
    rates = {n: {"exit;scan": n * n / 400, "exit;free": n / 2, "exit;print": 100.0} for n in sizes}
    profile = profile_of([boot({n: [sampled(rng, rates[n])] for n in sizes})])
    assert [f.function for f in profile.functions] == ["scan", "free", "print"]
    scan = cost(profile, "scan")
    assert scan.grows and scan.exponent is not None and scan.exponent_ci is not None
    assert scan.exponent_ci[0] < 2 < scan.exponent_ci[1]
    assert scan.smallest_share < scan.self_share
    assert not cost(profile, "free").grows
    assert not cost(profile, "print").grows
    assert scan.self_ns == pytest.approx(1600 / 400 * PERIOD_NS, rel=0.1)


def test_functions_that_differ_from_base_are_reported_with_the_difference() -> None:
    rng = random.Random(6)
    before = {"exit;scan": 4000.0, "exit;free": 2000.0}
    after = {"exit;scan": 400.0, "exit;free": 2000.0, "exit;gate": 300.0}
    boots = [
        boot({400: [sampled(rng, rates)]}, kernel=kernel)
        for kernel, rates in (("base", before), ("gate", after))
    ]
    profile = profile_of(boots, ("base", "gate"))
    assert {
        f.function: c.differs for f in profile.functions for c in f.costs if c.kernel == "gate"
    } == {
        "scan": True,
        "free": False,
        "gate": True,
    }
    scan = cost(profile, "scan", "gate")
    assert scan.difference_ns == pytest.approx(-9 * PERIOD_NS, rel=0.1)
    assert scan.difference_ci and scan.difference_ci[1] < 0
    assert cost(profile, "scan").difference_ns is None
    assert [f.callers for f in profile.functions] == [("exit",)] * 3


def test_noise_is_not_reported() -> None:
    """Forty profiles of two equal kernels, linear in N: at most one in twenty names any
    function."""
    rng = random.Random(7)
    named = 0
    for _ in range(40):
        shares = [rng.paretovariate(1.0) for _ in range(20)]
        boots = [
            boot(
                {
                    n: [sampled(rng, {f"exit;f{i}": n * s / 20 for i, s in enumerate(shares)})]
                    for n in (100, 400)
                },
                kernel=kernel,
            )
            for kernel in ("base", "same")
        ]
        profile = profile_of(boots, ("base", "same"))
        named += any(c.grows or c.differs for f in profile.functions for c in f.costs)
    assert named <= 2


def test_the_smallest_functions_are_left_out() -> None:
    profile = profile_of([boot({100: [{"a": (1000, 1_000_000), "b": (9, 9000)}]})])
    assert [f.function for f in profile.functions] == ["a"]


def test_parameters_that_the_experiment_did_not_choose_are_not_shown() -> None:
    profile = profile_of([boot({100: [{"a": (10, 10_000)}]})])
    assert (profile.param, profile.rest) == ("things", {})
    assert profile.stretches[0].point == {"things": 100}


def test_without_profiled_boots_there_is_no_profile() -> None:
    assert profiles([], EXPERIMENT, {"exit": EXIT}, ("base",)) == ()


def test_the_caller_that_is_accepted_counts_on_all_ways_to_it() -> None:
    costs = costs_of({"a;wait;x;f": (3, 3000), "a;wait;y;f": (3, 3000), "b;x;f": (4, 4000)})
    assert costs.chain_to("f", lambda name: name not in ("x", "y")) == ("y", "wait")
    assert costs.chain_to("f", lambda name: name == "z") == ()
    assert costs.chain_to("g", lambda name: True) == ()
