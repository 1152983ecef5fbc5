"""Read from the results of earlier runs how much boots differ."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import ValidationError

from kteardown.model.experiment import Experiment
from kteardown.model.power import Spread
from kteardown.model.result import Result
from kteardown.rundir.directory import RunDir

_RUNS = 50
"""How many of the newest runs are read."""


def spreads(experiment: Experiment, runs: Iterable[RunDir]) -> dict[tuple[str, str], Spread]:
    """Return the spreads of the newest of ``runs`` with the clock of ``experiment``, by workload and metric.

    The largest of a run's variants is used. ``runs`` are oldest first. A run without a result, or with one
    that does not have them, is ignored.
    """
    found: dict[tuple[str, str], Spread] = {}
    for run in list(runs)[: -_RUNS - 1 : -1]:
        own: dict[tuple[str, str], Spread] = {}
        for metric in _read(run, experiment):
            name, spread = metric
            if name not in own or own[name].metric < spread.metric:
                own[name] = spread
        found = {**own, **found}
    return found


def _read(run: RunDir, wanted: Experiment) -> list[tuple[tuple[str, str], Spread]]:
    try:
        result = Result.model_validate_json(run.result_file.read_bytes())
    except (OSError, ValidationError):
        return []
    if result.clock != wanted.design.clock:
        return []
    return [
        ((m.workload, m.metric), Spread(m.spread, m.point_spread, run.name))
        for m in result.metric_verdicts
        if m.statistic == "median" and m.spread is not None and m.point_spread is not None
    ]
