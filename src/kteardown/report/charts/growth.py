"""Growth charts: the levels of each kernel with their intervals, and the growth law extrapolated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kteardown.model.record import ParamValue
from kteardown.model.result import Comparison, Law
from kteardown.report.charts.figure import Chart, Gallery, Trace, axis, colour, dash, layout, mark, slug
from kteardown.report.comparison_groups import Group, PointKey, groups, is_headline, point_key
from kteardown.report.formatting import Scale, parameter, point_text, scale
from kteardown.report.material import Material

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
    """Return a gallery for each headline metric; its choice is the values of the other parameters."""
    by_figure: dict[tuple[str, str], list[GrowthFamily]] = {}
    for family in families(material):
        by_figure.setdefault((family.group.workload, family.group.key), []).append(family)
    galleries = []
    for (workload, key), mine in by_figure.items():
        charts: dict[tuple[str, ...], Chart] = {(f.label,): _chart(material, f) for f in mine}
        labels = tuple(family.label for family in mine)
        choices = (("at", labels),) if len(labels) > 1 else ()
        first = labels[-1:]
        galleries.append(Gallery(slug("growth", workload, key), choices, charts, first, mine[0].group.metric))
    return galleries


def _rest(c: Comparison, param: str) -> dict[str, ParamValue]:
    return {name: value for name, value in c.point.items() if name != param}


def _chart(material: Material, family: GrowthFamily) -> Chart:
    result, group = material.result, family.group
    kernels = list(result.kernels)
    values = [side.compared for c in family.comparisons for side in (c.base, c.changed)]
    unit = scale(family.comparisons[0].unit, result.clock, values)
    traces = []
    for kernel in ["base", *dict.fromkeys(c.variant for c in family.comparisons)]:
        levels = _levels(material, family, kernel)
        traces += _kernel(kernel, kernels, levels, unit)
        law = _law(material, family, kernel)
        if law is not None and group.statistic == "median":
            traces += _extrapolation(law, kernel, kernels, levels, unit)
    where = f" at {point_text(family.rest)}" if family.rest else ""
    return Chart(
        name=slug("growth", group.workload, group.key, point_text(family.rest)),
        title=f"{group.name} over {family.param}{where}",
        about=_about(material, family, unit),
        figure={
            "data": traces,
            "layout": layout(
                xaxis=axis(family.param),
                yaxis=axis(f"{group.name}, {unit.unit}; {group.better} is better", rangemode="tozero"),
                height=400,
            ),
        },
        height=400,
        scales=True,
    )


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


def _kernel(kernel: str, kernels: Sequence[str], levels: Mapping[int, Level], unit: Scale) -> list[Trace]:
    x, by = list(levels), unit.divisor
    shade = colour(kernel, kernels)
    return [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": kernel,
            "cliponaxis": False,
            "legendgroup": kernel,
            "x": x,
            "y": [value / by for value, _, _ in levels.values()],
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": [(high - value) / by for value, _, high in levels.values()],
                "arrayminus": [(value - low) / by for value, low, _ in levels.values()],
                "thickness": 1.6,
                "width": 4,
                "color": shade,
            },
            "line": {"color": shade, "width": 2, "dash": dash(kernel, kernels)},
            "marker": {"symbol": mark(kernel, kernels), "size": 8, "color": shade},
            "text": [
                f"{kernel} at {parameter(at)}<br>{unit.text(value)} {unit.unit} "
                f"[{unit.text(low)}, {unit.text(high)}]"
                for at, (value, low, high) in levels.items()
            ],
            "hovertemplate": "%{text}<extra></extra>",
            "meta": {"variant": kernel},
        }
    ]


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


def _extrapolation(
    law: Law, kernel: str, kernels: Sequence[str], levels: Mapping[int, Level], unit: Scale
) -> list[Trace]:
    """Return the trace of the law extrapolated beyond the measured range, if it has predictions."""
    known = [p for p in law.predictions if p.value is not None and p.low is not None and p.high is not None]
    if not known or not levels:
        return []
    last, (level, _, _) = list(levels.items())[-1]
    by, shade = unit.divisor, colour(kernel, kernels)
    values = [(p.at, p.value or 0.0, p.low or 0.0, p.high or 0.0) for p in known]
    return [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": f"{kernel}, extrapolated by its law",
            "legendgroup": kernel,
            "showlegend": False,
            "x": [last, *(at for at, _, _, _ in values)],
            "y": [level / by, *(value / by for _, value, _, _ in values)],
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": [0, *((high - value) / by for _, value, _, high in values)],
                "arrayminus": [0, *((value - low) / by for _, value, low, _ in values)],
                "thickness": 1.2,
                "width": 6,
                "color": shade,
            },
            "line": {"color": shade, "width": 1, "dash": "dot"},
            "marker": {"symbol": "star-diamond-open", "size": [0, *(10 for _ in values)], "color": shade},
            "text": [
                "",
                *(
                    f"{kernel} at {parameter(int(at))}, extrapolated<br>{unit.text(value)} {unit.unit} "
                    f"({unit.text(low)} to {unit.text(high)})"
                    for at, value, low, high in values
                ),
            ],
            "hovertemplate": "%{text}<extra></extra>",
            "meta": {"variant": kernel},
        }
    ]


def _about(material: Material, family: GrowthFamily, unit: Scale) -> str:
    group = family.group
    parts = []
    for kernel in ["base", *dict.fromkeys(c.variant for c in family.comparisons)]:
        levels = list(_levels(material, family, kernel).items())
        if levels:
            (first, (low, _, _)), (last, (high, _, _)) = levels[0], levels[-1]
            begin, end = f"{unit.text(low)} at {parameter(first)}", f"{unit.text(high)} at {parameter(last)}"
            parts.append(f"{kernel} from {begin} to {end}")
    return f"Line chart of {group.name} in {unit.unit} over {family.param}: {'; '.join(parts)}."
