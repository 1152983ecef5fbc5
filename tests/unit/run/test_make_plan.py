"""The plan is deterministic, complete and in blocks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kteardown.inputs.load import load_experiment, load_workloads
from kteardown.inputs.options import Scripted
from kteardown.model.experiment import Experiment, MachineSpec, Sweep
from kteardown.model.plan import blocks_of, rests
from kteardown.model.record import LAYOUT, TWIN
from kteardown.run.boot_job import guest_plan
from kteardown.run.make_plan import make_plan, plan_profile, with_layout_twin
from kteardown.run.resolve import experiment_of_script, resolve
from kteardown.script.describe import describe, keep


def _freezer(**design: object) -> Experiment:
    experiment = load_experiment("freezer")
    return experiment.model_copy(update={"design": experiment.design.model_copy(update=design)})


def test_the_same_experiment_gives_the_same_plan() -> None:
    experiment = _freezer(clock="wall")
    workloads = load_workloads(experiment)
    assert make_plan(experiment, workloads, ["v"]) == make_plan(experiment, workloads, ["v"])


@given(boots=st.integers(1, 12), seed=st.integers(0, 2**32))
def test_every_wall_block_boots_every_kernel_and_the_twin_once(boots: int, seed: int) -> None:
    experiment = _freezer(clock="wall", boots=boots, seed=seed)
    plan = make_plan(experiment, load_workloads(experiment), ["v1", "v2"])
    assert [boot.index for boot in plan.boots] == list(range(len(plan.boots)))
    for block in range(boots):
        assert Counter(b.kernel for b in plan.boots if b.block == block) == Counter(
            ["base", TWIN, "v1", "v2"]
        )


def test_the_order_differs_between_wall_blocks() -> None:
    experiment = _freezer(clock="wall", boots=12)
    plan = make_plan(experiment, load_workloads(experiment), ["v1", "v2"])
    orders = {tuple(b.kernel for b in plan.boots if b.block == block) for block in range(12)}
    assert len(orders) > 1


def test_on_the_instruction_clock_a_block_is_a_seed_without_a_twin() -> None:
    experiment = _freezer(clock="instructions", seeds=4)
    plan = make_plan(experiment, load_workloads(experiment), ["v"])
    assert len({boot.seed for boot in plan.boots}) == 4
    assert {boot.kernel for boot in plan.boots} == {"base", "v"}
    assert all(len({b.seed for b in plan.boots if b.block == block}) == 1 for block in range(4))


def test_the_guest_reads_every_point_of_the_sweep() -> None:
    experiment = _freezer()
    plan = make_plan(experiment, load_workloads(experiment), [])
    lines = guest_plan(plan.boots[0], ["/modules/a.ko"]).splitlines()
    assert lines[0] == "kteardown-plan 1"
    assert lines[2] == "module /modules/a.ko"
    trials = [line for line in lines if line.startswith("trial ")]
    assert sum(line.split()[2] == "zombies" for line in trials) == 11
    assert len(trials) == len(plan.boots[0].trials)


def test_with_the_option_the_layout_twin_is_booted_in_every_block() -> None:
    experiment = _freezer(clock="wall", boots=3, layout_twin=True)
    plan = make_plan(experiment, load_workloads(experiment), ["v"])
    for block in range(3):
        assert Counter(b.kernel for b in plan.boots if b.block == block) == Counter(
            ["base", TWIN, LAYOUT, "v"]
        )
    exact = _freezer(clock="instructions", layout_twin=True)
    assert LAYOUT not in {b.kernel for b in make_plan(exact, load_workloads(exact), ["v"]).boots}


@given(boots=st.integers(2, 12), blocks=st.integers(1, 12))
def test_blocks_of_the_layout_twin_are_added_after_the_unchanged_plan(
    boots: int, blocks: int
) -> None:
    experiment = _freezer(clock="wall", boots=boots)
    workloads = load_workloads(experiment)
    plan = make_plan(experiment, workloads, ["v"])
    more = with_layout_twin(plan, experiment, workloads, blocks)
    assert more == with_layout_twin(plan, experiment, workloads, blocks)
    assert more.boots[: len(plan.boots)] == plan.boots
    assert [boot.index for boot in more.boots] == list(range(len(more.boots)))
    added = more.boots[len(plan.boots) :]
    assert sorted((boot.block, boot.kernel) for boot in added) == [
        (block, kernel) for block in range(boots, boots + blocks) for kernel in ("base", LAYOUT)
    ]
    assert not {boot.seed for boot in added} & {boot.seed for boot in plan.boots}


@given(seed=st.integers(0, 2**32), clock=st.sampled_from(["wall", "instructions"]))
def test_a_swept_machine_boots_every_kernel_on_every_machine_in_every_block(
    seed: int, clock: str
) -> None:
    experiment = _freezer(clock=clock, boots=2, seeds=2, seed=seed)
    machine = MachineSpec(cpus=2, possible_cpus=(2, 32), numa_nodes=(1, 2))
    experiment = experiment.model_copy(update={"machine": machine})
    plan = make_plan(experiment, load_workloads(experiment), ["v"])
    kernels = 3 if clock == "wall" else 2
    for block in range(2):
        boots = [boot for boot in plan.boots if boot.block == block]
        machines = [(boot.machine["possible_cpus"], boot.machine["numa_nodes"]) for boot in boots]
        assert set(Counter(machines).items()) == {
            ((p, n), kernels) for p in (2, 32) for n in (1, 2)
        }
        # Kernels on one machine, which are compared with each other, are booted one after another.
        assert sum(a != b for a, b in pairwise(machines)) == 3
    assert (plan.cpus, plan.possible_cpus, plan.numa_nodes) == (2, 32, 2)


def test_each_boot_of_a_script_has_the_modules_that_it_asks_for(tmp_path: Path) -> None:
    script = tmp_path / "x.sh"
    script.write_text("mount -t ext4 /dev/x /mnt\n")
    described = describe(str(script), Scripted(), {})
    assert described.workload.script
    asks = described.workload.script.model_copy(update={"modules": ("fs-ext4", "loop")})
    workload = described.workload.model_copy(update={"script": asks})
    folder = keep(replace(described, workload=workload), tmp_path)
    experiment = experiment_of_script(workload.name, "debian-image:6.12", folder)
    plan = make_plan(experiment, {workload.name: workload}, ["debian-image:7.3"])
    assert {boot.modules for boot in plan.boots} == {("fs-ext4", "loop")}
    profile = plan_profile(plan, experiment, {workload.name: workload}, ["base"])
    assert {boot.modules for boot in profile.boots} == {("fs-ext4", "loop")}
    # The kernels are fetched with them, also when a run is resumed.
    resolved = resolve(experiment.model_copy(update={"variants": ("debian-image:7.3",)}))
    assert [kernel.modules for kernel in resolved.kernels] == [("fs-ext4", "loop")] * 2


def test_each_point_of_a_script_has_guests_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "x.sh"
    script.write_text("mkdir $N\n")
    described = describe(str(script), Scripted(), {"N": (1, 2, 4)})
    workload = described.workload
    experiment = experiment_of_script(
        workload.name, "debian:6.12", keep(described, tmp_path)
    ).model_copy(update={"workloads": (Sweep(workload=workload.name, params={"N": (1, 2, 4)}),)})
    plan = make_plan(experiment, {workload.name: workload}, ["v"])
    for block in range(blocks_of(experiment.design)):
        boots = [boot for boot in plan.boots if boot.block == block]
        assert all([trial.index for trial in boot.trials] == [0] for boot in boots)
        points = Counter((boot.kernel, boot.trials[0].params["N"]) for boot in boots)
        assert points == Counter((kernel, n) for kernel in ("base", "v") for n in (1, 2, 4))
        assert len({boot.seed for boot in boots}) == 1
    assert [boot.index for boot in plan.boots] == list(range(len(plan.boots)))
    assert not rests(plan)
    ended = plan.model_copy(
        update={"boots": (*plan.boots, plan.boots[0].model_copy(update={"index": 99}))}
    )
    assert rests(ended) == {99}
