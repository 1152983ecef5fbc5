"""Charts of published figures: their levels in their own unit, and their changes next to ours on one axis."""

from collections.abc import Mapping, Sequence

from kteardown.inputs.published import Figure as PublishedFigure
from kteardown.inputs.published import Posted, PostedRow, Posting
from kteardown.model.record import ParamValue
from kteardown.model.result import Comparison
from kteardown.report.charts.figure import DOTTED, Axis, Chart, Mark, Plot, PlotSeries, of_kernel, slug
from kteardown.report.comparison_groups import PointKey
from kteardown.report.formatting import change, number, parameter, percent, point_text
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
    places, x = _places(figure, rows)
    sides = [("base", "base", "circle-open", DOTTED), ("changed", "posted", "diamond-open", "")]
    series = []
    for side, shade, symbol, dash in sides:
        marks = []
        for row in rows:
            one: Posted = row.base if side == "base" else row.changed
            text = f"posted {side} at {parameter(row.at)}: {number(one.value)} {figure.unit}"
            sd = one.sd or 0
            marks.append(Mark(places[row.at], one.value, text, one.value - sd, one.value + sd))
        series.append(PlotSeries(f"posted {side}", shade, tuple(marks), symbol, dash, width=1.6))
    source = reference.source
    machine = f"; {source.machine}" if source.machine else ""
    return Chart(
        name=_slug(figure, "levels"),
        title=f"As posted: {name}",
        about=f"Published {name} in {figure.unit} over {figure.param}, base and changed.",
        drawn=Plot(x, Axis(f"posted, {figure.unit}", zero=True), tuple(series)),
        notes=(f'"{source.title}", {source.posted}{machine}; {_OTHER_MACHINE}',),
    )


def _changes(
    material: Material,
    figure: PublishedFigure,
    rows: Sequence[PostedRow],
    ours: dict[PointKey, list[Comparison]],
    name: str,
) -> Chart:
    # Points of ours that were not posted are columns of their own.
    measured = [c.point[figure.param] for mine in ours.values() for c in mine]
    places, x = _places(figure, rows, measured)
    posted = [
        Mark(places[r.at], 100 * r.change, f"posted at {parameter(r.at)}: {percent(1 + r.change)}")
        for r in rows
        if r.change is not None
    ]
    series = [PlotSeries("posted", "posted", tuple(posted), "diamond-open", DOTTED, width=1.2)]
    kernels = list(material.result.kernels)
    for rest, mine in ours.items():
        for variant in dict.fromkeys(c.variant for c in mine if material.result.is_asked_for(c.variant)):
            marks = []
            for c in mine:
                if c.variant == variant and c.ratio is not None:
                    at = c.point[figure.param]
                    text = f"{variant} at {parameter(at)}: {change(c)}, {c.verdict}"
                    value, low, high = (100 * (one - 1) for one in (c.ratio, *(c.ci or (c.ratio, c.ratio))))
                    marks.append(Mark(places[at], value, text, low, high))
            label = f"here: {variant} {point_text(dict(rest))}".rstrip()
            series.append(of_kernel(variant, kernels, marks, label))
    return Chart(
        name=_slug(figure, "changes"),
        title=f"Change against base, posted and here: {name}",
        about=f"Changes of {name} in percent over {figure.param}: published and ours.",
        drawn=Plot(x, Axis("change against base, %"), tuple(series)),
    )


def _places(
    figure: PublishedFigure, rows: Sequence[PostedRow], more: Sequence[ParamValue] = ()
) -> tuple[Mapping[ParamValue, float], Axis]:
    """Return the place of each value of the parameter, and the axis: columns if a value is not a number."""
    values = list(dict.fromkeys([*(row.at for row in rows), *more]))
    if all(isinstance(value, int) for value in values):
        return {value: float(value) for value in values}, Axis(figure.param)
    return {value: n for n, value in enumerate(values)}, Axis(figure.param, names=tuple(map(str, values)))
