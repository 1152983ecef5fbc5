"""A kteardown process to be killed: the real runner, records and analysis, with a slow fake
machine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from kteardown import pipeline
from kteardown.model.clock import Clock
from kteardown.model.experiment import Design, Experiment, Sweep
from kteardown.model.record import BASE, TWIN
from kteardown.progress import SilentReporter
from kteardown.run.execute import execute
from kteardown.run.setting import Bootable, Lab
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load
from kteardown.rundir.writer import open_writer
from kteardown.vm.job import BootJob
from unit.fake_machine import REPORTS, FakeBoot, FakeMachine
from unit.run_dirs import fill

VARIANT = "freezer-skip-exited"
METRICS = ("freeze_user_ns", "freeze_remaining_ns", "thaw_ns")
PAUSE_S = 0.001
"""The pause before each line, which is most of the time, so that most kills are in the middle of
trials."""


def make_run(root: Path, clock: Clock) -> RunDir:
    """Create a run directory with a plan of six boots of three trials, without records."""
    experiment = Experiment(
        name="killed",
        question="Is anything lost?",
        source="debian:6.12",
        variants=(VARIANT,),
        workloads=(Sweep(workload="zombies", params={"zombies": (0, 300, 600)}),),
        design=Design(clock=clock, seeds=3, boots=2, repetitions=2),
    )
    run = RunDir.create(root, experiment.name)
    fact = {"release": "6.12", "source": "debian:6.12", "arch": "x86_64", "compiler": "gcc"}
    kernels = {
        name: {
            **fact,
            "image": str(run.path / "image"),
            "modules": [],
            "config_hash": "c",
            "image_hash": name,
        }
        for name in (BASE, VARIANT)
    }
    (run.path / "image").write_bytes(b"kernel")
    fill(
        run,
        experiment,
        [VARIANT],
        kernels,
        {"command": "kteardown run killed", "machine": {"kernel": "6"}},
    )
    return run


def finished_run(folder: Path) -> Path:
    """Return a run in ``folder`` that was measured to its end, on the instruction clock."""
    run = make_run(folder, "instructions")
    measure(run.path)
    return run.path


def measure(path: Path) -> None:
    """Boot the rest of the run at ``path`` and write its result."""
    run = RunDir.open(path)
    found = load(run)
    wall = found.experiment.design.clock == "wall"
    kernels = {name: Bootable(Path(name)) for name in (BASE, TWIN, VARIANT)}
    agent = path / "image"
    lab = Lab(
        agent,
        "x86_64",
        "mttcg" if wall else "icount",
        REPORTS,
        machine=FakeMachine(_guest),
        jobs=1 if wall else 2,
    )
    with open_writer(run, {"kernel": "6"}) as log:
        execute(found.plan, kernels, lab, log, SilentReporter())
        pipeline.analyse_and_save(load(run))


def _guest(job: BootJob) -> FakeBoot:
    return FakeBoot(lines=tuple(json.dumps(line).encode() for line in _lines(job)), pause_s=PAUSE_S)


def _lines(job: BootJob) -> Iterator[dict[str, object]]:
    """Yield the lines of the agent for the plan of ``job``; they depend on kernel, seed and point
    only."""
    trials = re.findall(
        rb"^trial (\d+) zombies 1 2 zombies=(\d+)", job.initramfs.read_bytes(), re.MULTILINE
    )
    for index, zombies in ((int(index), int(zombies)) for index, zombies in trials):
        params = {"zombies": zombies, "make": "shared", "until": "freezer"}
        yield {"type": "trial_start", "trial": index, "workload": "zombies", "params": params}
        for repetition in range(3):
            for number, metric in enumerate(METRICS, start=1):
                value = 1000 * number + zombies * len(str(job.image)) + job.seed % 97 + repetition
                sample = {"metric": metric, "value": value, "warmup": repetition == 0}
                yield {"type": "sample", "trial": index, "repetition": repetition, **sample}
        yield {"type": "trial_end", "trial": index, "status": "ok"}
    yield {"type": "bye", "trials": len(trials)}
