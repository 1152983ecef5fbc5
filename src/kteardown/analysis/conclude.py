"""The result of a run from its directory alone.

A run that stops when certain is analysed at the look that its records reach.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kteardown.analysis import sequential
from kteardown.analysis.analyse import analyse
from kteardown.analysis.dataset import headlines
from kteardown.analysis.disturbance import disturbance_notes
from kteardown.analysis.profile.hotspots import profiles
from kteardown.analysis.profile.stacks import collect, folded
from kteardown.model.experiment import Design
from kteardown.model.plan import blocks_of
from kteardown.model.profile_result import Profile
from kteardown.model.record import BASE
from kteardown.model.result import Result
from kteardown.rundir.completeness import boots_left, complete_blocks, measurable, spent
from kteardown.rundir.counting import trials
from kteardown.rundir.environment import environment_notes
from kteardown.rundir.snapshot import Snapshot
from kteardown.rundir.timing import timing_of


@dataclass(frozen=True)
class Conclusion:
    """A result, and the folded stacks of its profile by file name."""

    result: Result
    folded: Mapping[str, str]


def conclude(snapshot: Snapshot) -> Conclusion:
    """Analyse a run, its profile included. Raises InputError."""
    # Counted before they are read: a run may grow meanwhile.
    ended = snapshot.run.ended_boots()
    result = analyse_run(snapshot)
    profile = profiles_of(snapshot)
    timing = timing_of(snapshot.run, snapshot.records)
    notes = (*snapshot.notes, *result.notes, *disturbance_notes(timing), *profile.notes)
    update = {"profiles": profile.profiles, "notes": notes, "ended_boots": ended, "timing": timing}
    return Conclusion(result.model_copy(update=update), profile.folded)


def analyse_run(snapshot: Snapshot) -> Result:
    """The comparisons of what the run directory has now, without its profile. Raises InputError."""
    environment = snapshot.run.environment()
    experiment, workloads = snapshot.experiment, snapshot.workloads
    about: dict[str, Any] = {
        "kernels": snapshot.kernels,
        "points": snapshot.plan.points,
        "machine": environment["machine"],
        "command": environment["command"],
        "environment_notes": environment_notes(snapshot.run, snapshot.records),
        "unavailable": snapshot.unavailable,
        "predict_at": experiment.predict,
    }
    boots, plan = snapshot.boots, measurable(snapshot.plan, snapshot.kernels)
    design, most = experiment.design, blocks_of(experiment.design)
    if not design.until:
        left = len(boots_left(plan, boots, most))
        result = analyse(experiment, workloads, boots, **about)
        return result.model_copy(update={"boots_left": left})
    # Blocks added for the layout twin do not decide where the run stops: it stops there again with them.
    own = [boot for boot in boots if boot.start.block < most]

    def analyse_at(blocks: int, confidence: float) -> Result:
        return analyse(experiment, workloads, own, blocks=blocks, confidence=confidence, **about)

    reached = complete_blocks(plan, own, most)
    result, stopping = sequential.conclude(
        analyse_at,
        reached,
        most,
        sequential.parse_until(design.until),
        design.confidence,
        {(name, metric) for name, metric, _ in headlines(experiment, workloads)},
        spent=spent(own, sequential.looks(most), reached, design.budget_s),
    )
    if stopping is not None and len(own) < len(boots):
        level = stopping.confidence
        result = analyse(experiment, workloads, boots, blocks=stopping.stopped_at, confidence=level, **about)
    return result.model_copy(update={"stopping": stopping})


def next_look(design: Design, result: Result | None) -> int:
    """The number of blocks to measure before the look after ``result``; None is before the first look."""
    if not design.until:
        return blocks_of(design)
    stopping = result.stopping if result is not None else None
    if stopping is None:
        return sequential.looks(blocks_of(design))[0]
    if stopping.done:
        return stopping.stopped_at
    return next(look for look in stopping.looks if look > stopping.stopped_at)


@dataclass(frozen=True)
class ProfileSummary:
    """The summary of the profiled boots: profiles, folded stacks by file name, and problems."""

    profiles: tuple[Profile, ...]
    folded: Mapping[str, str]
    notes: tuple[str, ...]


def profiles_of(snapshot: Snapshot) -> ProfileSummary:
    """Summarize the profiled boots of a run; empty if it has none. Raises InputError.

    A file of stacks is called ``KERNEL-WORKLOAD-PARAMETER=VALUE.folded``, with the parameters that the
    experiment sets.
    """
    boots, experiment, workloads = snapshot.run.profile.boots(), snapshot.experiment, snapshot.workloads
    kernels = list(dict.fromkeys((BASE, *(boot.start.kernel for boot in boots))))
    found = profiles(boots, experiment, workloads, kernels)
    files = {}
    for stretches in collect(boots):
        sweep = next(s for s in experiment.workloads if s.workload == stretches.workload)
        shown = {*experiment.machine.swept, *sweep.params, workloads[stretches.workload].law}
        words = [f"{name}={value}" for name, value in stretches.key if name in shown]
        name = "-".join((stretches.kernel, stretches.workload, *words)).replace("/", "_")
        files[f"{name}.folded"] = folded(stretches)
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
    return ProfileSummary(found, files, tuple(dict.fromkeys(notes)))
