"""The metrics of a result: their names, their comparisons by metric, and which of them are
headlines.

The name for people, ``freezing user space``, is that of the workload's file; the key is
``freeze_user_ns``. Where there is no name, as in runs from before workloads had names, the key is
put into words. A metric that is no headline has the verdicts of its points alone.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kteardown.model.judged import Comparison, MetricVerdict
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result
from kteardown.model.workload import Better, Metric, Workload
from kteardown.visible import on_one_line

_UNITS = re.compile(r"_(ns|us|kb|per_s|count)$")
_TIMES = ("ns", "us")

PointKey = tuple[tuple[str, ParamValue], ...]
"""A point as a key of dictionaries: pairs of parameter and value."""


def metric_name(
    workloads: Mapping[str, Workload], workload: str, metric: str, statistic: str = ""
) -> str:
    """Return the name of a metric, followed by the statistic if that is a percentile."""
    definition = workloads.get(workload)
    return with_statistic(
        name_of(metric, definition.metrics.get(metric) if definition else None), statistic
    )


def with_statistic(name: str, statistic: str) -> str:
    """Return a metric's name, followed by the statistic if that is a percentile."""
    return f"{name} ({statistic})" if statistic.startswith("p") else name


def name_of(key: str, spec: Metric | None) -> str:
    """Return the name of the metric with this key: its own, or the key in words."""
    if spec is not None and spec.name:
        return on_one_line(spec.name)
    unit = _UNITS.search(key)
    words = _UNITS.sub("", key).replace("_", " ")
    return f"{words} time" if unit and unit[1] in _TIMES else words


def metric_label(metric: str, statistic: str) -> str:
    """Return the key of a metric and statistic: ``wakeup_ns`` or ``wakeup_ns p99``."""
    return metric if statistic == "median" else f"{metric} {statistic}"


@dataclass(frozen=True)
class Group:
    """The comparisons of one statistic of one metric, in the order of the result. ``name``: in
    words."""

    workload: str
    metric: str
    statistic: str
    name: str
    comparisons: tuple[Comparison, ...]

    @property
    def key(self) -> str:
        """Return the metric as options name it, followed by the percentile if the statistic is
        one."""
        return metric_label(self.metric, self.statistic)

    @property
    def unit(self) -> str:
        """Return the unit of the workload's file."""
        return self.comparisons[0].unit

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
    comparisons: dict[tuple[str, str, str], list[Comparison]] = {}
    for c in result.asked_for:
        comparisons.setdefault((c.workload, c.metric, c.statistic), []).append(c)
    return [
        Group(*key, metric_name(workloads, *key), tuple(mine)) for key, mine in comparisons.items()
    ]


def headlines(result: Result, workloads: Mapping[str, Workload]) -> list[Group]:
    """Return the groups of the headline metrics, which have a table each."""
    return [g for g in groups(result, workloads) if is_headline(workloads, g.workload, g.metric)]


def headline_rows(
    result: Result, workloads: Mapping[str, Workload]
) -> Iterator[tuple[Group, str, list[Comparison], MetricVerdict | None]]:
    """Yield each headline metric and variant with its comparisons and its verdict over all
    points."""
    for group in headlines(result, workloads):
        for variant in variants(result):
            if rows := group.of(variant):
                yield group, variant, rows, verdict_of(result, group, variant)


def is_headline(workloads: Mapping[str, Workload], workload: str, metric: str) -> bool:
    """Return whether a metric is in the main tables: all are if the workload marks no headline
    metric.

    A workload or metric that this version does not know, in a result of another version, is not a
    headline metric.
    """
    metrics = workloads[workload].metrics if workload in workloads else {}
    return metric in metrics and (
        metrics[metric].headline or not any(spec.headline for spec in metrics.values())
    )


def variants(result: Result) -> list[str]:
    """Return the variants that were requested, without the kernels that were built only for an
    ablation."""
    return list(dict.fromkeys(c.variant for c in result.asked_for))


def verdict_of(result: Result, group: Group, variant: str) -> MetricVerdict | None:
    """Return the verdict of a variant on a headline metric over all its points; None if it has
    none."""
    name = (group.workload, group.metric, group.statistic, variant)
    return next(
        (
            m
            for m in result.metric_verdicts
            if (m.workload, m.metric, m.statistic, m.variant) == name
        ),
        None,
    )
