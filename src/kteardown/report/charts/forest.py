"""The forest plot: one row for each ratio, with its mark and interval between the words.

On a page the rows are elements of the page, so they need no script to be filtered, printed and read aloud.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kteardown.model.result import Comparison, Result, Verdict
from kteardown.model.workload import Workload
from kteardown.report.charts.figure import Chart, Row, Rows, slug
from kteardown.report.comparison_groups import Group, groups, point_cells, variants
from kteardown.report.formatting import (
    VERDICTS,
    change,
    decimals,
    parameter,
    percent,
    verdict_counts,
    with_remedy,
)
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
            label=_label(c, varying),
            text=change(c, digits),
            verdict=c.verdict,
            reason=with_remedy(c.reason),
            picture=_picture(c, axis),
        )
        for c in rows
    ]
    return PlottedMetric(group, left, right, tuple(plotted))


def _label(c: Comparison, varying: tuple[str, ...]) -> str:
    texts = [(name, parameter(c.point[name])) for name in varying if name in c.point]
    return " ".join(f"{name} {text}" if text[:1].isdigit() else text for name, text in texts) or "all"


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
    verdicts = [row.verdict for metric in metrics for row in metric.rows if row.verdict]
    marks = [(f'<use href="#mark-{v}" x="9" y="6"/>', str(v)) for v in plot.verdicts]
    lines = [(f'<line x2="18" y1="6" y2="6" class="{name}"/>', text) for name, text in plot.twins]
    return Chart(
        name=slug("forest", plot.variant, *((single.workload, single.key) if single else ())),
        title=f"{plot.variant} against base{f', {single.name}' if single else ''}",
        about=f"Forest plot of {len(verdicts)} changes of {plot.variant} against base with their intervals: "
        f"{verdict_counts(verdicts)}.",
        drawn=Rows(tuple(drawn), (*marks, *lines)),
    )


_FURTHER, _LEAST_REACH = 1 / 3, 1.1
_TICKS = (
    *(0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995),
    *(1.005, 1.01, 1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 2, 3, 4, 5, 10, 20, 50, 100, 1000, 10_000, 100_000),
)
_EDGE = 4
"""A label this near to an end of the axis, in percent, is beside its tick."""


@dataclass(frozen=True)
class RatioAxis:
    """The axis from ``low`` to ``high``."""

    low: float
    high: float

    @classmethod
    def of(cls, comparisons: Iterable[Comparison]) -> RatioAxis:
        """Return one axis for the ratios of all ``comparisons``, so that pictures of them can be compared.

        A very wide interval does not decide it: what lies further out than a third of the span of the ratios
        that have a verdict is outside, and is drawn with an arrow.
        """
        every = [c for c in comparisons if c.ratio is not None and c.ratio > 0]
        firm = [c for c in every if c.verdict != "inconclusive"] or every
        ratios = [math.log(c.ratio or 1.0) for c in firm]
        low, high = min([*ratios, 0.0]), max([*ratios, 0.0])
        reach = max(_FURTHER * (high - low), math.log(_LEAST_REACH))
        ends = [end for c in every for end in (c.ratio or 1.0, *(c.ci or ())) if end > 0]
        least, most = math.exp(low - reach), math.exp(high + reach)
        return cls(*ratio_range([min(max(end, least), most) for end in ends]))

    def at(self, ratio: float) -> float:
        """Return the position of a ratio, in percent of the width."""
        inside = min(max(ratio, self.low), self.high)
        return round(100 * math.log(inside / self.low) / math.log(self.high / self.low), 2)

    def svg(self, c: Comparison, y: float) -> str:
        """Return the mark and the interval of a comparison that has a ratio, ``y`` pixels from the top.

        An arrow at an end says that the ratio or the interval goes on beyond it.
        """
        ratio = c.ratio or 1.0
        low, high = c.ci or (ratio, ratio)
        ends = (
            (min(ratio, low) < self.low, "0", "M-1 0 6-4.5V4.5z"),
            (max(ratio, high) > self.high, "100%", "M1 0-6-4.5V4.5z"),
        )
        arrows = "".join(
            f'<svg x="{x}" y="{y}" overflow="visible"><path d="{path}" class="fill {c.verdict}"/></svg>'
            for beyond, x, path in ends
            if beyond
        )
        place = f'x1="{self.at(low)}%" x2="{self.at(high)}%" y1="{y}" y2="{y}"'
        line = f'<line {place} class="interval {c.verdict}"/>' if low < high else ""
        mark = f'<use href="#mark-{c.verdict}" x="{self.at(ratio)}%" y="{y}"/>'
        return f"{line}{arrows}{mark if self.low < ratio < self.high else ''}"

    def lines(self) -> str:
        """Return a line from top to bottom for each tick, in SVG."""
        return "".join(
            f'<line x1="{x}%" x2="{x}%" y1="0" y2="100%" class="{"none" if text == "0" else "tick"}"/>'
            for x, text in self._ticks()
        )

    def labels(self) -> str:
        """Return the labels of the ticks, in SVG."""
        sides = [
            (x, text, "start" if x < _EDGE else "end" if x > 100 - _EDGE else "middle")
            for x, text in self._ticks()
        ]
        return "".join(f'<text x="{x}%" y="13" text-anchor="{side}">{text}</text>' for x, text, side in sides)

    def _ticks(self) -> list[tuple[float, str]]:
        return [(self.at(tick), text) for tick, text in ratio_ticks(self.low, self.high)]


def ratio_range(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the range of an axis of ratios: all of them and 1, with a margin; at least 1% to either side."""
    known = [ratio for ratio in ratios if ratio > 0 and math.isfinite(ratio)]
    low, high = min([*known, 0.99]), max([*known, 1.01])
    room = (high / low) ** 0.04
    return low / room, high * room


def ratio_ticks(low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
    """Return ticks of a logarithmic axis of ratios with their labels: ``-50%``, ``0``, ``2x``."""
    apart = math.log(high / low) / most
    chosen = [1.0]
    for step in sorted(_TICKS, key=lambda step: (abs(math.log(step)), step)):
        if low <= step <= high and all(abs(math.log(step / other)) >= apart * 0.8 for other in chosen):
            chosen.append(step)
    return [(step, _change(step)) for step in sorted(chosen)]


def _change(ratio: float) -> str:
    if ratio == 1:
        return "0"
    if ratio >= 3:
        return f"{ratio:,.0f}x"
    return percent(ratio, 0 if abs(round(ratio * 100) - ratio * 100) < 1e-6 else 1)
