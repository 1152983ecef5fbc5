"""What a design can decide, before it is run: the smallest change that it finds four times in five.

Student's t of the log ratios of as many boots as are planned, at the alpha that
``estimate.gatekeeping`` gives to a metric at the start, and to a point of a metric that is
rejected. The power is that of the noncentral t distribution. For a point it is an approximation:
medians of boots are compared there.
"""

import math
from collections.abc import Mapping, Sequence

from scipy import special

from kteardown.analysis.dataset import headlines
from kteardown.analysis.estimate.gatekeeping import parts
from kteardown.analysis.sequential import levels, looks
from kteardown.model.experiment import Experiment
from kteardown.model.plan import Decidable, DesignPower, Spread, blocks_of
from kteardown.model.point import Point
from kteardown.model.workload import Workload

POWER = 0.8
STATED = (0.01, 0.05, 0.2)
"""Spreads for which the sizes are given if no earlier run shows the spread."""


def decidable(
    experiment: Experiment,
    workloads: Mapping[str, Workload],
    variants: int,
    points: Sequence[Point],
    spreads_by_metric: Mapping[tuple[str, str], Spread],
) -> DesignPower:
    """Return what the design can decide. ``spreads_by_metric`` are those of earlier runs."""
    design = experiment.design
    boots = blocks_of(design)
    alpha = 1 - (levels(looks(boots), design.confidence)[-1] if design.until else design.confidence)
    metrics = headlines(experiment, workloads)
    statistics = sum(
        1 + sum(percent != 50 for percent in spec.percentiles) for _, _, spec in metrics
    )
    tests = max(1, statistics * variants)
    of = {name: sum(point.workload == name for point in points) for name in workloads}
    spreads = [
        (w, metric, of[w], spreads_by_metric[w, metric])
        for w, metric, _ in metrics
        if (w, metric) in spreads_by_metric
    ]
    if len(spreads) < len(metrics):
        most = max(
            of[name] for name, metric, _ in metrics if (name, metric) not in spreads_by_metric
        )
        spreads += [("", "", most, Spread(size, size, "")) for size in STATED]
    rows = []
    for workload, metric, count, spread in spreads:
        of_metric, of_point = parts(tests, count)
        rows.append(
            Decidable(
                workload=workload,
                metric_name=metric,
                points=count,
                spread=spread.metric,
                metric=smallest_change(spread.metric, boots, alpha * of_metric),
                point=smallest_change(spread.point, boots, alpha * of_point),
                run=spread.run,
            )
        )
    return DesignPower(tests, boots, tuple(rows))


def smallest_change(spread: float, boots: int, alpha: float) -> float | None:
    """Return the smallest increase that a two-sided t test at ``alpha`` finds with 80% power."""
    if boots < 2:
        return None
    df = boots - 1
    critical = float(special.stdtrit(df, 1 - alpha / 2))
    size = float(special.nctdtrinc(df, 1 - POWER, critical)) * spread / math.sqrt(boots)
    return math.expm1(size) if size < 600 else None
