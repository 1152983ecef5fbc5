"""The forest plot: one row for each ratio, with its mark and interval between the words.

On a page the rows are elements of the page, so they need no script to be filtered, printed and read aloud.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kteardown.model.result import Comparison, Result, Verdict
from kteardown.model.workload import Workload
from kteardown.report.charts.figure import Chart, Row, Rows, slug
from kteardown.report.charts.ratio_axis import RatioAxis
from kteardown.report.comparison_groups import Group, groups, point_cells, variants
from kteardown.report.formatting import VERDICTS, change, decimals, parameter, with_remedy
from kteardown.report.material import Material

_MOST_ROWS = 48
"""In files, each metric of a variant with more rows than this has a chart of its own."""
_MIDDLE = 11
"""Half of the height of a row, in CSS pixels."""


@dataclass(frozen=True)
class PlottedMetric:
    """The rows of one metric. ``left`` and ``right`` say what the sides of the middle line mean."""

    group: Group
    left: str
    right: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class ForestPlot:
    """Every change of one variant."""

    variant: str
    axis: RatioAxis
    metrics: tuple[PlottedMetric, ...]
    verdicts: tuple[Verdict, ...]
    twins: tuple[tuple[str, str], ...]
    """The twins that have intervals, each with its description."""

    @property
    def several(self) -> bool:
        """Return whether the metrics are of several workloads."""
        return len({metric.group.workload for metric in self.metrics}) > 1


def forest_plots(result: Result, workloads: Mapping[str, Workload]) -> list[ForestPlot]:
    """Return a plot for each variant, all on the same axis."""
    axis = RatioAxis.of(result.asked_for)
    points: dict[str, list[Comparison]] = {}
    for c in result.asked_for:
        points.setdefault(c.workload, []).append(c)
    varying = {workload: point_cells([c.point for c in mine])[0] for workload, mine in points.items()}
    every = groups(result, workloads)
    plots = []
    for variant in variants(result):
        found = [(g, [c for c in g.of(variant) if c.ratio is not None and c.ratio > 0]) for g in every]
        metrics = [_metric(group, rows, varying[group.workload], axis) for group, rows in found if rows]
        drawn = [c for _, rows in found for c in rows]
        twins = (
            ("twin", "A/A: base against itself", any(c.null_ci for c in drawn)),
            ("moved", "base with its code moved", any(c.layout_ci for c in drawn)),
        )
        plots.append(
            ForestPlot(
                variant,
                axis,
                tuple(metrics),
                tuple(verdict for verdict in VERDICTS if any(c.verdict == verdict for c in drawn)),
                tuple((name, text) for name, text, shown in twins if shown),
            )
        )
    return [plot for plot in plots if plot.metrics]


def _metric(group: Group, rows: list[Comparison], varying: tuple[str, ...], axis: RatioAxis) -> PlottedMetric:
    digits = decimals(rows)
    left, right = ("better", "worse") if group.better == "lower" else ("worse", "better")
    plotted = [
        Row(
            label=" ".join(_label(n, parameter(c.point[n])) for n in varying if n in c.point) or "all",
            text=change(c, digits),
            verdict=c.verdict,
            reason=with_remedy(c.reason),
            picture=_picture(c, axis),
        )
        for c in rows
    ]
    return PlottedMetric(group, left, right, tuple(plotted))


def _label(name: str, text: str) -> str:
    return f"{name} {text}" if text[:1].isdigit() else text


def _picture(c: Comparison, axis: RatioAxis) -> str:
    twins = "".join(
        f'<line x1="{axis.at(ci[0])}%" x2="{axis.at(ci[1])}%" y1="{_MIDDLE}" y2="{_MIDDLE}" class="{name}"/>'
        for name, ci in (("twin", c.null_ci), ("moved", c.layout_ci))
        if ci
    )
    return twins + axis.svg(c, _MIDDLE)


def forests(material: Material) -> list[Chart]:
    """Return a chart for each variant, or for each metric of a variant if it has many rows."""
    found = []
    for plot in forest_plots(material.result, material.workloads):
        if sum(len(metric.rows) for metric in plot.metrics) <= _MOST_ROWS:
            found.append(_chart(plot, plot.metrics))
        else:
            found += [_chart(plot, (metric,)) for metric in plot.metrics]
    return found


def _chart(plot: ForestPlot, metrics: tuple[PlottedMetric, ...]) -> Chart:
    single = metrics[0].group if len(metrics) == 1 else None
    drawn = [Row("", plot.axis.labels())]
    for metric in metrics:
        of = f" ({metric.group.workload})" if plot.several else ""
        drawn.append(Row(f"{metric.group.name}{of}, {metric.group.better} is better", ""))
        drawn += [replace(row, picture=plot.axis.lines() + row.picture) for row in metric.rows]
    verdicts = [row.verdict for metric in metrics for row in metric.rows]
    counts = ", ".join(f"{n} {verdict}" for verdict in VERDICTS if (n := verdicts.count(verdict)))
    marks = [(f'<use href="#mark-{v}" x="9" y="6"/>', str(v)) for v in plot.verdicts]
    lines = [(f'<line x2="18" y1="6" y2="6" class="{name}"/>', text) for name, text in plot.twins]
    return Chart(
        name=slug("forest", plot.variant, *((single.workload, single.key) if single else ())),
        title=f"{plot.variant} against base{f', {single.name}' if single else ''}",
        about=f"Forest plot of {len(verdicts)} changes of {plot.variant} against base with their intervals: "
        f"{counts}.",
        drawn=Rows(tuple(drawn), (*marks, *lines)),
    )
