"""Growth: tables of the fitted laws, and charts of the levels of each kernel with the laws
extrapolated."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kteardown.judge.metrics import Group, PointKey, headlines, is_headline, metric_name
from kteardown.model.judged import Comparison
from kteardown.model.laws import Law
from kteardown.model.result import Result
from kteardown.model.workload import Workload
from kteardown.report.chart_model import (
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
from kteardown.report.charts import written
from kteardown.report.formatting import Scale, change_of, number, parameter, point_text, scale
from kteardown.report.material import Material
from kteardown.report.table import Block, Table, Text

_LAW_NAMES: Mapping[str, str] = {"nlogn": "n log n"}
"""The names of laws that differ from their names in result.json."""


def law_tables(material: Material) -> list[Table]:
    """Return a table for each headline metric with a law and each setting of the other
    parameters."""
    groups: dict[tuple[str, str, PointKey], list[Law]] = {}
    result = material.result
    for law in result.laws:
        if is_headline(material.workloads, law.workload, law.metric) and result.is_asked_for(
            law.kernel
        ):
            groups.setdefault((law.workload, law.metric, tuple(law.point.items())), []).append(law)
    return [_table(result, material.workloads, laws) for laws in groups.values()]


def growth_lines(result: Result, workloads: Mapping[str, Workload], kernel: str) -> list[str]:
    """Return what one more object costs on ``kernel``, a line for each headline metric with a known
    law."""
    lines = []
    for law in result.laws:
        if law.kernel != kernel or not is_headline(workloads, law.workload, law.metric):
            continue
        name = metric_name(workloads, law.workload, law.metric)
        at = f" at {point_text(law.point)}" if law.point else ""
        if law.model == "constant":
            lines.append(f"{name}{at}: constant over {law.param}")
        elif law.model != "unknown" and law.per_unit is not None:
            unit = scale(law.unit, result.clock, [law.per_unit])
            cost = f"{number(law.per_unit / unit.divisor)} {unit.unit}"
            model = _LAW_NAMES.get(law.model, law.model)
            lines.append(f"{name}{at}: {cost} for one more ({law.param}), {model}")
    return lines


def _table(result: Result, workloads: Mapping[str, Workload], laws: Sequence[Law]) -> Table:
    first = laws[0]
    unit = scale(first.unit, result.clock, [law.per_unit or 0.0 for law in laws])
    shape: list[Sequence[Text]] = []
    for law in laws:
        slope = exponent = None
        if law.per_unit is not None:
            ends = ", ".join(number(end / unit.divisor) for end in law.per_unit_ci or ())
            slope = number(law.per_unit / unit.divisor) + (f" [{ends}]" if ends else "")
        if law.exponent is not None and law.exponent_ci is not None:
            exponent = f"{law.exponent:.2f} [{law.exponent_ci[0]:.2f}, {law.exponent_ci[1]:.2f}]"
        shape.append((slope, _LAW_NAMES.get(law.model, law.model), exponent))
    blocks = [Block.of((f"{unit.unit} for one more", "law", "exponent"), shape, left=("law",))]
    if any(law.verdict for law in laws):
        slopes: list[Sequence[Text]] = []
        for law in laws:
            text = f"{change_of(law.ratio, law.ratio_ci)}, {law.verdict}"
            slopes.append([(text, law.verdict) if law.verdict else None])
        blocks.append(Block.of(("slope / base",), slopes))
    for value in dict.fromkeys(p.at for law in laws for p in law.predictions if not p.refused):
        predictions = [next((p for p in law.predictions if p.at == value), None) for law in laws]
        unit = scale(
            first.unit, result.clock, [p.value for p in predictions if p and p.value is not None]
        )
        cells = [
            f"{unit.text(p.value)} ({unit.text(p.low)} to {unit.text(p.high)})"
            if p and p.value is not None and p.low is not None and p.high is not None
            else None
            for p in predictions
        ]
        blocks.append(Block.of((f"{unit.unit} at {_size(value)}",), [(cell,) for cell in cells]))
    at = f" at {point_text(first.point)}" if first.point else ""
    name = metric_name(workloads, first.workload, first.metric)
    title = f"{first.workload}: growth of {name} with {first.param}{at}"
    keys = Block.of(("kernel",), [(law.kernel,) for law in laws], left=("kernel",))
    refused: dict[tuple[str, str], list[str]] = {}
    for law in laws:
        for p in law.predictions:
            if p.refused:
                refused.setdefault((_size(p.at), p.refused), []).append(law.kernel)
    return Table(title, keys, tuple(blocks), tuple(written("growth", laws, refused)))


def _size(value: float) -> str:
    return parameter(int(value)) if value == int(value) else number(value)


_PREDICTED = "star-diamond-open"


def growth_galleries(material: Material) -> list[Gallery]:
    """Return a gallery for each headline metric over the parameter of its growth law.

    There are at least two values of it. The choices are the values of the other parameters, and
    logarithmic axes, which distinguish N from N squared.
    """
    galleries = []
    for group in headlines(material.result, material.workloads):
        param = material.workloads[group.workload].law
        by_rest: dict[PointKey, list[Comparison]] = {}
        for c in group.comparisons:
            if isinstance(c.point.get(param), int):
                rest = {name: value for name, value in c.point.items() if name != param}
                by_rest.setdefault(tuple(rest.items()), []).append(c)
        charts: dict[tuple[str, ...], Chart] = {}
        for fixed, mine in by_rest.items():
            if len({c.point[param] for c in mine}) > 1:
                label = point_text(dict(fixed)) or "all"
                charts |= {
                    (label, axes): chart
                    for axes, chart in _charts(material, group, param, fixed, mine)
                }
        if charts:
            first = (list(charts)[-1][0], "linear")
            name = slug("growth", group.workload, group.key)
            galleries.append(Gallery(name, ("at", "axes"), charts, first, group.metric))
    return galleries


def _charts(
    material: Material, group: Group, param: str, fixed: PointKey, mine: Sequence[Comparison]
) -> Iterator[tuple[str, Chart]]:
    """Yield the chart with linear axes, and the one with logarithmic axes if a number is
    positive."""
    result = material.result
    rest = dict(fixed)
    unit = scale(
        mine[0].unit, result.clock, [side.compared for c in mine for side in (c.base, c.changed)]
    )
    series = []
    described = []
    for kernel in ["base", *dict.fromkeys(c.variant for c in mine)]:
        marks = _measured(material, group, param, kernel, mine, unit)
        series.append(of_kernel(kernel, list(result.kernels), marks))
        wanted = (group.workload, group.metric, kernel, param, rest)
        for law in result.laws if group.statistic == "median" else ():
            if (law.workload, law.metric, law.kernel, law.param, law.point) == wanted:
                series += _extrapolation(law, series[-1], unit)
        ends = [
            f"{unit.text(m.y * unit.divisor)} at {parameter(int(m.x))}"
            for m in (marks[0], marks[-1])
        ]
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
    material: Material,
    group: Group,
    param: str,
    kernel: str,
    mine: Sequence[Comparison],
    unit: Scale,
) -> list[Mark]:
    """Return the compared levels by value of the parameter, with intervals if the samples are
    known."""
    marks: dict[int, Mark] = {}
    for c in mine:
        at = c.point[param]
        if kernel in ("base", c.variant) and isinstance(at, int):
            value = (c.base if kernel == "base" else c.changed).compared
            samples = material.evidence.of(kernel, group.workload, group.metric, c.point)
            low, high = (samples.intervals.get(group.statistic) if samples else None) or (
                value,
                value,
            )
            level = (value, min(low, value), max(high, value))
            marks[at] = _mark(f"{kernel} at {parameter(at)}", at, level, unit, "[{}, {}]")
    return [marks[at] for at in sorted(marks)]


def _mark(what: str, at: float, level: tuple[float, float, float], unit: Scale, form: str) -> Mark:
    """Return the mark of a level with the two ends of its interval; ``form``: how its text has the
    ends."""
    value, low, high = (figure / unit.divisor for figure in level)
    text, *ends = map(unit.text, level)
    return Mark(at, value, f"{what}: {text} {unit.unit} {form.format(*ends)}", low, high)


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
