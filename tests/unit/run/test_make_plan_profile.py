"""The plan of the profiled boots, and the sampling period in the guest's plan."""

from __future__ import annotations

from kteardown.inputs.fragments import fragments
from kteardown.inputs.load import load_experiment, load_workloads
from kteardown.inputs.options import Overrides, apply
from kteardown.kernels.kconfig import wanted_symbols
from kteardown.model.experiment import Experiment
from kteardown.model.plan import Plan
from kteardown.paths import data_dir
from kteardown.run.boot_job import guest_plan
from kteardown.run.make_plan import make_plan, plan_profile


def planned(cpus: int | None = None, **design: object) -> tuple[Experiment, Plan]:
    experiment = load_experiment("freezer")
    machine = experiment.machine.model_copy(update={"cpus": cpus})
    drawn = experiment.design.model_copy(update=design)
    experiment = experiment.model_copy(update={"design": drawn, "machine": machine})
    workloads = load_workloads(experiment)
    measured = make_plan(experiment, workloads, ["v", "v@1"])
    return experiment, plan_profile(measured, experiment, workloads, ["base", "v"])


def test_every_kernel_is_sampled_once_on_the_instruction_clock_of_one_cpu() -> None:
    _, plan = planned(clock="instructions", seeds=5)
    assert [(boot.index, boot.kernel) for boot in plan.boots] == [(0, "base"), (1, "v")]
    assert len({boot.seed for boot in plan.boots}) == 1


def test_in_real_time_each_kernel_but_the_twins_is_sampled_three_times() -> None:
    _, plan = planned(clock="wall", boots=10)
    assert sorted(boot.kernel for boot in plan.boots) == ["base"] * 3 + ["v"] * 3
    assert [boot.index for boot in plan.boots] == list(range(6))


def test_the_order_of_tasks_on_two_cpus_is_sampled_three_times() -> None:
    _, plan = planned(cpus=2, clock="instructions", seeds=5)
    assert [boot.kernel for boot in plan.boots] == ["base", "v"] * 3
    assert len({boot.seed for boot in plan.boots}) == 3


def test_the_smallest_the_middle_and_the_largest_point_are_sampled() -> None:
    _, plan = planned()
    for boot in plan.boots:
        assert [trial.index for trial in boot.trials] == list(range(len(boot.trials)))
        zombies = [trial.params["zombies"] for trial in boot.trials if trial.workload == "zombies"]
        assert zombies == [3000, 18_000, 30_000]
        groups = [
            trial.params["zombies"] for trial in boot.trials if trial.workload == "zombies_cgroup"
        ]
        assert groups == [15_000, 30_000]


def test_the_number_of_sampled_repetitions_is_limited() -> None:
    _, plan = planned(repetitions=99)
    assert {trial.repetitions for boot in plan.boots for trial in boot.trials} == {10}
    _, plan = planned(repetitions=2)
    assert {trial.repetitions for boot in plan.boots for trial in boot.trials} == {2}


def test_the_guest_plan_has_the_period_before_its_trials() -> None:
    experiment, plan = planned()
    workloads = load_workloads(experiment)
    lines = guest_plan(plan.boots[0]).splitlines()
    zombies, groups = (workloads[name].profile_ns for name in ("zombies", "zombies_cgroup"))
    assert lines[2] == f"profile {zombies}"
    assert [line for line in lines if line.startswith("profile")] == [
        f"profile {zombies}",
        f"profile {groups}",
    ]
    assert (
        lines.index(f"profile {groups}")
        == lines.index("trial 3 zombies_cgroup 1 9 zombies=15000 make=shared") - 1
    )


def test_measured_boots_are_not_sampled() -> None:
    experiment = load_experiment("freezer")
    plan = make_plan(experiment, load_workloads(experiment), [])
    assert "profile" not in guest_plan(plan.boots[0])


def test_the_sampled_kernels_are_the_measured_ones() -> None:
    experiment = load_experiment("freezer")
    workloads = load_workloads(experiment)
    profiled = apply(experiment, Overrides(profile=True))
    assert profiled.design.profile
    assert fragments(profiled, workloads) == fragments(experiment, workloads)
    base = wanted_symbols(data_dir("kernels"), "x86_64", fragments(experiment, workloads))
    assert ("PERF_EVENTS", "y") in {(want.symbol, want.value) for want in base}
