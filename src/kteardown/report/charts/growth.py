"""Growth charts: the levels of each kernel with their intervals, and the growth law extrapolated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kteardown.model.record import ParamValue
from kteardown.model.result import Comparison, Law
from kteardown.report.charts.figure import (
    DOTTED,
    Axis,
    Chart,
    Gallery,
    Mark,
    Plot,
    Series,
    of_kernel,
    slug,
)
from kteardown.report.comparison_groups import Group, PointKey, groups, is_headline, point_key
from kteardown.report.formatting import Scale, parameter, point_text, scale
from kteardown.report.material import Material

_PREDICTED = "star-diamond-open"
Level = tuple[float, float, float]
"""A level and the two ends of its interval."""


@dataclass(frozen=True)
class GrowthFamily:
    """The comparisons of one metric over ``param``, with the other parameters fixed at ``rest``."""

    group: Group
    param: str
    rest: Mapping[str, ParamValue]
    comparisons: tuple[Comparison, ...]

    @property
    def label(self) -> str:
        """Return the values of the other parameters as text."""
        return point_text(self.rest) or "all"


def families(material: Material) -> list[GrowthFamily]:
    """Return every headline metric over the parameter of its growth law, if that has at least two values."""
    found = []
    for group in groups(material.result, material.workloads):
        if not is_headline(material.workloads, group.workload, group.metric):
            continue
        param = material.workloads[group.workload].law
        by_rest: dict[PointKey, list[Comparison]] = {}
        for c in group.comparisons:
            if isinstance(c.point.get(param), int):
                by_rest.setdefault(point_key(_rest(c, param)), []).append(c)
        for mine in by_rest.values():
            if len({c.point[param] for c in mine}) > 1:
                found.append(GrowthFamily(group, param, _rest(mine[0], param), tuple(mine)))
    return found


def growth_galleries(material: Material) -> list[Gallery]:
    """Return a gallery for each headline metric; its choices are the values of the other parameters, and
    logarithmic axes, which distinguish N from N squared.
    """
    by_figure: dict[tuple[str, str], list[GrowthFamily]] = {}
    for family in families(material):
        by_figure.setdefault((family.group.workload, family.group.key), []).append(family)
    galleries = []
    for (workload, key), mine in by_figure.items():
        charts: dict[tuple[str, ...], Chart] = {}
        for family in mine:
            chart, plot = _chart(material, family)
            charts[family.label, "linear"] = chart
            if (logarithmic := plot.logarithmic()) is not None:
                charts[family.label, "logarithmic"] = replace(
                    chart, name=f"{chart.name}-logarithmic", drawn=logarithmic
                )
        first = (mine[-1].label, "linear")
        galleries.append(
            Gallery(slug("growth", workload, key), ("at", "axes"), charts, first, mine[0].group.metric)
        )
    return galleries


def _rest(c: Comparison, param: str) -> dict[str, ParamValue]:
    return {name: value for name, value in c.point.items() if name != param}


def _chart(material: Material, family: GrowthFamily) -> tuple[Chart, Plot]:
    result, group = material.result, family.group
    kernels = list(result.kernels)
    values = [side.compared for c in family.comparisons for side in (c.base, c.changed)]
    unit = scale(family.comparisons[0].unit, result.clock, values)
    series, described = [], []
    for kernel in ["base", *dict.fromkeys(c.variant for c in family.comparisons)]:
        levels = _levels(material, family, kernel)
        series.append(
            of_kernel(kernel, kernels, [_measured(kernel, *level, unit) for level in levels.items()])
        )
        law = _law(material, family, kernel)
        if law is not None and group.statistic == "median":
            series += _extrapolation(law, series[-1], unit)
        if levels:
            begin, end = (
                f"{unit.text(levels[at][0])} at {parameter(at)}" for at in (min(levels), max(levels))
            )
            described.append(f"{kernel} from {begin} to {end}")
    where = f" at {point_text(family.rest)}" if family.rest else ""
    y = Axis(f"{group.name}, {unit.unit}; {group.better} is better", zero=True)
    plot = Plot(Axis(family.param), y, tuple(series))
    return Chart(
        name=slug("growth", group.workload, group.key, point_text(family.rest)),
        title=f"{group.name} over {family.param}{where}",
        about=f"Line chart of {group.name} in {unit.unit} over {family.param}: {'; '.join(described)}.",
        drawn=plot,
    ), plot


def _levels(material: Material, family: GrowthFamily, kernel: str) -> dict[int, Level]:
    """Return the compared levels by value of the parameter, with intervals if the samples are known."""
    group, found = family.group, {}
    for c in family.comparisons:
        if kernel in ("base", c.variant):
            side = c.base if kernel == "base" else c.changed
            samples = material.evidence.of(kernel, group.workload, group.metric, c.point)
            ends = samples.intervals.get(group.statistic) if samples else None
            at = c.point[family.param]
            if isinstance(at, int):
                low, high = ends or (side.compared, side.compared)
                found[at] = (side.compared, min(low, side.compared), max(high, side.compared))
    return dict(sorted(found.items()))


def _measured(kernel: str, at: int, level: Level, unit: Scale) -> Mark:
    value, low, high = level
    texts = [unit.text(one) for one in level]
    text = f"{kernel} at {parameter(at)}: {texts[0]} {unit.unit} [{texts[1]}, {texts[2]}]"
    by = unit.divisor
    return Mark(at, value / by, text, low / by, high / by)


def _law(material: Material, family: GrowthFamily, kernel: str) -> Law | None:
    group = family.group
    return next(
        (
            law
            for law in material.result.laws
            if (law.workload, law.metric, law.kernel) == (group.workload, group.metric, kernel)
            and law.param == family.param
            and law.point == family.rest
        ),
        None,
    )


def _extrapolation(law: Law, measured: Series, unit: Scale) -> list[Series]:
    """Return the law extrapolated beyond the measured range, if it has predictions."""
    marks = []
    for p in law.predictions:
        if p.value is not None and p.low is not None and p.high is not None:
            value, low, high = (unit.text(one) for one in (p.value, p.low, p.high))
            text = (
                f"{law.kernel} at {parameter(int(p.at))}, extrapolated: {value} {unit.unit} ({low} to {high})"
            )
            by = unit.divisor
            marks.append(Mark(p.at, p.value / by, text, p.low / by, p.high / by))
    if not marks or not measured.marks:
        return []
    last = measured.marks[-1]
    plain = replace(measured, in_legend=False, dash=DOTTED, width=1)
    line = replace(
        plain,
        name=f"{law.kernel}, to its law",
        marks=(Mark(last.x, last.y), Mark(marks[0].x, marks[0].y)),
        symbol="",
    )
    ahead = replace(
        plain, name=f"{law.kernel}, extrapolated by its law", marks=tuple(marks), symbol=_PREDICTED
    )
    return [line, ahead]
