"""Charts of published figures: their levels in their own unit, and their changes next to ours on one axis."""

from __future__ import annotations

from collections.abc import Sequence

from kteardown.inputs.published import Figure as PublishedFigure
from kteardown.inputs.published import Posted, PostedRow, Posting
from kteardown.model.record import ParamValue
from kteardown.model.result import Comparison
from kteardown.report.charts.figure import Chart, PlotlyFigure, Trace, axis, colour, dash, layout, mark, slug
from kteardown.report.comparison_groups import PointKey
from kteardown.report.formatting import change, parameter, percent, point_text
from kteardown.report.material import Material
from kteardown.report.metric_names import metric_label
from kteardown.report.sections.published_table import comparisons_for, figure_name

_OTHER_MACHINE = "measured on another machine: compare the shapes and the changes, not the levels"


def posted_charts(material: Material) -> list[tuple[Chart, Chart]]:
    """Return two charts for each published figure of a metric that we have: levels and changes."""
    reference = material.reference
    if reference is None:
        return []
    return [
        (_levels(reference, figure, rows, name), _changes(material, figure, rows, ours, name))
        for figure in reference.figures
        if (ours := comparisons_for(material.result, figure)) and (rows := reference.rows(figure))
        for name in [figure_name(figure, material.workloads, ours)]
    ]


def _slug(figure: PublishedFigure, what: str) -> str:
    key = metric_label(figure.metric, figure.statistic)
    return slug("posted", f"{key}, {figure.label}" if figure.label else key, figure.variant, what)


def _levels(reference: Posting, figure: PublishedFigure, rows: Sequence[PostedRow], name: str) -> Chart:
    sides = (
        ("posted base", "$base", [row.base for row in rows]),
        ("posted changed", "$posted", [row.changed for row in rows]),
    )
    traces = [_posted_level(side, shade, rows, values) for side, shade, values in sides]
    source = reference.source
    machine = f"; {source.machine}" if source.machine else ""
    return Chart(
        name=_slug(figure, "levels"),
        title=f"As posted: {name}",
        about=f"Published {name} in {figure.unit} over {figure.param}, base and changed.",
        figure=_figure(traces, figure, rows, f"posted, {figure.unit}", rangemode="tozero"),
        height=340,
        notes=(f'"{source.title}", {source.posted}{machine}; {_OTHER_MACHINE}',),
    )


def _posted_level(name: str, shade: str, rows: Sequence[PostedRow], values: Sequence[Posted]) -> Trace:
    hollow = name == "posted changed"
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": _x(rows),
        "y": [value.value for value in values],
        "error_y": {
            "type": "data",
            "array": [value.sd or 0 for value in values],
            "visible": any(value.sd for value in values),
            "color": shade,
        },
        "line": {"color": shade, "width": 1.6, "dash": "solid" if hollow else "dot"},
        "marker": {"symbol": "diamond-open" if hollow else "circle-open", "size": 8, "color": shade},
        "hovertemplate": f"{name} at %{{x}}: %{{y}}<extra></extra>",
    }


def _changes(
    material: Material,
    figure: PublishedFigure,
    rows: Sequence[PostedRow],
    ours: dict[PointKey, list[Comparison]],
    name: str,
) -> Chart:
    with_change = [row for row in rows if row.change is not None]
    traces: list[Trace] = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": "posted",
            "x": _x(with_change),
            "y": [100 * (row.change or 0.0) for row in with_change],
            "line": {"color": "$posted", "width": 1.2, "dash": "dot"},
            "marker": {"symbol": "diamond-open", "size": 9, "color": "$posted"},
            "text": [f"posted at {parameter(r.at)}: {percent(1 + (r.change or 0.0))}" for r in with_change],
            "hovertemplate": "%{text}<extra></extra>",
        }
    ]
    kernels = list(material.result.kernels)
    for rest, mine in ours.items():
        for variant in dict.fromkeys(c.variant for c in mine if material.result.is_asked_for(c.variant)):
            with_ratio = [c for c in mine if c.variant == variant and c.ratio is not None]
            traces.append(_ours(variant, kernels, point_text(dict(rest)), with_ratio, figure.param))
    return Chart(
        name=_slug(figure, "changes"),
        title=f"Change against base, posted and here: {name}",
        about=f"Changes of {name} in percent over {figure.param}: published and ours.",
        figure=_figure(traces, figure, rows, "change against base, %"),
        height=340,
    )


def _ours(variant: str, kernels: Sequence[str], rest: str, mine: Sequence[Comparison], param: str) -> Trace:
    shade = colour(variant, kernels)
    ratios = [c.ratio or 1.0 for c in mine]
    cis = [c.ci or (ratio, ratio) for c, ratio in zip(mine, ratios, strict=True)]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": f"here: {variant} {rest}".rstrip(),
        "x": [c.point[param] for c in mine],
        "y": [100 * (ratio - 1) for ratio in ratios],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [100 * (ci[1] - r) for ci, r in zip(cis, ratios, strict=True)],
            "arrayminus": [100 * (r - ci[0]) for ci, r in zip(cis, ratios, strict=True)],
            "color": shade,
            "thickness": 1.4,
            "width": 4,
        },
        "line": {"color": shade, "width": 1.6, "dash": dash(variant, kernels)},
        "marker": {"symbol": mark(variant, kernels), "size": 8, "color": shade},
        "text": [f"{variant} at {parameter(c.point[param])}: {change(c)}, {c.verdict}" for c in mine],
        "hovertemplate": "%{text}<extra></extra>",
        "meta": {"variant": variant},
    }


def _figure(
    traces: Sequence[Trace], figure: PublishedFigure, rows: Sequence[PostedRow], y: str, **more: str
) -> PlotlyFigure:
    numbers = all(isinstance(row.at, int) for row in rows)
    return {
        "data": list(traces),
        "layout": layout(
            xaxis=axis(figure.param, **({} if numbers else {"type": "category"})),
            yaxis=axis(y, **more),
            height=340,
        ),
    }


def _x(rows: Sequence[PostedRow]) -> list[ParamValue]:
    return [row.at for row in rows]
