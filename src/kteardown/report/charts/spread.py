"""Every sample of a metric, and percentiles of distributions.

Of samples none is left out: there is a column for each boot, with the kernels side by side. Percentiles are
of all values of all boots together, including the far tail.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median
from typing import TypeVar

from kteardown.model.point import Key, key
from kteardown.model.result import Distribution
from kteardown.model.samples import Samples
from kteardown.report.charts.figure import (
    Axis,
    Chart,
    Gallery,
    Mark,
    Plot,
    PlotSeries,
    colour,
    of_kernel,
    slug,
)
from kteardown.report.formatting import Scale, percent, point_text, scale
from kteardown.report.material import Material
from kteardown.report.metric_names import distinct_names, metric_name

_WIDTH = 0.84
"""The part of the room of a kernel that its boots take."""
_INSIDE = 0.62
"""The part of the room of a boot that its repetitions take."""
_MOST_LISTED = 3
"""The tooltip of a boot has all of its values if they are no more than this."""
_Values = TypeVar("_Values", Samples, Distribution)


def spread_gallery(material: Material) -> Gallery | None:
    """Return a chart of samples for each metric and point; None if there are no samples."""
    found = _by_option(material, material.evidence.samples)
    if not found:
        return None
    most = max(map(len, found.values()))
    first = next(metric for (metric, _), samples in found.items() if len(samples) == most)
    last = [option for option, samples in found.items() if option[0] == first and len(samples) == most][-1]
    charts = {option: _samples(material, mine) for option, mine in found.items()}
    return Gallery("samples", ("metric", "at"), charts, last)


def tail_gallery(material: Material) -> Gallery | None:
    """Return a chart for each histogram and point, with all kernels; None if there are no histograms."""
    asked = [one for one in material.result.distributions if material.result.is_asked_for(one.kernel)]
    found = _by_option(material, asked)
    if not found:
        return None
    last = [option for option in found if option[0] == next(iter(found))[0]][-1]
    charts = {option: _percentiles(material, mine) for option, mine in found.items()}
    return Gallery("tail", ("metric", "at"), charts, last)


def _by_option(material: Material, values: Iterable[_Values]) -> dict[tuple[str, ...], list[_Values]]:
    """Return the values of all kernels by the name of their metric and their point."""
    found: dict[tuple[str, str, Key], list[_Values]] = {}
    for one in values:
        found.setdefault((one.workload, one.metric, key(one.point)), []).append(one)
    names = distinct_names(material.workloads, (figure[:2] for figure in found))
    return {
        (names[workload, metric], point_text(mine[0].point) or "all"): mine
        for (workload, metric, _), mine in found.items()
    }


def _samples(material: Material, samples: Sequence[Samples]) -> Chart:
    first = samples[0]
    name = metric_name(material.workloads, first.workload, first.metric)
    kernels = list(material.result.kernels)
    unit = scale(first.unit, material.result.clock, [max(max(v) for v in s.boots.values()) for s in samples])
    series = [one for at, s in enumerate(samples) for one in _kernel(s, at, kernels, unit)]
    at = f" at {point_text(first.point)}" if first.point else ""
    columns = [f"{s.kernel}\n{len(s.boots)} boot{'s' if len(s.boots) != 1 else ''}" for s in samples]
    return Chart(
        name=slug("samples", first.workload, first.metric, point_text(first.point)),
        title=f"Every sample of {name}{at}",
        about=f"Every sample of {name}{at} in {unit.unit}; figures in the table below.",
        drawn=Plot(
            Axis(names=tuple(columns)),
            Axis(f"{name}, {unit.unit}; {first.better} is better"),
            tuple(series),
        ),
    )


def _kernel(s: Samples, at: int, kernels: Sequence[str], unit: Scale) -> list[PlotSeries]:
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
    plain = PlotSeries(s.kernel, shade, tuple(dots), "dot", size=size, variant=s.kernel, in_legend=False)
    return [plain, replace(plain, marks=tuple(medians), symbol="median", size=room * 0.8)]


def _boot(block: int, values: Sequence[float], unit: Scale) -> str:
    if len(values) <= _MOST_LISTED:
        return f"block {block}: {', '.join(map(unit.text, values))}"
    low, middle, high = (unit.text(value) for value in (min(values), median(values), max(values)))
    return f"block {block}: {len(values)} from {low} to {high}, median {middle}"


def _percentiles(material: Material, mine: Sequence[Distribution]) -> Chart:
    first = mine[0]
    name = metric_name(material.workloads, first.workload, first.metric)
    kernels = list(material.result.kernels)
    values = [value for one in mine for value in one.percentiles.values()]
    percentiles = list(dict.fromkeys(percentile for one in mine for percentile in one.percentiles))
    unit = scale(first.unit, material.result.clock, values)
    at = f" at {point_text(first.point)}" if first.point else ""
    counts = ", ".join(f"{one.n:,} values of {one.kernel}" for one in mine)
    error = percent(1 + max(one.error for one in mine)).lstrip("+")
    return Chart(
        name=slug("tail", first.workload, first.metric, point_text(first.point)),
        title=f"{name} of all boots together{at}",
        about=f"Percentiles of {name}{at} in {unit.unit}: "
        + "; ".join(
            f"{one.kernel} " + ", ".join(f"p{name} {unit.text(v)}" for name, v in one.percentiles.items())
            for one in mine
        )
        + ".",
        drawn=Plot(
            Axis("percentile", names=tuple(f"p{percentile}" for percentile in percentiles)),
            Axis(f"{name}, {unit.unit}", log=min(values) > 0),
            tuple(of_kernel(one.kernel, kernels, _marks(one, percentiles, unit)) for one in mine),
        ),
        notes=(f"{counts}, of all boots together, without intervals; bucket error at most {error}",),
    )


def _marks(one: Distribution, percentiles: Sequence[str], unit: Scale) -> list[Mark]:
    return [
        Mark(
            percentiles.index(name),
            value / unit.divisor,
            f"{one.kernel} p{name}: {unit.text(value)} {unit.unit}",
        )
        for name, value in one.percentiles.items()
    ]
