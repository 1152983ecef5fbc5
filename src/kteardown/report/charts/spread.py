"""Every sample of a metric, none left out: a column for each boot, with the kernels side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from kteardown.model.point import Key, key
from kteardown.model.samples import Samples
from kteardown.report.charts.figure import Axis, Chart, Gallery, Mark, Plot, Series, colour, slug
from kteardown.report.formatting import Scale, point_text, scale
from kteardown.report.material import Material
from kteardown.report.metric_names import distinct_names, metric_name

_WIDTH = 0.84
"""The part of the room of a kernel that its boots take."""
_INSIDE = 0.62
"""The part of the room of a boot that its repetitions take."""
_MOST_LISTED = 3
"""The tooltip of a boot has all of its values if they are no more than this."""


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
    most = max(map(len, of.values()))
    first = [option for option, samples in of.items() if len(samples) == most]
    largest = [option for option in first if option[0] == first[0][0]][-1]
    return Gallery("samples", ("metric", "at"), charts, largest)


def _chart(material: Material, samples: Sequence[Samples]) -> Chart:
    first = samples[0]
    name = metric_name(material.workloads, first.workload, first.metric)
    kernels = list(material.result.kernels)
    unit = scale(first.unit, material.result.clock, [max(max(v) for v in s.boots.values()) for s in samples])
    series = [one for at, s in enumerate(samples) for one in _kernel(s, at, kernels, unit)]
    at = f" at {point_text(first.point)}" if first.point else ""
    return Chart(
        name=slug("samples", first.workload, first.metric, point_text(first.point)),
        title=f"Every sample of {name}{at}",
        about=f"Every sample of {name}{at} in {unit.unit}; figures in the table below.",
        drawn=Plot(
            Axis(names=tuple(_column(s) for s in samples)),
            Axis(f"{name}, {unit.unit}; {first.better} is better"),
            tuple(series),
        ),
    )


def _column(s: Samples) -> str:
    count = len(s.boots)
    return f"{s.kernel}\n{count} boot{'s' if count != 1 else ''}"


def _kernel(s: Samples, at: int, kernels: Sequence[str], unit: Scale) -> list[Series]:
    """Return the samples of a kernel, and the median of each boot."""
    count, by = len(s.boots), unit.divisor
    room = min(_WIDTH / count, 0.2)
    dots, medians = [], []
    for position, (block, values) in enumerate(s.boots.items()):
        middle = at + (position - (count - 1) / 2) * room
        step = room * _INSIDE / max(1, len(values) - 1)
        start = middle - step * (len(values) - 1) / 2
        dots += [Mark(start + step * n, value / by) for n, value in enumerate(values)]
        # Of other metrics there are very many charts; the table has their figures.
        text = _boot(block, values, unit) if s.headline else ""
        medians.append(Mark(middle, median(values) / by, text))
    size = max(4.0, min(8.0, 300 / max(1, s.count) ** 0.5))
    shade = colour(s.kernel, kernels)
    plain = Series(s.kernel, shade, tuple(dots), "dot", size=size, variant=s.kernel, in_legend=False)
    return [plain, replace(plain, marks=tuple(medians), symbol="median", size=room * 0.8)]


def _boot(block: int, values: Sequence[float], unit: Scale) -> str:
    if len(values) <= _MOST_LISTED:
        return f"block {block}: {', '.join(map(unit.text, values))}"
    low, middle, high = (unit.text(value) for value in (min(values), median(values), max(values)))
    return f"block {block}: {len(values)} from {low} to {high}, median {middle}"
