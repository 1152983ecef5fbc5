"""The verdict of a metric in words: what it is over all points, then what its points show.

A metric that is no headline has the verdicts of its points alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kteardown.model.result import Comparison, MetricVerdict, Result, Verdict
from kteardown.report.comparison_groups import Group
from kteardown.report.formatting import VERDICTS, change, change_of, decimals, interval, tone, with_remedy


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
    """Return one variant and metric in words: ``V: better on M: -61.0% [-62, -60]; 5 better, 1 same``.

    Where the verdict has a reason, it is given, with the option that makes the next run decide.
    """
    whole = leading(metric, rows)
    of = metric or (rows[0] if len(rows) == 1 else None)
    size = metric_change(metric, rows) if metric else change(rows[0], decimals(rows)) if of else ""
    reason = with_remedy(of.reason) if of and of.reason and whole in ("same", "inconclusive") else ""
    counts = Counter(c.verdict for c in rows)
    points = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    missing = metric.planned - metric.points if metric else 0
    parts = (size, reason, points if len(rows) > 1 else "", f"{missing} missing" if missing else "")
    return f"{rows[0].variant}: {whole} on {group.name}: {'; '.join(filter(None, parts))}"


def points_of(metric: MetricVerdict) -> str:
    """Return the points that count as text: ``all 8 points``, or ``7 of 8 points, 1 is missing``."""
    missing = metric.planned - metric.points
    if not missing:
        return f"all {metric.points} points" if metric.points > 1 else "the only point"
    is_missing = "1 is missing" if missing == 1 else f"{missing} are missing"
    return f"{metric.points} of {metric.planned} points, {is_missing}"


def metric_change(metric: MetricVerdict, rows: Sequence[Comparison]) -> str:
    """Return the change over all points with its interval, or its direction if it has no ratio."""
    if metric.ratio is not None:
        narrow = not metric.exact and metric.ci is not None and metric.ci[1] - metric.ci[0] < 0.002
        digits = max(decimals(rows), 2 if narrow else 1)
        return change_of(metric.ratio, metric.ci, exact=metric.exact, decimals=digits)
    if metric.verdict in ("better", "worse"):
        lower = (metric.verdict == "better") == (metric.better == "lower")
        return f"{'lower' if lower else 'higher'}, no ratio"
    return "no ratio"


def metric_interval(metric: MetricVerdict) -> str:
    """Return the interval over all points as changes; empty if it is exact or unknown."""
    return "" if metric.ci is None or metric.exact else interval(metric.ci)
