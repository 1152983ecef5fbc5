"""What the guests of a run need at their place: the agent, programs, the acceleration, an
executor."""

import os
import platform
from collections.abc import Mapping
from pathlib import Path

from kteardown.inputs.contention import objects_of
from kteardown.inputs.counts import uncounted
from kteardown.inputs.load import own_sources, runs_own_programs
from kteardown.inputs.load import programs as programs_of
from kteardown.kernels import cache_folder
from kteardown.kernels.guest_programs import guest_programs
from kteardown.kernels.source import Sources, file_hash
from kteardown.model.experiment import Experiment
from kteardown.model.workload import Workload
from kteardown.paths import cache_dir
from kteardown.progress import Reporter
from kteardown.run.forecast import jobs_of
from kteardown.run.guest_records import reports_of
from kteardown.run.places import Where
from kteardown.run.setting import ContentionSetup, Lab
from kteardown.rundir.snapshot import Snapshot
from kteardown.script.files import script_archives
from kteardown.vm.agent import Also, build_agent
from kteardown.vm.contention import need_turns
from kteardown.vm.job import Acceleration
from kteardown.vm.qemu_library import main_loop_library

LOST_LIMIT = 0.05
"""The default of ``--lost-limit``; docs/wall-clock.md has the reasons."""


def make_lab(snapshot: Snapshot, reporter: Reporter, where: Where, *, counts: bool = True) -> Lab:
    """Prepare the boots of a run at their place. Raises BuildError, LabError, InputError.

    Without ``counts``, guests do not count events of the processor, even if the design does.
    """
    experiment = snapshot.experiment
    place = where.place
    spec = experiment.machine
    counted = counts and experiment.design.counts
    agent = agent_of(experiment, snapshot.workloads, reporter, counts=counted)
    executor = place.executor(spec.arch)
    best = place.acceleration(experiment, reporter)
    if counted:
        for name in uncounted(experiment, snapshot.workloads):
            reporter.note(f"--counts: {name} is not counted, because it marks no stretch")
        place.check_counters(best)
    if best == "icount":
        # Nodes of a cluster need no compiler: they find it in the cache.
        cache_folder.hold(main_loop_library(reporter))
    if experiment.design.clock == "contention":
        need_turns(spec.arch, cache=cache_dir(), reporter=reporter)
    program_names = programs_of(experiment, snapshot.workloads)
    owner = f"{platform.node()}:{snapshot.run.path.resolve()}"
    return Lab(
        machine=place.machine(owner, reporter, repeat=where.repeat),
        agent=agent,
        agent_hash=file_hash(agent),
        arch=spec.arch,
        acceleration=best,
        reports=reports_of(snapshot.workloads),
        contention=_contention(snapshot),
        streams=place.streams,
        is_watched=place.is_watched,
        lost_limit=lost_limit(experiment, best, snapshot.plan.cpus, is_here=place.is_here),
        lost_asked=experiment.design.lost_limit is not None,
        jobs=jobs_of(experiment, where.jobs),
        kernel_args=spec.kernel_args,
        programs=guest_programs(program_names, spec.arch, Sources(cache_dir(), reporter), reporter),
        archives=script_archives(
            snapshot.workloads, experiment.folder, snapshot.run.folder, spec.arch, reporter
        ),
        has_own_programs=runs_own_programs(snapshot.workloads),
        first=place.first(spec.arch, reporter),
        executor=executor,
    )


def _contention(snapshot: Snapshot) -> ContentionSetup | None:
    experiment = snapshot.experiment
    if experiment.design.clock != "contention":
        return None
    workloads = snapshot.workloads
    return ContentionSetup(
        lambda trial: objects_of(workloads[trial.workload], trial.params),
        tuple(own_sources(workloads, experiment.folder)),
    )


def agent_of(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    reporter: Reporter,
    *,
    counts: bool = False,
) -> Path:
    """Return the agent of the guests, from the cache or built into it. Raises BuildError,
    LabError."""
    sources = own_sources(workloads, experiment.folder)
    also: Also = "counts" if counts else ""
    built = build_agent(
        experiment.machine.arch, cache=cache_dir(), reporter=reporter, own=sources, also=also
    )
    return cache_folder.hold(built)


def lost_limit(
    experiment: Experiment, acceleration: Acceleration, cpus: int, *, is_here: bool = True
) -> float | None:
    """Return the share of its time that a trial of a guest with ``cpus`` CPUs may lose; None: any.

    There is no default under emulation, whose own threads compete with each other, nor where the
    host has no CPU besides those of the guest: there a guest loses time to QEMU and to the lab, and
    the more it does, the more it loses. If it is not ``is_here``, the host decides that for itself.
    """
    limit = experiment.design.lost_limit
    if acceleration in ("icount", "metal"):
        return None
    if limit is not None:
        return limit if limit < 1 else None
    spare = not is_here or len(os.sched_getaffinity(0)) > cpus
    return LOST_LIMIT if acceleration == "kvm" and spare else None
