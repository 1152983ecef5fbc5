"""Summarize the profiled boots of a run, from their records alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kteardown.analysis.profile.hotspots import profiles
from kteardown.analysis.profile.stacks import Stretches, collect, folded
from kteardown.model.experiment import Experiment
from kteardown.model.profile_result import Profile
from kteardown.model.record import BASE
from kteardown.model.workload import Workload
from kteardown.rundir.counting import BootRecords, trials
from kteardown.rundir.snapshot import Snapshot


@dataclass(frozen=True)
class ProfileSummary:
    """The summary of the profiled boots: profiles, folded stacks by file name, and problems."""

    profiles: tuple[Profile, ...]
    folded: Mapping[str, str]
    notes: tuple[str, ...]


def profiles_of(snapshot: Snapshot) -> ProfileSummary:
    """Summarize the profiled boots of a run; empty if it has none. Raises InputError."""
    boots, experiment, workloads = snapshot.run.profile.boots(), snapshot.experiment, snapshot.workloads
    kernels = list(dict.fromkeys((BASE, *(boot.start.kernel for boot in boots))))
    found = profiles(boots, experiment, workloads, kernels)
    files = {_file_name(s, experiment, workloads): folded(s) for s in collect(boots)}
    return ProfileSummary(found, files, tuple(_problems(boots, found)))


def _file_name(stretches: Stretches, experiment: Experiment, workloads: Mapping[str, Workload]) -> str:
    """Return ``KERNEL-WORKLOAD-PARAMETER=VALUE.folded``, with the parameters that the experiment sets."""
    sweep = next(s for s in experiment.workloads if s.workload == stretches.workload)
    shown = {*experiment.machine.swept, *sweep.params, workloads[stretches.workload].law}
    words = [f"{name}={value}" for name, value in stretches.key if name in shown]
    return "-".join((stretches.kernel, stretches.workload, *words)).replace("/", "_") + ".folded"


def _problems(boots: Sequence[BootRecords], found: Sequence[Profile]) -> list[str]:
    notes = [
        f"the profiled boot of {boot.start.kernel}: {boot.end.outcome}: {boot.end.detail}"
        for boot in boots
        if boot.end.outcome != "ok"
    ]
    notes += [
        f"the profiled boot of {boot.start.kernel}: trial {trial.index} {trial.status}: {trial.detail}"
        for boot in boots
        for trial in trials(boot.records)
        if trial.status and not trial.usable
    ]
    notes += [
        f"profile of {stretch.kernel} at {stretch.point}: {stretch.lost} samples were lost after "
        f"{stretch.samples} filled the buffer, so it covers only the beginning; give the guest more memory, "
        "or the workload a longer profile_ns"
        for profile in found
        for stretch in profile.stretches
        if stretch.lost
    ]
    return list(dict.fromkeys(notes))
