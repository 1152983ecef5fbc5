"""The result of a run, from its records alone, where it stops when sure also at which look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kteardown.analysis import sequential
from kteardown.analysis.analyse import analyse
from kteardown.analysis.dataset import headlines
from kteardown.model.experiment import Design, Experiment
from kteardown.model.plan import Plan, blocks_of
from kteardown.model.result import KernelFacts, Result, Unavailable
from kteardown.model.workload import Workload
from kteardown.rundir.completeness import complete_blocks, spent
from kteardown.rundir.directory import BootRecords, RunDir
from kteardown.rundir.environment import environment_notes


def result_of(
    run: RunDir,
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    facts: Mapping[str, KernelFacts],
    unavailable: Sequence[Unavailable],
) -> Result:
    """The result of what the run directory holds now. Raises InputError."""
    environment = run.environment()
    about: dict[str, Any] = {
        "kernels": facts,
        "machine": environment["machine"],
        "command": environment["command"],
        "environment_notes": environment_notes(run),
        "unavailable": unavailable,
        "predict_at": experiment.predict,
    }
    boots = run.boots()
    if not experiment.design.until:
        return analyse(experiment, workloads, boots, **about)
    plan = Plan.model_validate_json(run.plan_file.read_bytes())
    return _at_its_look(experiment, workloads, boots, plan, about)


def next_look(design: Design, result: Result | None) -> int:
    """Up to which block a run is to be measured that stands at ``result``; None where nothing is yet."""
    if not design.until:
        return blocks_of(design)
    stopping = result.stopping if result is not None else None
    if stopping is None:
        return sequential.looks(blocks_of(design))[0]
    if stopping.done:
        return stopping.stopped_at
    return next(look for look in stopping.looks if look > stopping.stopped_at)


def _at_its_look(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    boots: Sequence[BootRecords],
    plan: Plan,
    about: Mapping[str, Any],
) -> Result:
    design = experiment.design
    most = blocks_of(design)
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
