"""Percentiles of distributions: all values of all boots together, including the far tail."""

from __future__ import annotations

from collections.abc import Sequence

from kteardown.model.result import Distribution
from kteardown.report.charts.figure import Chart, Gallery, Trace, axis, colour, dash, layout, mark, slug
from kteardown.report.context import Material
from kteardown.report.formatting import Scale, percent, point_text, scale
from kteardown.report.metric_names import metric_name


def tail_gallery(material: Material) -> Gallery | None:
    """Return a chart for each histogram and point, with all kernels; None if there are no histograms."""
    found: dict[tuple[str, ...], list[Distribution]] = {}
    several = len({one.workload for one in material.result.distributions}) > 1
    for one in material.result.distributions:
        if material.result.is_asked_for(one.kernel):
            name = _name(material, one)
            metric = f"{name} ({one.workload})" if several else name
            found.setdefault((metric, point_text(one.point) or "all"), []).append(one)
    if not found:
        return None
    charts = {key: _chart(material, mine) for key, mine in found.items()}
    choices = tuple(
        (label, tuple(dict.fromkeys(key[n] for key in found))) for n, label in enumerate(("metric", "at"))
    )
    first = next(iter(found))
    last = [key for key in found if key[0] == first[0]][-1]
    return Gallery("tail", choices, charts, last)


def _chart(material: Material, mine: Sequence[Distribution]) -> Chart:
    first = mine[0]
    name = _name(material, first)
    kernels = list(material.result.kernels)
    values = [value for one in mine for value in one.percentiles.values()]
    unit = scale(first.unit, material.result.clock, values)
    at = f" at {point_text(first.point)}" if first.point else ""
    counts = ", ".join(f"{one.n:,} values of {one.kernel}" for one in mine)
    error = percent(1 + max(one.error for one in mine)).lstrip("+")
    return Chart(
        name=slug("tail", first.workload, first.metric, point_text(first.point)),
        title=f"{name} of all boots together{at}",
        about=f"Percentiles of {name}{at} in {unit.unit}: "
        + "; ".join(_values_text(one, unit) for one in mine)
        + ".",
        figure={
            "data": [_line(one, kernels, unit) for one in mine],
            "layout": layout(
                xaxis=axis("percentile", type="category"),
                yaxis=axis(f"{name}, {unit.unit}", type="log" if min(values) > 0 else "linear"),
                height=380,
            ),
        },
        height=380,
        notes=(f"{counts}, of all boots together, without intervals; bucket error at most {error}",),
    )


def _name(material: Material, one: Distribution) -> str:
    return metric_name(material.workloads, one.workload, one.metric)


def _line(one: Distribution, kernels: Sequence[str], unit: Scale) -> Trace:
    shade = colour(one.kernel, kernels)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": one.kernel,
        "x": [f"p{name}" for name in one.percentiles],
        "y": [value / unit.divisor for value in one.percentiles.values()],
        "line": {"color": shade, "width": 2, "dash": dash(one.kernel, kernels)},
        "marker": {"symbol": mark(one.kernel, kernels), "size": 8, "color": shade},
        "text": [f"{one.kernel} p{name}: {unit.text(v)} {unit.unit}" for name, v in one.percentiles.items()],
        "hovertemplate": "%{text}<extra></extra>",
        "meta": {"variant": one.kernel},
    }


def _values_text(one: Distribution, unit: Scale) -> str:
    return f"{one.kernel} " + ", ".join(f"p{name} {unit.text(v)}" for name, v in one.percentiles.items())
