"""Group the comparisons of a result by metric and statistic, and select the headline metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kteardown.model.record import ParamValue
from kteardown.model.result import Comparison, Result
from kteardown.model.workload import Better, Workload
from kteardown.report.formatting import parameter
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
