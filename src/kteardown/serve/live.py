"""The part of a page that changes while its run is measured: the medians so far, as tables."""

from collections.abc import Mapping

from kteardown.analysis.dataset import headlines
from kteardown.model.point import key
from kteardown.model.record import BASE, LAYOUT, TWIN
from kteardown.report.comparison_groups import point_cells
from kteardown.report.formatting import Scale, percent, scale
from kteardown.report.metric_names import name_of
from kteardown.report.table import Block, Table
from kteardown.run.live_progress import Progress
from kteardown.rundir.snapshot import Snapshot

_MINUTE_S, _HOUR_S = 60, 3600


def median_tables(progress: Progress, snapshot: Snapshot) -> list[Table]:
    """Return a table for each headline metric, with a row for each point.

    A row has the median of each kernel so far and its change from base. Intervals and verdicts are only in
    the result, because they need enough boots.
    """
    medians = {(w, m, key(dict(point))): kernels for (w, m, point), kernels in progress.medians.items()}
    kernels = list(dict.fromkeys(name for found in medians.values() for name in found))
    shown = [name for name in kernels if name not in (BASE, TWIN, LAYOUT)]
    experiment, points, result = snapshot.experiment, snapshot.plan.points, []
    for workload, metric, spec in headlines(experiment, snapshot.workloads):
        at = [p for p in points if p.workload == workload and (workload, metric, p.full) in medians]
        if not at:
            continue
        found = [medians[workload, metric, point.full] for point in at]
        unit = scale(spec.unit, experiment.design.clock, (v for row in found for v in row.values()))
        names, keys = point_cells([point.shown for point in at])
        rows = [
            (*key, *(_median_text(row, kernel, unit) for kernel in (BASE, *shown)))
            for key, row in zip(keys, found, strict=True)
        ]
        name = f"{workload}: {name_of(metric, spec)} ({metric})"
        title = f"{name} in {unit.unit}, medians so far, {spec.better} is better"
        result.append(Table(title, Block.of((*names, BASE, *shown), rows)))
    return result


def duration(seconds: float) -> str:
    """Return a duration as text: ``40 s``, ``12 min``, ``2 h 05 min``."""
    if seconds < 2 * _MINUTE_S:
        return f"{seconds:.0f} s"
    minutes = round(seconds / _MINUTE_S)
    if minutes * _MINUTE_S < 2 * _HOUR_S:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02} min"


def share(value: float) -> str:
    """Return a share as a rounded-down percentage: 0.25 is ``25%``, and only 1 is ``100%``."""
    return f"{int(value * 100)}%"


def _median_text(row: Mapping[str, float], kernel: str, unit: Scale) -> str:
    if kernel not in row:
        return "-"
    text = unit.text(row[kernel])
    if kernel == BASE or row.get(BASE, 0.0) <= 0:
        return text
    return f"{text} ({percent(row[kernel] / row[BASE])})"
