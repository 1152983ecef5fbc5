"""What of a result belongs into one table: comparisons by metric and statistic, headline or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kteardown.model.record import ParamValue
from kteardown.model.result import Comparison, Result
from kteardown.model.workload import Workload
from kteardown.report.formatting import parameter
from kteardown.report.table import Cell

Place = tuple[tuple[str, ParamValue], ...]


@dataclass(frozen=True)
class Group:
    """The comparisons of one metric by one statistic, in the order of the result."""

    workload: str
    metric: str
    statistic: str
    comparisons: tuple[Comparison, ...]

    @property
    def name(self) -> str:
        """The metric, with the percentile where it is one."""
        return named(self.metric, self.statistic)

    def of(self, variant: str) -> list[Comparison]:
        """Those of one variant."""
        return [c for c in self.comparisons if c.variant == variant]


def named(metric: str, statistic: str) -> str:
    """A figure's name: ``wakeup_ns``, ``wakeup_ns p99``."""
    return metric if statistic == "median" else f"{metric} {statistic}"


def groups(result: Result) -> list[Group]:
    """Every metric and statistic with comparisons of the variants that were asked for."""
    found: dict[tuple[str, str, str], list[Comparison]] = {}
    for c in result.asked_for:
        found.setdefault((c.workload, c.metric, c.statistic), []).append(c)
    return [Group(*name, tuple(comparisons)) for name, comparisons in found.items()]


def headlines(result: Result, workloads: Mapping[str, Workload]) -> list[Group]:
    """Those that have a table of their own."""
    return [g for g in groups(result) if is_headline(workloads, g.workload, g.metric)]


def is_headline(workloads: Mapping[str, Workload], workload: str, metric: str) -> bool:
    """A workload that marks none has all of them in the main tables.

    What this kteardown does not know, because another one made the result, is none.
    """
    metrics = workloads[workload].metrics if workload in workloads else {}
    return metric in metrics and (
        metrics[metric].headline or not any(spec.headline for spec in metrics.values())
    )


def variants(result: Result) -> list[str]:
    """The variants that were asked for; those of an ablation have their own table."""
    return list(dict.fromkeys(c.variant for c in result.asked_for))


def place_of(comparison: Comparison) -> Place:
    """A point as something that can be looked up."""
    return tuple(comparison.point.items())


def point_cells(
    points: Sequence[Mapping[str, ParamValue]],
) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    """The parameters that tell the points apart (all, where nothing does), and a row of cells for each."""
    names = list(dict.fromkeys(name for point in points for name in point))
    varying = [name for name in names if len({point.get(name) for point in points}) > 1] or names
    rows = [tuple(Cell(parameter(point.get(name, "-"))) for name in varying) for point in points]
    return tuple(varying), rows
