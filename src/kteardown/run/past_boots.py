"""Read the directories of earlier runs for a forecast."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import ValidationError

from kteardown.errors import InputError
from kteardown.model.experiment import Experiment
from kteardown.model.plan import Plan
from kteardown.model.workload import Workload
from kteardown.run.forecast import Forecast, SeenBoot, forecast, jobs_of, seen_boot
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import all_runs

_RUNS = 4
"""How many of the newest runs of a workload are read: enough for a forecast, and fast to read."""


def seen(experiment: Experiment, runs: Iterable[RunDir]) -> list[SeenBoot]:
    """Return the boots of the newest of ``runs`` that have the clock and architecture of ``experiment``.

    Of each of its workloads so many runs are read. ``runs`` and the returned boots are oldest first. A run
    that cannot be read is ignored.
    """
    left = dict.fromkeys(_workloads(experiment), _RUNS)
    found: list[list[SeenBoot]] = []
    for run in reversed(list(runs)):
        missing = {name for name, count in left.items() if count}
        if not missing:
            break
        names, boots = _read(run, experiment, missing)
        found.insert(0, boots)
        for name in names & missing:
            left[name] -= 1 if boots else 0
    return [boot for boots in found for boot in boots]


def _read(run: RunDir, wanted: Experiment, missing: set[str]) -> tuple[set[str], list[SeenBoot]]:
    """Return the workloads and the boots of a run; none if it has no workload that is missing."""
    try:
        experiment = Experiment.model_validate_json(run.experiment_file.read_bytes())
        if _kind(experiment) != _kind(wanted) or not _workloads(experiment) & missing:
            return set(), []
        plan = Plan.model_validate_json(run.plan_file.read_bytes())
        clock, arch = experiment.design.clock, experiment.machine.arch
        seen = (seen_boot(run.name, boot, plan, clock, arch) for boot in run.boots())
        return _workloads(experiment), [boot for boot in seen if boot is not None]
    except (OSError, ValidationError, InputError):
        return set(), []


def _kind(experiment: Experiment) -> tuple[str, str]:
    return experiment.design.clock, experiment.machine.arch


def _workloads(experiment: Experiment) -> set[str]:
    return {sweep.workload for sweep in experiment.workloads}


def forecast_of(
    experiment: Experiment, workloads: Mapping[str, Workload], plan: Plan, jobs: int | None
) -> Forecast:
    """Return the forecast for ``plan`` from the earlier runs on this host."""
    return forecast(
        plan,
        workloads,
        seen(experiment, all_runs()),
        clock=experiment.design.clock,
        arch=experiment.machine.arch,
        jobs=jobs_of(experiment, jobs),
    )
