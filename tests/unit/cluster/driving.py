"""Runs on a cluster on paper: a driver is started and resumed, and the boots are counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from kteardown.model.plan import Plan, PlannedBoot, PlannedTrial
from kteardown.model.record import Sample
from kteardown.progress import SilentReporter
from kteardown.run.execute import execute
from kteardown.run.setting import Bootable, Lab
from kteardown.rundir.directory import RunDir
from kteardown.rundir.writer import open_writer
from kteardown.vm.job import Acceleration
from kteardown_cluster.cluster import Cluster
from kteardown_cluster.slurm import SlurmConfig
from unit.cluster.fake_scheduler import FakeScheduler
from unit.fake_machine import REPORTS, FakeBoot, FakeMachine

TRIAL = PlannedTrial(index=0, workload="zombies", params={"zombies": 3}, warmup=0, repetitions=1)
KERNELS = ("base", "variant")
CONFIG = SlurmConfig(poll_s=0.5, grace_s=1, patience_s=60, attempts=50)


class Notes(SilentReporter):
    """Keeps the notes."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)


def plan_of(blocks: int) -> Plan:
    boots = tuple(
        PlannedBoot(
            index=len(KERNELS) * block + n, block=block, kernel=kernel, seed=7, trials=(TRIAL,)
        )
        for block in range(blocks)
        for n, kernel in enumerate(KERNELS)
    )
    return Plan(boots=boots, cpus=1, memory_mb=64, silence_s=1)


def make_run(folder: Path) -> RunDir:
    run = RunDir.create(folder, "test")
    run.save(run.environment_file, json.dumps({"command": "", "machine": {"kernel": "6"}}))
    for name in ("agent", *KERNELS):
        (folder / name).write_text(name)
    return run


def drive(
    run: RunDir,
    scheduler: FakeScheduler,
    plan: Plan,
    *,
    config: SlurmConfig = CONFIG,
    acceleration: Acceleration = "icount",
    sleep: Callable[[float], None] | None = None,
    notes: Notes | None = None,
) -> list[str]:
    """Execute the plan in one session, and return the notes."""
    folder, notes = run.path.parent, notes or Notes()
    executor = Cluster(scheduler, config, "q" * 64, sleep or scheduler.sleep, scheduler.now)
    machine = FakeMachine(lambda job: FakeBoot())
    lab = Lab(folder / "agent", "x86_64", acceleration, REPORTS, machine=machine, executor=executor)
    kernels = {name: Bootable(folder / name) for name in KERNELS}
    with open_writer(run, {"kernel": "6"}) as log:
        execute(plan, kernels, lab, log, notes)
    return notes.lines


def counted(run: RunDir) -> dict[int, list[float | int]]:
    """Return the figures of each boot that count."""
    return {
        boot.boot: [record.value for record in boot.records if isinstance(record, Sample)]
        for boot in run.boots()
    }


def expected(plan: Plan) -> dict[int, list[int]]:
    return {boot.index: [1000 + boot.index] for boot in plan.boots}


class Crash(BaseException):
    """The driver is killed."""
