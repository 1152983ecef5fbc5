"""Which headline metrics fail a gate: the one rule of ``--fail-on``, JUnit, ``gate`` and the first lines.

A metric that is ``mixed`` over its points hides changes in both directions. In each direction it has the
points with that verdict, and those without one whose whole interval lies in that direction.
"""

from collections.abc import Sequence
from typing import Literal

from kteardown.model.result import Comparison, MetricVerdict

Direction = Literal["better", "worse"]


def fails(metric: MetricVerdict | None, rows: Sequence[Comparison], fail_on: str) -> bool:
    """Return whether a headline metric of a variant fails a gate on ``worse`` or ``inconclusive``.

    ``metric`` is its verdict over all of its points, ``rows`` are these points. A single point that is worse
    fails, too. A single point that is inconclusive fails only if there is no verdict over all points.
    """
    if metric is not None and metric.verdict == fail_on:
        return True
    if fail_on == "worse":
        return bool(points_that_turned(metric, rows, "worse"))
    return metric is None and any(row.verdict == fail_on for row in rows)


def points_that_turned(
    metric: MetricVerdict | None, rows: Sequence[Comparison], direction: Direction
) -> list[Comparison]:
    """Return the points at which a metric became better or worse; ``metric`` as for ``fails``."""
    mixed = metric is not None and metric.verdict == "mixed"
    return [row for row in rows if row.verdict == direction or (mixed and _is_beyond(row, direction))]


def _is_beyond(row: Comparison, direction: Direction) -> bool:
    """Return whether the whole interval of a point without a verdict is in ``direction``.

    A saving that is not seen outside of the kernel's own figure is none.
    """
    if row.verdict != "inconclusive" or row.ci is None or row.outside == "contradicts":
        return False
    low, high = row.ci
    is_lower = (direction == "better") == (row.better == "lower")
    return high < 1 if is_lower else low > 1
