"""Every sample of a metric, none left out: a column for each boot, with the kernels side by side."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from kteardown.model.point import Key, key
from kteardown.model.samples import Samples
from kteardown.report.charts.figure import Chart, Gallery, Trace, axis, colour, layout, slug
from kteardown.report.formatting import Scale, number, point_text, scale
from kteardown.report.material import Material
from kteardown.report.metric_names import distinct_names, metric_name

_GL_FROM = 3000
"""From this many samples on, the chart is drawn by WebGL if the browser has it."""
_WIDTH = 0.84
"""The part of the room of a kernel that its boots take."""
_INSIDE = 0.62
"""The part of the room of a boot that its repetitions take."""


def spread_gallery(material: Material) -> Gallery | None:
    """Return all charts, to be selected by metric and point; None if there are no samples."""
    by_figure: dict[tuple[str, str, Key], list[Samples]] = {}
    for s in material.evidence.samples:
        by_figure.setdefault((s.workload, s.metric, key(s.point)), []).append(s)
    if not by_figure:
        return None
    names = distinct_names(material.workloads, (figure[:2] for figure in by_figure))
    of = {
        (names[workload, metric], point_text(samples[0].point) or "all"): samples
        for (workload, metric, _), samples in by_figure.items()
    }
    charts: dict[tuple[str, ...], Chart] = {
        option: _chart(material, samples) for option, samples in of.items()
    }
    metrics = tuple(dict.fromkeys(metric for metric, _ in of))
    points = tuple(dict.fromkeys(point for _, point in of))
    most = max(map(len, of.values()))
    first = [option for option, samples in of.items() if len(samples) == most]
    largest = [option for option in first if option[0] == first[0][0]][-1]
    return Gallery("samples", (("metric", metrics), ("at", points)), charts, largest)


def _chart(material: Material, samples: Sequence[Samples]) -> Chart:
    first = samples[0]
    name = metric_name(material.workloads, first.workload, first.metric)
    kernels = list(material.result.kernels)
    unit = scale(first.unit, material.result.clock, [max(max(v) for v in s.boots.values()) for s in samples])
    total = sum(s.count for s in samples)
    kind = "scattergl" if total > _GL_FROM else "scatter"
    traces = [
        trace for position, s in enumerate(samples) for trace in _kernel(s, position, kernels, unit, kind)
    ]
    at = f" at {point_text(first.point)}" if first.point else ""
    return Chart(
        name=slug("samples", first.workload, first.metric, point_text(first.point)),
        title=f"Every sample of {name}{at}",
        about=_about(samples, name, unit, at),
        figure={
            "data": traces,
            "layout": layout(
                xaxis=axis(
                    tickvals=list(range(len(samples))),
                    ticktext=[_ticks(s) for s in samples],
                    range=[-0.55, len(samples) - 0.45],
                    showgrid=False,
                    ticks="",
                    fixedrange=True,
                ),
                yaxis=axis(f"{name}, {unit.unit}; {first.better} is better"),
                height=420,
                showlegend=False,
                margin={"l": 64, "r": 18, "t": 14, "b": 52},
            ),
        },
        height=420,
        notes=(f"all {total:,} samples are drawn; each column is a boot, and the bar in it is its median",),
    )


def _ticks(s: Samples) -> str:
    count = len(s.boots)
    return f"{s.kernel}<br>{count} boot{'s' if count != 1 else ''}"


def _kernel(s: Samples, at: int, kernels: Sequence[str], unit: Scale, kind: str) -> list[Trace]:
    shade = colour(s.kernel, kernels)
    count, by = len(s.boots), unit.divisor
    room = min(_WIDTH / count, 0.2)
    x: list[float] = []
    y: list[float] = []
    text: list[str] = []
    middles: list[float] = []
    medians: list[float] = []
    for position, (block, values) in enumerate(s.boots.items()):
        middle = at + (position - (count - 1) / 2) * room
        step = room * _INSIDE / max(1, len(values) - 1)
        start = middle - step * (len(values) - 1) / 2
        x += [round(start + step * n, 4) for n in range(len(values))]
        y += [value / by for value in values]
        text += [f"block {block}, sample {n + 1}" for n in range(len(values))]
        middles.append(round(middle, 4))
        medians.append(median(values) / by)
    thin = max(4.0, min(8.0, 300 / max(1, len(y)) ** 0.5))
    odd = [n % 2 for n, values in enumerate(s.boots.values()) for _ in values]
    points: Trace = {
        "type": kind,
        "mode": "markers",
        "name": s.kernel,
        "x": x,
        "y": y,
        "text": text,
        "marker": {
            "color": shade,
            "size": round(thin, 1),
            "symbol": ["circle-open" if hollow else "circle" for hollow in odd],
            "opacity": 0.75,
            "line": {"width": 1, "color": shade},
        },
        "hovertemplate": f"{s.kernel}, %{{text}}<br>%{{y:,.6~g}} {unit.unit}<extra></extra>",
        "meta": {"variant": s.kernel},
    }
    bars: Trace = {
        "type": "scatter",
        "mode": "markers",
        "name": s.kernel,
        "x": middles,
        "y": medians,
        "text": [f"block {block}: median of {len(values)}" for block, values in s.boots.items()],
        "marker": {
            "symbol": "line-ew-open",
            "size": round(max(6.0, min(22.0, 260 * room / 1.6)), 1),
            "color": "$ink",
            "line": {"width": 2, "color": "$ink"},
        },
        "hovertemplate": f"{s.kernel}, %{{text}}<br>%{{y:,.6~g}} {unit.unit}<extra></extra>",
        "meta": {"variant": s.kernel},
    }
    return [points, bars]


def _about(samples: Sequence[Samples], name: str, unit: Scale, at: str) -> str:
    parts = []
    for s in samples:
        values = [value for boot in s.boots.values() for value in boot]
        low, high = number(min(values) / unit.divisor), number(max(values) / unit.divisor)
        parts.append(f"{s.kernel} {len(values)} samples of {len(s.boots)} boots from {low} to {high}")
    return f"Every sample of {name}{at} in {unit.unit}: {'; '.join(parts)}."
