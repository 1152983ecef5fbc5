"""Growth charts: the levels of each kernel with their intervals, and the growth law extrapolated."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kteardown.model.record import ParamValue
from kteardown.model.result import Comparison, Law
from kteardown.report.charts.figure import (
    DOTTED,
    Axis,
    Chart,
    Gallery,
    Mark,
    Plot,
    PlotSeries,
    of_kernel,
    slug,
)
from kteardown.report.comparison_groups import Group, PointKey, headlines, point_key
from kteardown.report.formatting import Scale, parameter, point_text, scale
from kteardown.report.material import Material

_PREDICTED = "star-diamond-open"


def growth_galleries(material: Material) -> list[Gallery]:
    """Return a gallery for each headline metric over the parameter of its growth law.

    There are at least two values of it. The choices are the values of the other parameters, and logarithmic
    axes, which distinguish N from N squared.
    """
    galleries = []
    for group in headlines(material.result, material.workloads):
        param = material.workloads[group.workload].law
        by_rest: dict[PointKey, list[Comparison]] = {}
        for c in group.comparisons:
            if isinstance(c.point.get(param), int):
                rest = {name: value for name, value in c.point.items() if name != param}
                by_rest.setdefault(point_key(rest), []).append(c)
        charts: dict[tuple[str, ...], Chart] = {}
        for fixed, mine in by_rest.items():
            if len({c.point[param] for c in mine}) > 1:
                label = point_text(dict(fixed)) or "all"
                charts |= {(label, axes): one for axes, one in _charts(material, group, param, fixed, mine)}
        if charts:
            first = (list(charts)[-1][0], "linear")
            name = slug("growth", group.workload, group.key)
            galleries.append(Gallery(name, ("at", "axes"), charts, first, group.metric))
    return galleries


def _charts(
    material: Material, group: Group, param: str, fixed: PointKey, mine: Sequence[Comparison]
) -> Iterator[tuple[str, Chart]]:
    """Yield the chart with linear axes, and the one with logarithmic axes if a number is positive."""
    result, rest = material.result, dict(fixed)
    unit = scale(mine[0].unit, result.clock, [side.compared for c in mine for side in (c.base, c.changed)])
    series, described = [], []
    for kernel in ["base", *dict.fromkeys(c.variant for c in mine)]:
        marks = _measured(material, group, param, kernel, mine, unit)
        series.append(of_kernel(kernel, list(result.kernels), marks))
        law = _law(material, group, param, kernel, rest)
        if law is not None and group.statistic == "median":
            series += _extrapolation(law, series[-1], unit)
        ends = [f"{unit.text(m.y * unit.divisor)} at {parameter(int(m.x))}" for m in (marks[0], marks[-1])]
        described.append(f"{kernel} from {ends[0]} to {ends[1]}")
    at = point_text(rest)
    y = Axis(f"{group.name}, {unit.unit}; {group.better} is better", zero=True)
    plot = Plot(Axis(param), y, tuple(series))
    chart = Chart(
        name=slug("growth", group.workload, group.key, at),
        title=f"{group.name} over {param}{f' at {at}' if at else ''}",
        about=f"Line chart of {group.name} in {unit.unit} over {param}: {'; '.join(described)}.",
        drawn=plot,
    )
    yield "linear", chart
    if (logarithmic := plot.logarithmic()) is not None:
        yield "logarithmic", replace(chart, name=f"{chart.name}-logarithmic", drawn=logarithmic)


def _measured(
    material: Material, group: Group, param: str, kernel: str, mine: Sequence[Comparison], unit: Scale
) -> list[Mark]:
    """Return the compared levels by value of the parameter, with intervals if the samples are known."""
    found: dict[int, Mark] = {}
    for c in mine:
        at = c.point[param]
        if kernel in ("base", c.variant) and isinstance(at, int):
            value = (c.base if kernel == "base" else c.changed).compared
            samples = material.evidence.of(kernel, group.workload, group.metric, c.point)
            low, high = (samples.intervals.get(group.statistic) if samples else None) or (value, value)
            level = (value, min(low, value), max(high, value))
            found[at] = _mark(f"{kernel} at {parameter(at)}", at, level, unit, "[{}, {}]")
    return [found[at] for at in sorted(found)]


def _mark(what: str, at: float, level: tuple[float, float, float], unit: Scale, form: str) -> Mark:
    """Return the mark of a level with the two ends of its interval; ``form``: how its text has the ends."""
    value, low, high = (one / unit.divisor for one in level)
    text, *ends = map(unit.text, level)
    return Mark(at, value, f"{what}: {text} {unit.unit} {form.format(*ends)}", low, high)


def _law(
    material: Material, group: Group, param: str, kernel: str, rest: Mapping[str, ParamValue]
) -> Law | None:
    wanted = (group.workload, group.metric, kernel, param, rest)
    laws = material.result.laws
    return next(
        (one for one in laws if (one.workload, one.metric, one.kernel, one.param, one.point) == wanted), None
    )


def _extrapolation(law: Law, measured: PlotSeries, unit: Scale) -> list[PlotSeries]:
    """Return the law extrapolated beyond the measured range, if it has predictions."""
    marks = []
    for p in law.predictions:
        if p.value is not None and p.low is not None and p.high is not None:
            what = f"{law.kernel} at {parameter(int(p.at))}, extrapolated"
            marks.append(_mark(what, p.at, (p.value, p.low, p.high), unit, "({} to {})"))
    if not marks or not measured.marks:
        return []
    ends = tuple(Mark(mark.x, mark.y) for mark in (measured.marks[-1], marks[0]))
    plain = replace(measured, in_legend=False, dash=DOTTED, width=1)
    line = replace(plain, name=f"{law.kernel}, to its law", marks=ends, symbol="")
    name = f"{law.kernel}, extrapolated by its law"
    return [line, replace(plain, name=name, marks=tuple(marks), symbol=_PREDICTED)]
