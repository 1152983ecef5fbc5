"""The figures of base at each point, of a run that compares it with nothing."""

from kteardown.analysis.dataset import Data, compared
from kteardown.analysis.estimate.verdict import summary
from kteardown.model.levels import Level
from kteardown.model.record import BASE


def levels(data: Data) -> tuple[Level, ...]:
    """Return the figures of every metric at every point; empty if there is a variant, whose
    comparisons have them."""
    if data.variants:
        return ()
    return tuple(
        Level(
            workload=workload,
            metric=metric,
            unit=spec.unit,
            kernel=BASE,
            point=point.shown,
            summary=summary(boots),
        )
        for workload, metric, spec in compared(data.experiment, data.workloads)
        for point in data.expected
        if point.workload == workload
        and (boots := data.collected.boots(BASE, point, metric)) is not None
    )
