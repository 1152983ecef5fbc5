"""The forest plot: every ratio with its interval, for all points and metrics, on one axis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from kteardown.model.record import ParamValue
from kteardown.model.result import Comparison, Result
from kteardown.model.workload import Workload
from kteardown.report.charts.figure import (
    MARKS,
    Chart,
    PlotlyFigure,
    Trace,
    axis,
    layout,
    ratio_ticks,
    shared_span,
    slug,
)
from kteardown.report.comparison_groups import Group, groups, point_cells, variants
from kteardown.report.formatting import VERDICTS, change, decimals, parameter
from kteardown.report.material import Material

_ROWS = 48
"""With more rows than this, each metric has a chart of its own."""
_ROW_PX, _EDGE_PX = 21, 118
ForestRow = tuple[str, str, Comparison]
"""The key of a row, its label, and its comparison."""


def forests(material: Material) -> list[Chart]:
    """Return a chart for each variant, or for each metric of a variant if it has many rows."""
    found = []
    span = shared_span(material.result.asked_for)
    for variant in variants(material.result):
        of_variant = rows_of(material.result, material.workloads, variant)
        if sum(len(rows) for _, rows in of_variant) <= _ROWS:
            found += [_chart(variant, of_variant, span)] if of_variant else []
        else:
            found += [_chart(variant, [one], span) for one in of_variant]
    return found


def rows_of(
    result: Result, workloads: Mapping[str, Workload], variant: str
) -> list[tuple[Group, list[ForestRow]]]:
    """Return the comparisons of ``variant`` that have a ratio, by metric."""
    varying = _varying(result)
    return [
        (group, rows)
        for group in groups(result, workloads)
        if (rows := _rows(group, variant, varying[group.workload]))
    ]


def _varying(result: Result) -> dict[str, tuple[str, ...]]:
    """Return, by workload, the parameters whose values differ between points."""
    by_workload: dict[str, list[Mapping[str, ParamValue]]] = {}
    for c in result.asked_for:
        by_workload.setdefault(c.workload, []).append(c.point)
    return {workload: point_cells(points)[0] for workload, points in by_workload.items()}


def _rows(group: Group, variant: str, varying: Sequence[str]) -> list[ForestRow]:
    rows = [c for c in group.of(variant) if c.ratio is not None and c.ratio > 0]
    return [
        (
            f"{group.workload}|{group.key}|{number}",
            " ".join(_label(name, parameter(c.point[name])) for name in varying if name in c.point),
            c,
        )
        for number, c in enumerate(rows)
    ]


def _label(name: str, text: str) -> str:
    return f"{name} {text}" if text[:1].isdigit() else text


def _chart(
    variant: str, of_variant: Sequence[tuple[Group, list[ForestRow]]], span: tuple[float, float]
) -> Chart:
    rows = [row for _, rows in of_variant for row in rows]
    low, high = span
    several = len({group.workload for group, _ in of_variant}) > 1
    traces = [_headings(of_variant, low, several=several), *_nulls(rows, low, high)]
    traces += [trace for group, own in of_variant for trace in _verdicts(group, own, variant)]
    traces += _cuts(rows, low, high)
    keys: list[str] = []
    for group, own in of_variant:
        keys += [_heading_key(group), *(key for key, _, _ in own)]
    single = of_variant[0][0] if len(of_variant) == 1 else None
    where = f", {single.name}" if single else ""
    return Chart(
        name=slug("forest", variant, single.workload if single else "", single.key if single else ""),
        title=f"{variant} against base{where}",
        about=_about(variant, [c for _, _, c in rows]),
        figure={"data": _legend_once(traces), "layout": _layout(keys, rows, (low, high))},
        height=_EDGE_PX + _ROW_PX * len(keys),
    )


def _layout(keys: Sequence[str], rows: Sequence[ForestRow], span: tuple[float, float]) -> PlotlyFigure:
    ticks, texts = ratio_ticks(*span)
    labels = {key: label for key, label, _ in rows}
    return layout(
        height=_EDGE_PX + _ROW_PX * len(keys),
        margin={"l": 40, "r": 16, "t": 40, "b": 46},
        xaxis=axis(
            "change against base, logarithmic",
            type="log",
            range=[math.log10(end) for end in span],
            tickvals=ticks,
            ticktext=texts,
        ),
        yaxis=axis(
            type="category",
            categoryorder="array",
            categoryarray=list(keys),
            range=[len(keys) - 0.4, -0.6],
            tickvals=[key for key in keys if key in labels],
            ticktext=[labels[key] for key in keys if key in labels],
            showgrid=False,
            ticks="",
        ),
        shapes=[
            {
                "type": "line",
                "x0": 1,
                "x1": 1,
                "y0": 0,
                "y1": 1,
                "yref": "paper",
                "layer": "below",
                "line": {"color": "$muted", "width": 1.2},
            }
        ],
    )


def _headings(of_variant: Sequence[tuple[Group, list[ForestRow]]], low: float, *, several: bool) -> Trace:
    """Return a trace with the names of the metrics, each in a row above its points."""
    return {
        "type": "scatter",
        "mode": "text",
        "x": [low] * len(of_variant),
        "y": [_heading_key(group) for group, _ in of_variant],
        "text": [
            f"<b>{group.name}</b>{f' ({group.workload})' if several else ''}, {group.better} is better"
            for group, _ in of_variant
        ],
        "textposition": "middle right",
        "textfont": {"color": "$ink", "size": 12.5},
        "hoverinfo": "skip",
        "showlegend": False,
        "cliponaxis": False,
        "meta": {"headings": [group.metric for group, _ in of_variant]},
    }


def _nulls(rows: Sequence[ForestRow], low: float, high: float) -> list[Trace]:
    """Return the intervals of base compared with its twins: a difference within them is not significant."""
    found = []
    for name, width, ends in (
        ("A/A: base against itself", 9, [c.null_ci for _, _, c in rows]),
        ("base with its code moved", 4, [c.layout_ci for _, _, c in rows]),
    ):
        shown = [(row, ci) for row, ci in zip(rows, ends, strict=True) if ci]
        if not shown:
            continue
        for metric in dict.fromkeys(c.metric for (_, _, c), _ in shown):
            x: list[float | None] = []
            y: list[str | None] = []
            for (key, _, c), ci in shown:
                if c.metric == metric:
                    x += [max(ci[0], low), min(ci[1], high), None]
                    y += [key, key, None]
            found.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": name,
                    "legendgroup": name,
                    "x": x,
                    "y": y,
                    "line": {"color": "$null", "width": width},
                    "hoverinfo": "skip",
                    "meta": {"metric": metric},
                }
            )
    return found


def _verdicts(group: Group, rows: Sequence[ForestRow], variant: str) -> list[Trace]:
    digits = decimals(c for _, _, c in rows)
    found = []
    for verdict in VERDICTS:
        mine = [(key, label, c) for key, label, c in rows if c.verdict == verdict]
        if mine:
            ratios = [c.ratio or 1.0 for _, _, c in mine]
            cis = [c.ci or (ratio, ratio) for (_, _, c), ratio in zip(mine, ratios, strict=True)]
            found.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "cliponaxis": False,
                    "name": verdict,
                    "legendgroup": verdict,
                    "x": ratios,
                    "y": [key for key, _, _ in mine],
                    "error_x": {
                        "type": "data",
                        "symmetric": False,
                        "array": [ci[1] - r for ci, r in zip(cis, ratios, strict=True)],
                        "arrayminus": [r - ci[0] for ci, r in zip(cis, ratios, strict=True)],
                        "thickness": 2,
                        "width": 0,
                        "color": f"${verdict}",
                    },
                    "marker": {
                        "symbol": MARKS[verdict],
                        "size": 9,
                        "color": f"${verdict}",
                        "line": {"width": 1.6, "color": f"${verdict}"},
                    },
                    "text": [
                        f"{group.name} {label}<br>{change(c, digits)}: {verdict}"
                        + (f"<br>{c.reason}" if c.reason else "")
                        for _, label, c in mine
                    ],
                    "hovertemplate": "%{text}<extra></extra>",
                    "meta": {"metric": group.metric, "verdict": verdict, "variant": variant},
                }
            )
    return found


def _cuts(rows: Sequence[ForestRow], low: float, high: float) -> list[Trace]:
    """Return arrows where an interval or a ratio goes on beyond the axis."""
    cut = [
        (end, key, side, c)
        for key, _, c in rows
        for end, side, beyond in (
            (low, "left", min(c.ratio or 1.0, *(c.ci or (1.0,))) < low),
            (high, "right", max(c.ratio or 1.0, *(c.ci or (1.0,))) > high),
        )
        if beyond
    ]
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "cliponaxis": False,
            "showlegend": False,
            "x": [end],
            "y": [key],
            "marker": {"symbol": f"triangle-{side}", "size": 10, "color": f"${c.verdict}"},
            "hoverinfo": "skip",
            "meta": {"metric": c.metric, "verdict": c.verdict, "variant": c.variant},
        }
        for end, key, side, c in cut
    ]


def _legend_once(traces: Sequence[Trace]) -> list[Trace]:
    shown_names: set[str] = set()
    for trace in traces:
        name = trace.get("legendgroup")
        if name:
            trace["showlegend"] = name not in shown_names
            shown_names.add(name)
    return list(traces)


def _about(variant: str, rows: Sequence[Comparison]) -> str:
    counts = [(sum(c.verdict == verdict for c in rows), verdict) for verdict in VERDICTS]
    counted = ", ".join(f"{count} {verdict}" for count, verdict in counts if count)
    return f"Forest plot of {len(rows)} changes of {variant} against base with their intervals: {counted}."


def _heading_key(group: Group) -> str:
    return f"{group.workload}|{group.key}"
