"""Simulated runs with a known truth: the records of guests with given costs and noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kteardown.analysis.conclude import analyse
from kteardown.model.clock import Clock
from kteardown.model.experiment import Design, Experiment, Sweep
from kteardown.model.kernel_facts import KernelFacts
from kteardown.model.plan import PlannedBoot, PlannedTrial
from kteardown.model.point import points_of
from kteardown.model.record import (
    AgentRecord,
    BootEnd,
    BootStart,
    Hello,
    Sample,
    TrialEnd,
    TrialStart,
)
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result
from kteardown.model.workload import Metric, Parameter, Workload
from kteardown.run.make_plan import make_plan
from kteardown.rundir.counting import BootRecords

Cost = Callable[[str, str, Mapping[str, ParamValue]], float]
"""The true cost by kernel, metric and parameters."""
Logs = NDArray[np.float64]


@dataclass(frozen=True)
class Noise:
    """Standard deviations of the logarithm: of a block, of a boot in it, and of a sample in
    that."""

    block: float = 0.0
    boot: float = 0.0
    sample: float = 0.0

    def of_blocks(self, rng: np.random.Generator, count: int) -> Logs:
        """Return a logarithm for each block, which applies to all its boots."""
        return rng.normal(0, self.block, count)

    def of_boot(self, rng: np.random.Generator) -> float:
        """Return a logarithm for all trials of a boot."""
        return float(rng.normal(0, self.boot))

    def of_trial(self, rng: np.random.Generator) -> float:
        """Return a logarithm for all samples of a trial."""
        return float(rng.normal(0, self.boot / 3))

    def of_sample(self, rng: np.random.Generator) -> float:
        """Return a logarithm for one sample."""
        return float(rng.normal(0, self.sample))


def zombies_workload() -> Workload:
    return Workload(
        name="zombies",
        summary="Zombies in the way of the suspend freezer",
        silence_s=30,
        law="zombies",
        parameters={
            "zombies": Parameter(help="how many", default=3000),
            "make": Parameter(
                help="how they are made", default="shared", choices=("shared", "fork")
            ),
            "until": Parameter(help="how far", default="freezer", choices=("freezer", "platform")),
        },
        metrics={
            "thaw_ns": Metric(help="thaw", name="thawing all tasks"),
            "freeze_user_ns": Metric(
                help="user-space tasks", name="freezing user space", headline=True
            ),
            "freeze_remaining_ns": Metric(
                help="remaining freezable tasks", name="freezing the remaining tasks", headline=True
            ),
            "elapsed_us": Metric(
                help="the kernel's own line", name="the kernel's own line", unit="us", compare=False
            ),
        },
    )


def cgroup_workload() -> Workload:
    return Workload(
        name="zombies_cgroup",
        summary="Zombies in a cgroup that is frozen",
        silence_s=30,
        law="zombies",
        parameters={"zombies": Parameter(help="how many", default=3000)},
        metrics={
            "freeze_cgroup_ns": Metric(
                help="until it says frozen", name="freezing the cgroup", headline=True
            )
        },
    )


WORKLOADS = {"zombies": zombies_workload(), "zombies_cgroup": cgroup_workload()}


def freezer(
    clock: Clock = "instructions",
    *,
    boots: int = 5,
    repetitions: int = 3,
    zombies: tuple[int, ...] = (
        0,
        3000,
        6000,
        9000,
        12000,
        15000,
        18000,
        21000,
        24000,
        27000,
        30000,
    ),
    variants: tuple[str, ...] = ("freezer-skip-exited", "freezer-skip-nofreeze"),
    cgroup: bool = False,
) -> Experiment:
    sweeps = [Sweep(workload="zombies", params={"zombies": zombies})]
    if cgroup:
        sweeps.append(Sweep(workload="zombies_cgroup", params={"zombies": (0, 15000, 30000)}))
    return Experiment(
        name="freezer",
        question=(
            "How much do zombies slow the suspend freezer down, and what does skipping dead tasks "
            "save?"
        ),
        source="debian:6.12",
        variants=variants,
        workloads=tuple(sweeps),
        design=Design(clock=clock, seeds=boots, boots=boots, repetitions=repetitions, warmup=1),
        reference="freezer",
    )


def freezer_cost(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
    """Return approximately the costs that were measured on 6.12, divided between the two phases."""
    zombies = int(params["zombies"])
    if metric == "freeze_cgroup_ns":
        return 41_000 + 0.4 * zombies
    per_zombie = {
        "freeze_user_ns": 205.0,
        "freeze_remaining_ns": 118.0,
        "thaw_ns": 61.0,
        "elapsed_us": 0.2,
    }
    factor = {"freezer-skip-exited": 0.38, "freezer-skip-nofreeze": 0.41}.get(kernel, 1.0)
    return 24_000 + per_zombie[metric] * zombies * (1.0 if metric == "thaw_ns" else factor)


def simulate(
    experiment: Experiment,
    cost: Cost = freezer_cost,
    noise: Noise | None = None,
    *,
    seed: int = 1,
    workloads: Mapping[str, Workload] = WORKLOADS,
) -> list[BootRecords]:
    """Return every boot of the experiment's plan, with log-normal noise around the true costs."""
    noise = noise or Noise()
    rng = np.random.default_rng(seed)
    plan = make_plan(experiment, workloads, experiment.variants)
    blocks = np.exp(noise.of_blocks(rng, 1 + max(boot.block for boot in plan.boots)))
    return [
        _boot(boot, cost, noise, float(blocks[boot.block]), rng, workloads) for boot in plan.boots
    ]


def analysed(experiment: Experiment, boots: list[BootRecords]) -> Result:
    kernels = {
        name: KernelFacts(
            release="6.12.117",
            source="debian:6.12.117-1",
            series="" if name == "base" else name,
            arch="x86_64",
            compiler="gcc (Debian 12.2.0-14+deb12u1) 12.2.0",
            config_hash="c0ffee" + "0" * 58,
            image_hash=f"{index}" * 64,
        )
        for index, name in enumerate(["base", *experiment.variants])
    }
    machine = {
        "cpu": "Intel Xeon Processor",
        "cpus_online": 2,
        "memory_mb": 24105,
        "qemu": "7.2.22",
    }
    used = {sweep.workload: WORKLOADS[sweep.workload] for sweep in experiment.workloads}
    command = f"kteardown run freezer --clock {experiment.design.clock}"
    return analyse(
        experiment, used, boots, kernels, machine, command, points=points_of(experiment, used)
    )


def _boot(
    boot: PlannedBoot,
    cost: Cost,
    noise: Noise,
    block: float,
    rng: np.random.Generator,
    workloads: Mapping[str, Workload],
) -> BootRecords:
    shift = block * math.exp(noise.of_boot(rng))
    stamp = {"boot": boot.index, "attempt": 0}
    lines: list[AgentRecord] = [_hello().model_copy(update=stamp)]
    for trial in boot.trials:
        metrics = workloads[trial.workload].metrics
        lines += _trial(trial, boot, cost, shift, noise, rng, metrics)
    start = BootStart(
        kernel=boot.kernel,
        block=boot.block,
        seed=boot.seed,
        acceleration="icount",
        host_load=0,
        started_at="",
        machine=boot.machine,
    )
    end = BootEnd(outcome="ok", duration_s=1, first_record_s=1, command=[], host_load=0)
    return BootRecords(boot.index, 0, start, end, tuple(lines))


def _trial(
    trial: PlannedTrial,
    boot: PlannedBoot,
    cost: Cost,
    shift: float,
    noise: Noise,
    rng: np.random.Generator,
    metrics: Mapping[str, Metric],
) -> list[AgentRecord]:
    index, number = trial.index, boot.index
    params = {**boot.machine, **trial.params}
    begin = TrialStart(boot=number, attempt=0, trial=index, workload=trial.workload, params=params)
    lines: list[AgentRecord] = [begin]
    own = math.exp(noise.of_trial(rng))
    for repetition in range(trial.warmup + trial.repetitions):
        warmup = repetition < trial.warmup
        for metric in metrics:
            factor = shift * own * math.exp(noise.of_sample(rng)) * (3 if warmup else 1)
            lines.append(
                Sample(
                    boot=number,
                    attempt=0,
                    trial=index,
                    repetition=repetition,
                    metric=metric,
                    value=round(cost(boot.kernel, metric, params) * factor),
                    warmup=warmup,
                )
            )
    lines.append(TrialEnd(boot=number, attempt=0, trial=index, status="ok"))
    return lines


def _hello() -> Hello:
    return Hello(
        protocol=1,
        release="6.12.117",
        version="#1 SMP",
        machine="x86_64",
        cpus_online=1,
        cpus_possible=1,
        memory_kb=999184,
        cmdline="",
    )
