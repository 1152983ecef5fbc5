"""Every sample of a metric, and percentiles of distributions: charts and tables.

Of samples none is left out: there is a column for each boot, with the kernels side by side.
Percentiles are of all values of all boots together, including the far tail.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean, median, pstdev
from typing import TypeVar

from kteardown.judge.metrics import metric_name
from kteardown.model.laws import Distribution
from kteardown.model.point import Key, key
from kteardown.model.samples import Samples
from kteardown.report.chart_model import (
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
from kteardown.report.formatting import Scale, counted, parameter, percent, point_text, scale
from kteardown.report.material import Material
from kteardown.report.metrics import distinct_names, point_cells
from kteardown.report.table import Block, Cell, LongRow, LongRows, LongTable, Table, Text

_WIDTH = 0.84
"""The part of the room of a kernel that its boots take."""
_INSIDE = 0.62
"""The part of the room of a boot that its repetitions take."""
_MOST_LISTED = 3
"""The tooltip of a boot has all of its values if they are no more than this."""
_Values = TypeVar("_Values", Samples, Distribution)


def spread_gallery(material: Material) -> Gallery | None:
    """Return a chart of samples for each metric and point; None if there are no samples."""
    by_option = _by_option(material, material.evidence.samples)
    if not by_option:
        return None
    most = max(map(len, by_option.values()))
    first = next(metric for (metric, _), samples in by_option.items() if len(samples) == most)
    last = [
        option
        for option, samples in by_option.items()
        if option[0] == first and len(samples) == most
    ][-1]
    charts = {option: _samples(material, mine) for option, mine in by_option.items()}
    return Gallery("samples", ("metric", "at"), charts, last)


def tail_gallery(material: Material) -> Gallery | None:
    """Return a chart for each histogram and point, with all kernels; None if there are no
    histograms."""
    requested = [
        distribution
        for distribution in material.result.distributions
        if material.result.is_asked_for(distribution.kernel)
    ]
    by_option = _by_option(material, requested)
    if not by_option:
        return None
    last = [option for option in by_option if option[0] == next(iter(by_option))[0]][-1]
    charts = {option: _percentiles(material, mine) for option, mine in by_option.items()}
    return Gallery("tail", ("metric", "at"), charts, last)


def _by_option(
    material: Material, values: Iterable[_Values]
) -> dict[tuple[str, ...], list[_Values]]:
    """Return the values of all kernels by the name of their metric and their point."""
    groups: dict[tuple[str, str, Key], list[_Values]] = {}
    for value in values:
        groups.setdefault((value.workload, value.metric, key(value.point)), []).append(value)
    names = distinct_names(material.workloads, (figure[:2] for figure in groups))
    return {
        (names[workload, metric], point_text(mine[0].point) or "all"): mine
        for (workload, metric, _), mine in groups.items()
    }


def _samples(material: Material, samples: Sequence[Samples]) -> Chart:
    first = samples[0]
    name = metric_name(material.workloads, first.workload, first.metric)
    kernels = list(material.result.kernels)
    unit = scale(
        first.unit, material.result.clock, [max(max(v) for v in s.boots.values()) for s in samples]
    )
    series = [line for at, s in enumerate(samples) for line in _kernel(s, at, kernels, unit)]
    at = f" at {point_text(first.point)}" if first.point else ""
    columns = [f"{s.kernel}\n{counted(len(s.boots), 'boot')}" for s in samples]
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
    count = len(s.boots)
    by = unit.divisor
    room = min(_WIDTH / count, 0.2)
    dots = []
    medians = []
    for position, (block, values) in enumerate(s.boots.items()):
        middle = at + (position - (count - 1) / 2) * room
        step = room * _INSIDE / max(1, len(values) - 1)
        start = middle - step * (len(values) - 1) / 2
        dots += [Mark(start + step * n, value / by) for n, value in enumerate(values)]
        text = f"block {block}: {', '.join(map(unit.text, values))}"
        if len(values) > _MOST_LISTED:
            low, half, high = map(unit.text, (min(values), median(values), max(values)))
            text = f"block {block}: {len(values)} from {low} to {high}, median {half}"
        # Of other metrics there are very many charts; the table has their figures.
        medians.append(Mark(middle, median(values) / by, text if s.headline else ""))
    size = max(4.0, min(8.0, 300 / max(1, s.count) ** 0.5))
    shade = colour(s.kernel, kernels)
    plain = PlotSeries(
        s.kernel, shade, tuple(dots), "dot", size=size, variant=s.kernel, in_legend=False
    )
    return [plain, replace(plain, marks=tuple(medians), symbol="median", size=room * 0.8)]


def samples_table(material: Material) -> LongTable:
    """Return a summary of the samples of each kernel at each point."""
    rows_by_metric: dict[tuple[str, str, str], list[LongRow]] = {}
    for s in material.evidence.samples:
        values = [value for boot in s.boots.values() for value in boot]
        unit = scale(s.unit, material.result.clock, values)
        statistics = (min(values), median(values), fmean(values), max(values), pstdev(values))
        texts = (s.kernel, point_text(s.point), f"{len(s.boots)}", f"{len(values):,}")
        cells = tuple(map(Cell, (*texts, *map(unit.text, statistics))))
        rows_by_metric.setdefault((s.workload, s.metric, unit.unit), []).append(
            LongRow(s.kernel, "", cells)
        )
    bodies = [
        LongRows(metric, f"{metric_name(material.workloads, workload, metric)} ({unit})", rows)
        for (workload, metric, unit), rows in rows_by_metric.items()
    ]
    columns = ("kernel", "point", "boots", "samples", "smallest", "median", "mean", "largest", "sd")
    return LongTable("The samples of each kernel in figures", columns, ("kernel", "point"), bodies)


def _percentiles(material: Material, mine: Sequence[Distribution]) -> Chart:
    first = mine[0]
    series = []
    described = []
    name = metric_name(material.workloads, first.workload, first.metric)
    values = [value for distribution in mine for value in distribution.percentiles.values()]
    columns = list(
        dict.fromkeys(
            percentile for distribution in mine for percentile in distribution.percentiles
        )
    )
    unit = scale(first.unit, material.result.clock, values)
    for distribution in mine:
        texts = {column: unit.text(value) for column, value in distribution.percentiles.items()}
        marks = [
            Mark(
                columns.index(p),
                value / unit.divisor,
                f"{distribution.kernel} p{p}: {texts[p]} {unit.unit}",
            )
            for p, value in distribution.percentiles.items()
        ]
        series.append(of_kernel(distribution.kernel, list(material.result.kernels), marks))
        described.append(
            f"{distribution.kernel} {', '.join(f'p{p} {text}' for p, text in texts.items())}"
        )
    at = f" at {point_text(first.point)}" if first.point else ""
    counts = ", ".join(
        f"{distribution.n:,} values of {distribution.kernel}" for distribution in mine
    )
    return Chart(
        name=slug("tail", first.workload, first.metric, point_text(first.point)),
        title=f"{name} of all boots together{at}",
        about=f"Percentiles of {name}{at} in {unit.unit}: {'; '.join(described)}.",
        drawn=Plot(
            Axis("percentile", names=tuple(f"p{column}" for column in columns)),
            Axis(f"{name}, {unit.unit}", log=min(values) > 0),
            tuple(series),
        ),
        notes=(f"{counts}, {_of_all_boots(mine)}",),
    )


def _of_all_boots(mine: Sequence[Distribution]) -> str:
    error = percent(1 + max(distribution.error for distribution in mine)).lstrip("+")
    return f"of all boots together, without intervals; bucket error at most {error}"


def distribution_tables(material: Material) -> list[Table]:
    """Return a table for each histogram, base first: a row per point, the percentiles of each
    kernel."""
    groups: dict[tuple[str, str], list[Distribution]] = {}
    for distribution in material.result.distributions:
        if material.result.is_asked_for(distribution.kernel):
            groups.setdefault((distribution.workload, distribution.metric), []).append(distribution)
    return [_table(material, mine) for mine in groups.values()]


def _table(material: Material, mine: Sequence[Distribution]) -> Table:
    first = mine[0]
    percents = list(mine[0].percentiles)
    blocks = []
    values = [value for distribution in mine for value in distribution.percentiles.values()]
    unit = scale(first.unit, material.result.clock, values)
    points = list(
        {tuple(distribution.point.items()): distribution.point for distribution in mine}.values()
    )
    for kernel in dict.fromkeys(distribution.kernel for distribution in mine):
        by_point = {
            tuple(distribution.point.items()): distribution
            for distribution in mine
            if distribution.kernel == kernel
        }
        rows: list[Sequence[Text]] = []
        for point in points:
            distribution = by_point.get(tuple(point.items()))
            texts = (
                [unit.text(distribution.percentiles[name]) for name in percents]
                if distribution
                else []
            )
            rows.append(
                (parameter(distribution.n), *texts)
                if distribution
                else (None,) * (len(percents) + 1)
            )
        blocks.append(Block.of((f"{kernel}: n", *(f"p{name}" for name in percents)), rows))
    name = metric_name(material.workloads, first.workload, first.metric)
    title = f"{first.workload}: {name} ({first.metric}) of all boots together, in {unit.unit}"
    return Table(
        title, Block.of(*point_cells(points)), tuple(blocks), (f"all values {_of_all_boots(mine)}",)
    )
