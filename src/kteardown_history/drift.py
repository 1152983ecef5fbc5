"""Metrics that become worse step by step, each step within the margin."""

from collections.abc import Sequence
from itertools import pairwise

from pydantic import BaseModel

from kteardown.analysis.margins import Margins
from kteardown.model.experiment import Experiment
from kteardown.model.record_fields import ParamValue
from kteardown.rundir.directory import RunDir
from kteardown_history.lines import HistoryFilter, Line, history_of

_STEP = 0.1
"""The smallest step of a drift, as a part of the margin."""


class Drift(BaseModel):
    """A metric became worse by ``by`` (0.03 is 3%) in ``steps``; the run ``since`` has its best
    level."""

    workload: str
    metric: str
    point: dict[str, ParamValue]
    kernel: str
    since: str
    at: str
    by: float
    steps: int


def drifts(
    runs: Sequence[RunDir], newest: str, experiment: Experiment, margins: Margins
) -> list[Drift]:
    """Return the drifts of headline metrics that end in the run called ``newest``, in the order of
    time."""
    wanted = HistoryFilter(experiment=experiment.name, clock=experiment.design.clock)
    # A step smaller than noise is no change point, whatever the least one is.
    history = history_of(runs, wanted, order="time", least=max(_STEP * margins.least, 1e-6))
    ending = (line for line in history.lines if line.headline and line.figures[-1].run == newest)
    return [
        drift for line in ending if (drift := drift_of(line, margins.of(line.metric))) is not None
    ]


def drift_of(line: Line, margin: float) -> Drift | None:
    """Return the drift at the end of a line, since its last step that was larger than the
    margin."""
    shifts = line.shifts
    if not shifts or any(shift.before <= 0 or shift.after <= 0 for shift in shifts):
        return None
    levels = [shifts[0].before, *(shift.after for shift in shifts)]
    starts = [0, *(shift.index for shift in shifts)]
    costs = levels if line.better == "lower" else [1 / level for level in levels]
    large = [
        n + 1 for n, (before, after) in enumerate(pairwise(costs)) if after > before * (1 + margin)
    ]
    first = large[-1] if large else 0
    best = min(range(first, len(costs)), key=costs.__getitem__)
    by = costs[-1] / costs[best] - 1
    if by <= margin:
        return None
    since = line.figures[starts[best]]
    return Drift(
        workload=line.workload,
        metric=line.metric,
        point=line.point,
        kernel=line.kernel,
        since=since.run,
        at=since.at,
        by=by,
        steps=len(costs) - 1 - best,
    )
