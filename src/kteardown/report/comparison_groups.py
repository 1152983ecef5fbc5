"""The comparisons of a result by metric and statistic, the headline metrics, and their verdicts in words.

A metric that is no headline has the verdicts of its points alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kteardown.model.record import ParamValue
from kteardown.model.result import Comparison, MetricVerdict, Result, Verdict
from kteardown.model.workload import Better, Workload
from kteardown.report.formatting import (
    change,
    change_of,
    decimals,
    interval,
    parameter,
    tone,
    verdict_counts,
    with_remedy,
)
from kteardown.report.metric_names import metric_label, metric_name

PointKey = tuple[tuple[str, ParamValue], ...]
"""A point as a key of dictionaries: pairs of parameter and value."""


@dataclass(frozen=True)
class Group:
    """The comparisons of one statistic of one metric, in the order of the result. ``name``: in words."""

    workload: str
    metric: str
    statistic: str
    name: str
    comparisons: tuple[Comparison, ...]

    @property
    def key(self) -> str:
        """Return the metric as options name it, followed by the percentile if the statistic is one."""
        return metric_label(self.metric, self.statistic)

    @property
    def anchor(self) -> str:
        """Return the anchor at which a page explains the metric."""
        return metric_anchor(self.workload, self.metric)

    @property
    def better(self) -> Better:
        """Return the direction of the metric that is better."""
        return self.comparisons[0].better

    def of(self, variant: str) -> list[Comparison]:
        """Return the comparisons of one variant."""
        return [c for c in self.comparisons if c.variant == variant]


def metric_anchor(workload: str, metric: str) -> str:
    """Return the anchor at which a page explains a metric."""
    return f"metric-{workload}-{metric}"


def groups(result: Result, workloads: Mapping[str, Workload]) -> list[Group]:
    """Return every metric and statistic that has comparisons of requested variants."""
    found: dict[tuple[str, str, str], list[Comparison]] = {}
    for c in result.asked_for:
        found.setdefault((c.workload, c.metric, c.statistic), []).append(c)
    return [Group(*key, metric_name(workloads, *key), tuple(mine)) for key, mine in found.items()]


def headlines(result: Result, workloads: Mapping[str, Workload]) -> list[Group]:
    """Return the groups of the headline metrics, which have a table each."""
    return [g for g in groups(result, workloads) if is_headline(workloads, g.workload, g.metric)]


def is_headline(workloads: Mapping[str, Workload], workload: str, metric: str) -> bool:
    """Return whether a metric is in the main tables: all are if the workload marks no headline metric.

    A workload or metric that this version does not know, in a result of another version, is not a headline
    metric.
    """
    metrics = workloads[workload].metrics if workload in workloads else {}
    return metric in metrics and (
        metrics[metric].headline or not any(spec.headline for spec in metrics.values())
    )


def variants(result: Result) -> list[str]:
    """Return the variants that were requested, without the kernels that were built only for an ablation."""
    return list(dict.fromkeys(c.variant for c in result.asked_for))


def point_key(point: Mapping[str, ParamValue]) -> PointKey:
    """Return a point as a key: its parameters and values, in their order."""
    return tuple(point.items())


def point_cells(points: Sequence[Mapping[str, ParamValue]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the parameters whose values differ between the points, and a row of their values for each point.

    All parameters are returned if none differs.
    """
    names = list(dict.fromkeys(name for point in points for name in point))
    varying = [name for name in names if len({point.get(name) for point in points}) > 1] or names
    rows = [tuple(parameter(point.get(name, "-")) for name in varying) for point in points]
    return tuple(varying), rows


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
    points = verdict_counts(c.verdict for c in rows)
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
