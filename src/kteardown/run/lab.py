"""Prepare what the boots of a run need on this host: QEMU, the agent, programs, the acceleration."""

from __future__ import annotations

import os

from kteardown.inputs.load import own_sources
from kteardown.inputs.load import programs as programs_of
from kteardown.kernels import guest_programs
from kteardown.kernels.source import Sources, file_hash
from kteardown.model.experiment import Experiment
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.run.execute import Lab
from kteardown.rundir.snapshot import Snapshot
from kteardown.vm import acceleration
from kteardown.vm.agent import build_agent
from kteardown.vm.job import Acceleration
from kteardown.vm.qemu import QemuMachine


def make_lab(snapshot: Snapshot, reporter: Reporter, jobs: int | None) -> Lab:
    """Prepare this host for the boots of a run. Raises BuildError, LabError, InputError."""
    experiment = snapshot.experiment
    spec = experiment.machine
    wanted = programs_of(experiment, snapshot.workloads)
    agent = build_agent(spec.arch, cache=cache_dir(), reporter=reporter, own=own_sources(experiment))
    return Lab(
        machine=QemuMachine(reporter.command),
        agent=agent,
        agent_hash=file_hash(agent),
        arch=spec.arch,
        acceleration=choose_acceleration(experiment, reporter),
        jobs=jobs_of(experiment, jobs),
        kernel_args=spec.kernel_args,
        programs=guest_programs.ensure(wanted, spec.arch, Sources(cache_dir(), reporter), reporter),
    )


def choose_acceleration(experiment: Experiment, reporter: Reporter) -> Acceleration:
    """Return the acceleration for an experiment's clock; print the reason if it is not KVM."""
    if experiment.design.clock == "instructions":
        return "icount"
    found = acceleration.best_wall_acceleration(experiment.machine.arch, cache=cache_dir())
    if found.reason:
        reporter.note(found.reason)
    return found.acceleration


def jobs_of(experiment: Experiment, jobs: int | None) -> int:
    """Return how many guests run at the same time: on the wall clock one, since others would add noise."""
    return 1 if experiment.design.clock == "wall" else jobs or os.cpu_count() or 1
