"""The metrics of a result: their names, their comparisons, and their verdicts in words.

The name for people, ``freezing user space``, is that of the workload's file; the key is ``freeze_user_ns``.
Where there is no name, as in runs from before workloads had names, the key is put into words. A metric that
is no headline has the verdicts of its points alone.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from kteardown.errors import InputError
from kteardown.inputs.load import load_workload
from kteardown.model.record import ParamValue
from kteardown.model.result import Comparison, MetricVerdict, Result
from kteardown.model.workload import Better, Metric, Workload
from kteardown.report.formatting import (
    change,
    change_of,
    decimals,
    parameter,
    tone,
    verdict_counts,
    with_remedy,
)

_UNITS = re.compile(r"_(ns|us|kb|per_s|count)$")
_TIMES = ("ns", "us")


def metric_name(workloads: Mapping[str, Workload], workload: str, metric: str, statistic: str = "") -> str:
    """Return the name of a metric, followed by the statistic if that is a percentile."""
    known = workloads.get(workload)
    return with_statistic(name_of(metric, known.metrics.get(metric) if known else None), statistic)


def distinct_names(
    workloads: Mapping[str, Workload], metrics: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], str]:
    """Return the name of each metric, by workload and key, so that no two are equal: options of a choice."""
    keys = list(dict.fromkeys(metrics))
    several = len({workload for workload, _ in keys}) > 1
    names = {key: metric_name(workloads, *key) for key in keys}
    counts = Counter((key[0], name) for key, name in names.items())
    found = {}
    for (workload, metric), name in names.items():
        alike = counts[workload, name] > 1
        apart = " ".join([workload] * several + [metric] * alike)
        found[workload, metric] = f"{name} ({apart})" if apart else name
    return found


def with_statistic(name: str, statistic: str) -> str:
    """Return a metric's name, followed by the statistic if that is a percentile."""
    return f"{name} ({statistic})" if statistic.startswith("p") else name


@cache
def shipped_name(workload: str, metric: str, statistic: str = "") -> str:
    """Return the name of a metric where only its key is known: of a workload that is not shipped, the key."""
    try:
        known = {workload: load_workload(workload)}
    except InputError:
        known = {}
    return metric_name(known, workload, metric, statistic)


def name_of(key: str, spec: Metric | None) -> str:
    """Return the name of the metric with this key: its own, or the key in words."""
    if spec is not None and spec.name:
        return spec.name
    unit = _UNITS.search(key)
    words = _UNITS.sub("", key).replace("_", " ")
    return f"{words} time" if unit and unit[1] in _TIMES else words


def help_of(spec: Metric) -> str:
    """Return what a metric is, and if the agent did not make the figure, what did."""
    if spec.reporter == "agent":
        return spec.help
    whole = f", within {spec.whole}" if spec.whole else ""
    return f"{spec.help} (the {spec.reporter}'s own figure{whole})"


def metric_label(metric: str, statistic: str) -> str:
    """Return the key of a metric and statistic: ``wakeup_ns`` or ``wakeup_ns p99``."""
    return metric if statistic == "median" else f"{metric} {statistic}"


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
        return f"metric-{self.workload}-{self.metric}"

    @property
    def better(self) -> Better:
        """Return the direction of the metric that is better."""
        return self.comparisons[0].better

    def of(self, variant: str) -> list[Comparison]:
        """Return the comparisons of one variant."""
        return [c for c in self.comparisons if c.variant == variant]


def groups(result: Result, workloads: Mapping[str, Workload]) -> list[Group]:
    """Return every metric and statistic that has comparisons of requested variants."""
    found: dict[tuple[str, str, str], list[Comparison]] = {}
    for c in result.asked_for:
        found.setdefault((c.workload, c.metric, c.statistic), []).append(c)
    return [Group(*key, metric_name(workloads, *key), tuple(mine)) for key, mine in found.items()]


def headlines(result: Result, workloads: Mapping[str, Workload]) -> list[Group]:
    """Return the groups of the headline metrics, which have a table each."""
    return [g for g in groups(result, workloads) if is_headline(workloads, g.workload, g.metric)]


def headline_rows(
    result: Result, workloads: Mapping[str, Workload]
) -> Iterator[tuple[Group, str, list[Comparison], MetricVerdict | None]]:
    """Yield each headline metric and variant with its comparisons and its verdict over all points."""
    for group in headlines(result, workloads):
        for variant in variants(result):
            if rows := group.of(variant):
                yield group, variant, rows, verdict_of(result, group, variant)


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


def metric_sentence(group: Group, rows: Sequence[Comparison], metric: MetricVerdict | None) -> str:
    """Return one variant and metric in words: ``V: better on M: -61.0% [-62, -60]; 5 better, 1 same``.

    Where the verdict has a reason, it is given, with the option that makes the next run decide.
    """
    whole = metric.verdict if metric else tone(rows)
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
