"""What was published next to what was measured here: figures, as tables and charts.

Published means are next to our means, both with standard deviations, and their changes are positive
if changed is better. They get verdicts too. Other figures have changes in percent, or speedups.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kteardown.inputs.published import Figure as PublishedFigure
from kteardown.inputs.published import Posted, PostedRow, Posting
from kteardown.judge.metrics import PointKey, metric_label, metric_name
from kteardown.model.judged import Comparison, Verdict
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result
from kteardown.model.workload import Better, Workload
from kteardown.report.chart_model import (
    DOTTED,
    Axis,
    Chart,
    Mark,
    Plot,
    PlotSeries,
    of_kernel,
    slug,
)
from kteardown.report.formatting import (
    WORDS,
    Scale,
    change,
    decimals,
    number,
    parameter,
    percent,
    point_text,
    scale,
    speedup,
)
from kteardown.report.material import Material
from kteardown.report.table import Block, Table, Text

_Judgements = Mapping[tuple[str, ParamValue], Verdict]
"""Verdicts by figure (the key of base's values) and value of the parameter."""

_MARGIN = 0.02
_TIMES = {
    "ns": Scale(1, "ns"),
    "us": Scale(1e3, "us"),
    "ms": Scale(1e6, "ms"),
    "s": Scale(1e9, "s"),
}


def published_tables(material: Material) -> list[Table]:
    """Return the published figures next to our changes, for the metrics that we have too."""
    result = material.result
    reference = material.reference
    if reference is None:
        return []
    source = reference.source
    machine = f"; {source.machine}" if source.machine else ""
    link = f"; https://lore.kernel.org/all/{source.message_id}/" if source.message_id else ""
    note = f'posted: "{source.title}", {source.posted}{machine}; measured on another machine{link}'
    judged = _judge_posted(result, reference)
    candidates = [
        _published_table(material, reference, figure, judged) for figure in reference.figures
    ]
    tables = [table for table in candidates if table is not None]
    return [*tables[:-1], *(replace(table, notes=(*table.notes, note)) for table in tables[-1:])]


def comparisons_for(result: Result, figure: PublishedFigure) -> dict[PointKey, list[Comparison]]:
    """Return our comparisons for a published figure, by the values of the other parameters."""

    def asked(variant: str) -> bool:
        return variant == figure.variant or (not figure.variant and result.is_asked_for(variant))

    by_rest: dict[PointKey, list[Comparison]] = {}
    for c in result.comparisons:
        if (
            (c.metric, c.statistic) == (figure.metric, figure.statistic)
            and (_step(result, c.variant) if figure.speedup else asked(c.variant))
            and figure.param in c.point
        ):
            rest = tuple((name, value) for name, value in c.point.items() if name != figure.param)
            by_rest.setdefault(rest, []).append(c)
    return by_rest


def figure_name(
    figure: PublishedFigure,
    workloads: Mapping[str, Workload],
    ours: Mapping[PointKey, Sequence[Comparison]],
) -> str:
    """Return the name of the metric of ``ours`` to which a published figure belongs, with its
    label."""
    first = next(mine[0] for mine in ours.values())
    name = metric_name(workloads, first.workload, first.metric, first.statistic)
    return f"{name}, {figure.label}" if figure.label else name


def improvement(base: float, changed: float, better: Better) -> str:
    """Return the change of a mean in percent, positive if changed is better: ``-13.33%``."""
    if not base:
        return "-"
    gain = (changed / base - 1) * (1 if better == "higher" else -1)
    # Adding 0.0 turns -0.0, a possible result of rounding, into 0.0.
    return f"{round(gain * 100, 2) + 0.0:+.2f}%"


def _judge_posted(result: Result, reference: Posting) -> _Judgements:
    """Return verdicts on the published means with a known number of runs, of metrics that we
    have."""
    ours = {c.metric: c for c in result.comparisons}
    rows = [
        (figure, row, ours[figure.metric])
        for figure in reference.figures
        if figure.means and figure.runs and figure.metric in ours
        for row in reference.rows(figure)
    ]
    if not rows:
        return {}
    # Importing scipy takes most of a second, which commands that compare nothing must not spend.
    from kteardown.analysis.estimate.student import Mean, judge_means
    from kteardown.analysis.estimate.verdict import Rules

    def mean(value: Posted, runs: int) -> Mean:
        return Mean(value.value, value.sd or 0.0, runs)

    first = rows[0][2]
    rules = Rules(first.confidence, first.same_within or _MARGIN)
    pairs = [
        (mean(row.base, figure.runs), mean(row.changed, figure.runs), c.better)
        for figure, row, c in rows
    ]
    names = [(figure.base, row.at) for figure, row, _ in rows]
    return {
        name: verdict for name, (verdict, _) in zip(names, judge_means(pairs, rules), strict=True)
    }


def _published_table(
    material: Material, reference: Posting, figure: PublishedFigure, judged: _Judgements
) -> Table | None:
    by_rest = comparisons_for(material.result, figure)
    measured = {c.point[figure.param] for mine in by_rest.values() for c in mine}
    every = reference.rows(figure)
    posted = [row for row in every if row.at in measured]
    if not posted:
        return None
    left_out = (
        f"{len(every) - len(posted)} posted rows are left out: their points were not measured here"
    )
    notes = (left_out,) if len(every) > len(posted) else ()
    blocks = [
        block
        for rest, mine in by_rest.items()
        for block in _blocks(material.result, figure, posted, point_text(dict(rest)), mine)
    ]
    title = (
        f"Published figures: {figure_name(figure, material.workloads, by_rest)}, posted in "
        f"{figure.unit}"
    )
    if figure.means:
        (first, *_), *_ = by_rest.values()
        keys = _keys_of_means(figure, posted, first.better, judged)
        return Table(
            f"{title}: mean (standard deviation)",
            keys,
            tuple(blocks),
            notes=(*notes, WORDS["means"]),
        )
    return Table(title, _keys(figure, posted), tuple(blocks), notes=notes)


def _step(result: Result, variant: str) -> int:
    """Return the number of patches of ``variant`` if they are the first ones of its series, else
    0."""
    facts = result.kernels.get(variant)
    patches = facts.patch_set.patches if facts and facts.patch_set else ()
    return len(patches) if patches == tuple(range(1, len(patches) + 1)) else 0


def _keys(figure: PublishedFigure, posted: Sequence[PostedRow]) -> Block:
    """Return the published figures, each side with as many decimals as its most precise value."""
    places = [parameter(row.at) for row in posted]
    sides = [[row.base for row in posted], [row.changed for row in posted]]
    columns = [places]
    for side in sides:
        digits = max(len(f"{v.value:.6f}".rstrip("0").partition(".")[2]) for v in side)
        columns.append(
            [f"{v.value:,.{digits}f}" + ("" if v.sd is None else f" ({v.sd:g})") for v in side]
        )
    shown = speedup if figure.speedup else percent
    columns.append(["-" if row.change is None else shown(1 + row.change) for row in posted])
    change_column = "posted speedup" if figure.speedup else "posted change"
    return Block.of(
        (figure.param, "posted base", "posted changed", change_column),
        list(zip(*columns, strict=True)),
    )


def _keys_of_means(
    figure: PublishedFigure, posted: Sequence[PostedRow], better: Better, judged: _Judgements
) -> Block:
    """Return the published figures, with a row for each value of the parameter."""
    rows: list[Sequence[Text]] = []
    for row in posted:
        judgement = judged.get((figure.base, row.at))
        means = (
            _mean(row.base),
            _mean(row.changed),
            improvement(row.base.value, row.changed.value, better),
        )
        rows.append((parameter(row.at), *means, *([(judgement, judgement)] if judgement else [])))
    verdict = ("verdict",) if any(len(row) > 4 for row in rows) else ()
    columns = (figure.param, "posted base", "posted changed", "change", *verdict)
    return Block.of(columns, rows, left=("verdict",))


def _blocks(
    result: Result,
    figure: PublishedFigure,
    posted: Sequence[PostedRow],
    rest: str,
    ours: Sequence[Comparison],
) -> Iterator[Block]:
    """Yield our columns of each variant; of speedups first base's medians, then each prefix of the
    series."""
    by_variant: dict[str, dict[ParamValue, Comparison]] = {}
    for c in sorted(ours, key=lambda c: _step(result, c.variant)) if figure.speedup else ours:
        by_variant.setdefault(c.variant, {})[c.point[figure.param]] = c
    unit = scale(
        ours[0].unit, result.clock, [side.median for c in ours for side in (c.base, c.changed)]
    )
    if figure.speedup:
        base = {at: c for mine in by_variant.values() for at, c in mine.items()}
        medians = [
            (unit.text(base[row.at].base.median) if row.at in base else None,) for row in posted
        ]
        yield Block.of((f"here: base, {unit.unit} {rest}".rstrip(),), medians)
    for variant, mine in by_variant.items():
        cells = [mine.get(row.at) for row in posted]
        if figure.means:
            yield _means(result, figure, posted, variant, rest, mine)
        elif figure.speedup:
            facts = result.kernels[variant].patch_set
            name = variant.removeprefix(facts.series if facts else "") or variant
            yield Block.of((name,), [[_speedup(c, unit) if c else None] for c in cells])
        else:
            digits = decimals(mine.values())
            changes: list[list[Text]] = [
                [(change(c, digits), c.verdict) if c else None] for c in cells
            ]
            yield Block.of((f"here: {variant} {rest}".rstrip(),), changes)


def _speedup(c: Comparison, unit: Scale) -> Text:
    return f"{unit.text(c.changed.median)}  {speedup(c.ratio, c.ci, exact=c.exact)}", c.verdict


def _means(
    result: Result,
    figure: PublishedFigure,
    posted: Sequence[PostedRow],
    variant: str,
    rest: str,
    ours: Mapping[ParamValue, Comparison],
) -> Block:
    """Return our base, changed, change and verdict of a variant, in the published unit of time."""
    means = [side.mean for c in ours.values() for side in (c.base, c.changed)]
    unit = scale(next(iter(ours.values())).unit, result.clock, means)
    if unit.unit in _TIMES:
        unit = _TIMES.get(figure.unit, unit)
    rows: list[Sequence[Text]] = []
    for row in posted:
        c = ours.get(row.at)
        if c is None:
            rows.append((None,) * 4)
        else:
            sides = [
                f"{unit.text(s.mean)} ({number(s.sd / unit.divisor)})" for s in (c.base, c.changed)
            ]
            rows.append(
                (*sides, improvement(c.base.mean, c.changed.mean, c.better), (c.verdict, c.verdict))
            )
    base = f"here: base, {unit.unit} {rest}".rstrip()
    return Block.of((base, variant, "change", "verdict"), rows, left=("verdict",))


def _mean(value: Posted) -> str:
    return f"{value.value:,.2f}" + ("" if value.sd is None else f" ({value.sd:,.2f})")


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


def _levels(
    reference: Posting, figure: PublishedFigure, rows: Sequence[PostedRow], name: str
) -> Chart:
    places, x = _places(figure, rows)
    sides = [("base", "base", "circle-open", DOTTED), ("changed", "posted", "diamond-open", "")]
    series = []
    for side, shade, symbol, dash in sides:
        marks = []
        for row in rows:
            mean: Posted = row.base if side == "base" else row.changed
            text = f"posted {side} at {parameter(row.at)}: {number(mean.value)} {figure.unit}"
            sd = mean.sd or 0
            marks.append(Mark(places[row.at], mean.value, text, mean.value - sd, mean.value + sd))
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
        for variant in dict.fromkeys(
            c.variant for c in mine if material.result.is_asked_for(c.variant)
        ):
            marks = []
            for c in mine:
                if c.variant == variant and c.ratio is not None:
                    at = c.point[figure.param]
                    text = f"{variant} at {parameter(at)}: {change(c)}, {c.verdict}"
                    value, low, high = (
                        100 * (ratio - 1) for ratio in (c.ratio, *(c.ci or (c.ratio, c.ratio)))
                    )
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
    """Return the place of each value of the parameter, and the axis: columns if a value is not a
    number."""
    values = list(dict.fromkeys([*(row.at for row in rows), *more]))
    if all(isinstance(value, int) for value in values):
        return {value: float(value) for value in values}, Axis(figure.param)
    return {value: n for n, value in enumerate(values)}, Axis(
        figure.param, names=tuple(map(str, values))
    )
