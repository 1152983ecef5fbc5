"""Forest plots: the changes of each variant from base with their intervals, on one axis.

The plots are SVG in the page itself, so they need no script to be filtered, printed and read
aloud.
"""

from dataclasses import replace

from kteardown.judge.metrics import groups, variants
from kteardown.judge.verdicts import VERDICTS
from kteardown.model.judged import Comparison
from kteardown.report.chart_model import Chart, Forest, Row, slug
from kteardown.report.charts import draw_as
from kteardown.report.formatting import change, decimals, parameter, verdict_counts, with_remedy
from kteardown.report.material import Material
from kteardown.report.metrics import point_cells
from kteardown.report.ratio_axis import RatioAxis

_MOST_ROWS = 48
"""In files, each metric of a variant with more rows than this has a chart of its own."""


def forest_plots(material: Material) -> list[Forest]:
    """Return a plot for each variant, all on the same axis."""
    result = material.result
    axis = RatioAxis.of(result.asked_for)
    points: dict[str, list[Comparison]] = {}
    for c in result.asked_for:
        points.setdefault(c.workload, []).append(c)
    varying = {
        workload: point_cells([c.point for c in mine])[0] for workload, mine in points.items()
    }
    every = groups(result, material.workloads)
    plots = []
    for variant in variants(result):
        compared = [
            (g, [c for c in g.of(variant) if c.ratio is not None and c.ratio > 0]) for g in every
        ]
        metrics = [(g, _rows(mine, varying[g.workload], axis)) for g, mine in compared if mine]
        drawn = [c for _, mine in compared for c in mine]
        twins = (
            ("twin", "A/A: base against itself", any(c.null_ci for c in drawn)),
            ("moved", "base with its code moved", any(c.layout_ci for c in drawn)),
        )
        plot = Forest(
            variant,
            draw_as("tick_lines", axis),
            draw_as("tick_labels", axis),
            tuple(metrics),
            verdicts=[verdict for verdict in VERDICTS if any(c.verdict == verdict for c in drawn)],
            twins=[(name, text) for name, text, shown in twins if shown],
            several=len({group.workload for group, _ in metrics}) > 1,
        )
        plots += [plot] if metrics else []
    return plots


def _rows(comparisons: list[Comparison], varying: tuple[str, ...], axis: "RatioAxis") -> list[Row]:
    digits = decimals(comparisons)
    rows = []
    for c in comparisons:
        values = [(name, parameter(c.point[name])) for name in varying if name in c.point]
        label = " ".join(f"{name} {text}" if text[:1].isdigit() else text for name, text in values)
        picture = draw_as("forest_row", axis, c)
        reason = with_remedy(c.reason)
        rows.append(Row(label or "all", picture, change(c, digits), c.verdict, reason))
    return rows


def forests(material: Material) -> list[Chart]:
    """Return a chart for each variant, or for each metric of a variant if it has many rows."""
    charts = []
    for plot in forest_plots(material):
        every = [row for _, rows in plot.metrics for row in rows]
        for metrics in (
            [plot.metrics] if len(every) <= _MOST_ROWS else [(metric,) for metric in plot.metrics]
        ):
            single = metrics[0][0] if len(metrics) == 1 else None
            verdicts = [row.verdict for _, rows in metrics for row in rows]
            chart = Chart(
                name=slug(
                    "forest", plot.variant, *((single.workload, single.key) if single else ())
                ),
                title=f"{plot.variant} against base{f', {single.name}' if single else ''}",
                about=(
                    f"Forest plot of {len(verdicts)} changes of {plot.variant} against base with "
                    f"their intervals: {verdict_counts(verdicts)}."
                ),
                drawn=replace(plot, metrics=metrics),
            )
            charts.append(chart)
    return charts
