"""The forest plot of a page: one row of text for each ratio, with its mark and interval between the words.

It is made of elements of the page, so it needs no script to be drawn, filtered, printed and read aloud.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kteardown.model.result import Comparison, Result, Verdict
from kteardown.model.workload import Workload
from kteardown.report.charts.figure import shared_span
from kteardown.report.charts.forest import rows_of
from kteardown.report.charts.ratio_axis import RatioAxis, RatioMark
from kteardown.report.comparison_groups import variants
from kteardown.report.formatting import VERDICTS, change, decimals, with_remedy


@dataclass(frozen=True)
class PlottedRow:
    """One comparison. ``twins`` are the intervals of base against its twins, in percent of the width."""

    label: str
    text: str
    verdict: Verdict
    reason: str
    mark: RatioMark
    twins: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True)
class PlottedMetric:
    """The rows of one metric. ``left`` and ``right`` say what the sides of the middle line mean."""

    name: str
    anchor: str
    metric: str
    workload: str
    left: str
    right: str
    rows: tuple[PlottedRow, ...]


@dataclass(frozen=True)
class ForestPlot:
    """Every change of one variant."""

    variant: str
    ticks: tuple[tuple[float, str], ...]
    metrics: tuple[PlottedMetric, ...]
    verdicts: tuple[Verdict, ...]
    twins: tuple[tuple[str, str], ...]
    """The twins that have intervals, each with its description."""


def forest_plots(result: Result, workloads: Mapping[str, Workload]) -> list[ForestPlot]:
    """Return a plot for each variant, all on the same axis."""
    axis = RatioAxis(*shared_span(result.asked_for))
    plots = [_plot(result, workloads, variant, axis) for variant in variants(result)]
    return [plot for plot in plots if plot.metrics]


def _plot(result: Result, workloads: Mapping[str, Workload], variant: str, axis: RatioAxis) -> ForestPlot:
    of_variant = rows_of(result, workloads, variant)
    several = len({group.workload for group, _ in of_variant}) > 1
    metrics = []
    for group, rows in of_variant:
        digits = decimals(c for _, _, c in rows)
        sides = ("better", "worse") if group.better == "lower" else ("worse", "better")
        plotted = tuple(_row(label, c, axis, digits) for _, label, c in rows)
        metrics.append(
            PlottedMetric(
                group.name, group.anchor, group.metric, group.workload if several else "", *sides, plotted
            )
        )
    every = [c for _, rows in of_variant for _, _, c in rows]
    twins = (
        ("twin", "A/A: base against itself", any(c.null_ci for c in every)),
        ("moved", "base with its code moved", any(c.layout_ci for c in every)),
    )
    return ForestPlot(
        variant,
        axis.ticks(),
        tuple(metrics),
        tuple(v for v in VERDICTS if any(c.verdict == v for c in every)),
        tuple((name, text) for name, text, shown in twins if shown),
    )


def _row(label: str, c: Comparison, axis: RatioAxis, digits: int) -> PlottedRow:
    twins = (("twin", c.null_ci), ("moved", c.layout_ci))
    return PlottedRow(
        label=label,
        text=change(c, digits),
        verdict=c.verdict,
        reason=with_remedy(c.reason),
        mark=axis.mark(c),
        twins=tuple((name, axis.at(ci[0]), axis.at(ci[1])) for name, ci in twins if ci),
    )
