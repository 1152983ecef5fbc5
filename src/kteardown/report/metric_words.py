"""The verdict of a metric in words: what it is over all points, then what its points show.

A metric that is no headline has the verdicts of its points alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kteardown.model.record import ParamValue
from kteardown.model.result import Comparison, MetricVerdict, Result, Verdict
from kteardown.report.comparison_groups import Group
from kteardown.report.formatting import (
    VERDICTS,
    change_of,
    decimals,
    interval,
    point_text,
    sentence,
    tone,
    with_remedy,
)

_NAMED = 1
"""Up to this many points are named individually; of more, the number is given."""


def verdict_of(result: Result, group: Group, variant: str) -> MetricVerdict | None:
    """Return the verdict of a variant on a headline metric over all its points; None if it has none."""
    name = (group.workload, group.metric, group.statistic, variant)
    return next(
        (m for m in result.metric_verdicts if (m.workload, m.metric, m.statistic, m.variant) == name), None
    )


def leading(metric: MetricVerdict | None, rows: Sequence[Comparison]) -> Verdict:
    """Return the one verdict of a metric: its own, or else the most alarming one of its points."""
    return tone(rows) if metric is None else metric.verdict


def metric_sentence(group: Group, rows: Sequence[Comparison], metric: MetricVerdict | None) -> str:
    """Return a summary of one variant and one metric.

    The form is ``V: better on M over all 8 points (-61.0% [-62, -60]); better at 6, same at 2``. Opposite
    changes are first: ``V: mixed on M: better at 6 points, worse at zombies=0 (+9.1%); ...``.
    """
    variant = rows[0].variant
    if metric is None or (metric.planned == 1 and len(rows) == 1):
        return sentence(group.name, variant, rows)
    over = f"over {points_of(metric)} ({detail(metric, rows)})"
    if metric.verdict == "mixed":
        return f"{variant}: mixed on {group.name}: {_each(rows, with_change=True)}; {over}"
    return f"{variant}: {metric.verdict} on {group.name} {over}; {_each(rows)}{_against(metric, rows)}"


def points_of(metric: MetricVerdict) -> str:
    """Return the points that count as text: ``all 8 points``, or ``7 of 8 points, 1 is missing``."""
    missing = metric.planned - metric.points
    if not missing:
        return f"all {metric.points} points" if metric.points > 1 else "the only point"
    is_missing = "1 is missing" if missing == 1 else f"{missing} are missing"
    return f"{metric.points} of {metric.planned} points, {is_missing}"


def detail(metric: MetricVerdict, rows: Sequence[Comparison]) -> str:
    """Return the change over all points with its interval; why it is inconclusive or the same, if it is."""
    size = metric_change(metric, rows)
    return f"{size}; {with_remedy(metric.reason)}" if metric.verdict in ("same", "inconclusive") else size


def metric_change(metric: MetricVerdict, rows: Sequence[Comparison]) -> str:
    """Return the change over all points with its interval, or its direction if it has no ratio."""
    if metric.ratio is not None:
        digits = max(decimals(rows), 2 if _narrow(metric) else 1)
        return change_of(metric.ratio, metric.ci, exact=metric.exact, decimals=digits)
    if metric.verdict in ("better", "worse"):
        lower = (metric.verdict == "better") == (metric.better == "lower")
        return f"{'lower' if lower else 'higher'}, no ratio"
    return "no ratio"


def against(metric: MetricVerdict, rows: Iterable[Comparison]) -> list[Comparison]:
    """Return the points whose own interval is opposite to the verdict of the metric, beyond the margin.

    Their changes are not significant after the correction, or the verdict would be mixed.
    """
    if metric.verdict not in ("better", "worse") or metric.ratio is None:
        return []
    up = metric.ratio > 1
    return [c for c in rows if c.ci and c.verdict != "same" and (c.ci[1] < 1 if up else c.ci[0] > 1)]


def where(mine: Sequence[Comparison], rows: Sequence[Comparison]) -> str:
    """Return these points as text: their parameters if there are few, else their number."""
    if len(mine) > _NAMED:
        return str(len(mine))
    names = varying([c.point for c in rows])
    return ", ".join(point_text({n: c.point[n] for n in names if n in c.point}) for c in mine)


def varying(points: Sequence[Mapping[str, ParamValue]]) -> list[str]:
    """Return the parameters that do not have the same value at all points."""
    names = dict.fromkeys(name for point in points for name in point)
    return [name for name in names if len({point.get(name) for point in points}) > 1]


def _each(rows: Sequence[Comparison], *, with_change: bool = False) -> str:
    """Return the verdicts of the points: ``better at 6, same at zombies=0``."""
    parts: list[str] = []
    for verdict in VERDICTS:
        mine = [c for c in rows if c.verdict == verdict]
        if not mine:
            continue
        if len(mine) == len(rows):
            return f"{verdict} at each of them"
        noun = " points" if with_change and not parts and len(mine) > _NAMED else ""
        size = f" ({change_of(mine[0].ratio, None)})" if with_change and len(mine) == 1 else ""
        parts.append(f"{verdict} at {where(mine, rows)}{noun}{size}")
    return ", ".join(parts)


def _against(metric: MetricVerdict, rows: Sequence[Comparison]) -> str:
    """Return the points that go in the opposite direction without being significant."""
    opposite = against(metric, rows)
    if not opposite:
        return ""
    worst = max(opposite, key=lambda c: abs((c.ratio or 1.0) - 1))
    size = f"{change_of(worst.ratio, worst.ci)} at {where([worst], rows)}"
    others = f" and {len(opposite) - 1} more" if len(opposite) > 1 else ""
    return f"; in the opposite direction: {size}{others}, not significant after the correction"


def _narrow(metric: MetricVerdict) -> bool:
    return not metric.exact and metric.ci is not None and metric.ci[1] - metric.ci[0] < 0.002


def metric_interval(metric: MetricVerdict) -> str:
    """Return the interval over all points as changes; empty if it is exact or unknown."""
    return "" if metric.ci is None or metric.exact else interval(metric.ci)
