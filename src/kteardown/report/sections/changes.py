"""The changes from base, as tables and as pictures.

The pictures are a row for each ratio, and for each variant a strip for each headline metric, all of
a kind on one axis. They are SVG in the page itself, so they need no script to be filtered, printed
and read aloud.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kteardown.judge.answer import MetricAnswer
from kteardown.judge.deciding import is_far_from_no_change
from kteardown.judge.metrics import Group, PointKey, groups, headline_rows, variants
from kteardown.judge.verdicts import VERDICTS, most_alarming
from kteardown.model.judged import Comparison, Verdict
from kteardown.model.result import Result
from kteardown.model.workload import Workload
from kteardown.report.chart_model import Chart, Forest, Row, slug
from kteardown.report.charts import draw_as
from kteardown.report.formatting import (
    WORDS,
    change,
    decimals,
    detectable,
    detectable_span,
    interval,
    parameter,
    percent,
    point_text,
    probability,
    scale,
    verdict_counts,
    with_remedy,
)
from kteardown.report.material import Material
from kteardown.report.metrics import (
    metric_change,
    metric_sentence,
    point_cells,
    points_text,
    verdict_text,
)
from kteardown.report.prose import why_unsure
from kteardown.report.table import Block, Cell, LongRow, LongRows, LongTable, Table, Text


def headline_table(result: Result, group: Group) -> Table:
    """Return the table of a headline metric or one of its percentiles, with a row for each
    point."""
    # Base is shown over the most boots: those of a variant that has none missing.
    points: dict[PointKey, Comparison] = {}
    for c in group.comparisons:
        key = tuple(c.point.items())
        points[key] = max(points.get(key, c), c, key=lambda one: one.base.boots)
    medians = [side.compared for c in group.comparisons for side in (c.base, c.changed)]
    unit = scale(group.comparisons[0].unit, result.clock, medians)
    digits = decimals(group.comparisons)
    names, key_rows = point_cells([dict(at) for at in points])
    rows = zip(key_rows, points.values(), strict=True)
    keys = Block.of((*names, "base"), [(*key, unit.text(c.base.compared)) for key, c in rows])
    wall = result.clock == "wall"
    blocks = []
    for variant in variants(result):
        by_point = {tuple(c.point.items()): c for c in group.of(variant)}
        cells: list[Sequence[Text]] = []
        for here in map(by_point.get, points):
            if here is None:
                cells.append((None,) * (5 if wall else 3))
                continue
            tests = (detectable(here.mde), probability(here.p_rank)) if wall else ()
            size = (change(here, digits), here.verdict)
            judged = (verdict_text(here, here.base.boots), here.verdict)
            cells.append((unit.text(here.changed.compared), size, *tests, judged))
        columns = ("changed", variant, *(("mde", "rank p") if wall else ()), "verdict")
        blocks.append(Block.of(columns, cells, left=("verdict",)))
    confidence = f"{group.comparisons[0].confidence * 100:.4g}%"
    title = (
        f"{group.workload}: {group.name} ({group.key}) in {unit.unit}, {group.better} is better; "
        f"{'median, ' if group.statistic == 'median' else ''}change with {confidence} interval"
    )
    # The intervals of the A/A twin and of the layout twin that were measured.
    twins = [(c.null_ci, c.layout_ci) for c in points.values()]
    shown = [n for n in (0, 1) if any(cis[n] for cis in twins)]
    nulls = [[interval(ci, digits) if (ci := cis[n]) else None for n in shown] for cis in twins]
    aside = Block.of([("A/A", "layout")[n] for n in shown], nulls) if shown else None
    return Table(title, keys, tuple(blocks), _notes(group, wall=wall), aside)


def _notes(group: Group, *, wall: bool) -> tuple[str, ...]:
    """Return the reasons of the verdicts and the smallest detectable change."""
    notes = []
    for verdict in ("broken", "worse", "better", "inconclusive"):
        reasons = Counter(
            c.reason for c in group.comparisons if c.verdict == verdict and not c.exact
        )
        notes += [
            f"{count} {verdict}: {with_remedy(reason)}"
            for reason, count in sorted(reasons.items())
            if reason
        ]
    same = [c for c in group.comparisons if c.verdict == "same"]
    for reason, count in sorted(Counter(c.reason for c in same).items()):
        ps = [c.p_same for c in same if c.reason == reason and c.p_same is not None and not c.exact]
        most = max(ps, default=0.0)
        tests = (
            f" (TOST p {'< 0.001' if most < 0.001 else f'<= {probability(most)}'})" if ps else ""
        )
        notes.append(f"{count} same: {reason}{tests}")
    mdes = [c.mde for c in group.comparisons if c.mde is not None and not c.exact]
    if mdes and not wall:
        notes.append(f"smallest detectable change (80% power): {detectable_span(mdes)}")
    with_outliers = sum(c.outliers > 0 for c in group.comparisons)
    if with_outliers:
        notes.append(
            f"{with_outliers} of {len(group.comparisons)} comparisons have outlier boots, listed "
            "below"
        )
    return tuple(notes)


_COLUMNS = (
    "metric",
    "variant",
    "points",
    "boots",
    "change",
    "A/A",
    "layout",
    "mde",
    "p",
    "verdict",
)
_EXPLAINED = ("inconclusive", "mixed")


def brief_table(result: Result, workloads: Mapping[str, Workload]) -> Table | None:
    """Return a row for each headline metric and variant that is not broken, without tests; None if
    empty."""
    rows = []
    notes: list[str] = []
    for group, variant, mine, metric in headline_rows(result, workloads):
        if not result.broken(variant):
            verdict = metric.verdict if metric else most_alarming(c.verdict for c in mine)
            size = metric_change(metric, mine) if metric else "-"
            points = points_text(metric) if metric else f"{len(mine)} points"
            rows.append((group.name, variant, (size, verdict), points, (verdict, verdict)))
            if metric and is_far_from_no_change(metric):
                notes.append(f"{group.name}, {variant}: {why_unsure(metric, result.clock)}")
    columns = ("metric", "variant", "change", "points", "verdict")
    block = Block.of(columns, rows, left=columns)
    return Table("Headline metrics", block, notes=tuple(notes)) if rows else None


def metric_tables(result: Result, workloads: Mapping[str, Workload]) -> list[Table]:
    """Return the table; empty if no headline metric has more than one point."""
    found = []
    cells = list[Sequence[Text]]()
    for group, variant, compared, m in headline_rows(result, workloads):
        if m is not None:
            planned = f"{m.points}" + ("" if m.points == m.planned else f" of {m.planned}")
            twins = [interval(ci) if ci else None for ci in (m.null_ci, m.layout_ci)]
            mde = None if m.exact or m.mde is None else detectable(m.mde)
            p = None if m.exact or m.p_corrected is None else probability(m.p_corrected)
            size = (metric_change(m, compared), m.verdict)
            first = (group.name, variant, planned, str(m.boots), size)
            cells.append((*first, *twins, mde, p, (m.verdict, m.verdict)))
            found.append((group.name, m))
    if not any(m.planned > 1 for _, m in found):
        return []
    used = [n for n in range(len(_COLUMNS)) if any(row[n] for row in cells)]

    def block(first: int, last: int) -> Block:
        mine = [n for n in used if first <= n < last]
        rows = [[row[n] for n in mine] for row in cells]
        return Block.of([_COLUMNS[n] for n in mine], rows, left=("metric", "variant", "verdict"))

    reasons: dict[str, dict[str, None]] = {}
    for name, m in found:
        if m.verdict in _EXPLAINED and m.reason:
            reasons.setdefault(why_unsure(m, result.clock), {})[name] = None
    words = tuple(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
    confidence = f"{found[0][1].confidence * 100:.4g}%"
    title = f"Headline metrics over all their points, change with {confidence} interval"
    blocks = tuple(one for one in (block(2, 5), block(5, 7), block(7, 10)) if one.columns)
    return [Table(title, block(0, 2), blocks, (WORDS["corrected"], *words))]


def comparison_table(material: Material) -> LongTable:
    """Return every comparison of requested variants with its interval, twins and reason."""
    wall = material.result.clock == "wall"
    bodies = []
    for group in groups(material.result, material.workloads):
        values = [side.compared for c in group.comparisons for side in (c.base, c.changed)]
        unit = scale(group.comparisons[0].unit, material.result.clock, values)
        digits = decimals(group.comparisons)
        rows = []
        for c in group.comparisons:
            sides = [unit.text(c.base.compared), unit.text(c.changed.compared)]
            tests = [detectable(c.mde)]
            if wall:
                tests = [
                    interval(c.null_ci, digits) if c.null_ci else "-",
                    *tests,
                    probability(c.p_rank),
                ]
            sized = Cell(change(c, digits), c.verdict)
            judged = Cell(c.verdict, c.verdict)
            first = map(Cell, (c.variant, point_text(c.point), *sides))
            cells = (*first, sized, *map(Cell, tests), judged, Cell(with_remedy(c.reason)))
            rows.append(LongRow(c.variant, c.verdict, cells))
        bodies.append(LongRows(group.metric, f"{group.name} ({unit.unit})", rows))
    extra = ("A/A", "mde", "rank p") if wall else ("mde",)
    columns = ("variant", "point", "base", "changed", "change", *extra, "verdict", "reason")
    return LongTable(
        "Every change in figures", columns, ("variant", "point", "verdict", "reason"), bodies
    )


_MOST_ROWS = 48
"""In files, each metric of a variant with more rows than this has a chart of its own."""


def forest_plots(material: Material) -> list[Forest]:
    """Return a plot for each variant, all on the same axis."""
    result = material.result
    axis = RatioAxis.of(result.asked_for)
    points: dict[str, list[Comparison]] = {}
    for c in result.asked_for:
        points.setdefault(c.workload, []).append(c)
    varying = {
        workload: point_cells([c.point for c in mine])[0] for workload, mine in points.items()
    }
    every = groups(result, material.workloads)
    plots = []
    for variant in variants(result):
        found = [
            (g, [c for c in g.of(variant) if c.ratio is not None and c.ratio > 0]) for g in every
        ]
        metrics = [(g, _rows(mine, varying[g.workload], axis)) for g, mine in found if mine]
        drawn = [c for _, mine in found for c in mine]
        twins = (
            ("twin", "A/A: base against itself", any(c.null_ci for c in drawn)),
            ("moved", "base with its code moved", any(c.layout_ci for c in drawn)),
        )
        plot = Forest(
            variant,
            draw_as("tick_lines", axis),
            draw_as("tick_labels", axis),
            tuple(metrics),
            verdicts=[verdict for verdict in VERDICTS if any(c.verdict == verdict for c in drawn)],
            twins=[(name, text) for name, text, shown in twins if shown],
            several=len({group.workload for group, _ in metrics}) > 1,
        )
        plots += [plot] if metrics else []
    return plots


def _rows(comparisons: list[Comparison], varying: tuple[str, ...], axis: "RatioAxis") -> list[Row]:
    digits = decimals(comparisons)
    rows = []
    for c in comparisons:
        values = [(name, parameter(c.point[name])) for name in varying if name in c.point]
        label = " ".join(f"{name} {text}" if text[:1].isdigit() else text for name, text in values)
        picture = draw_as("forest_row", axis, c)
        reason = with_remedy(c.reason)
        rows.append(Row(label or "all", picture, change(c, digits), c.verdict, reason))
    return rows


def forests(material: Material) -> list[Chart]:
    """Return a chart for each variant, or for each metric of a variant if it has many rows."""
    found = []
    for plot in forest_plots(material):
        every = [row for _, rows in plot.metrics for row in rows]
        for metrics in (
            [plot.metrics] if len(every) <= _MOST_ROWS else [(one,) for one in plot.metrics]
        ):
            single = metrics[0][0] if len(metrics) == 1 else None
            verdicts = [row.verdict for _, rows in metrics for row in rows]
            chart = Chart(
                name=slug(
                    "forest", plot.variant, *((single.workload, single.key) if single else ())
                ),
                title=f"{plot.variant} against base{f', {single.name}' if single else ''}",
                about=(
                    f"Forest plot of {len(verdicts)} changes of {plot.variant} against base with "
                    f"their intervals: {verdict_counts(verdicts)}."
                ),
                drawn=replace(plot, metrics=metrics),
            )
            found.append(chart)
    return found


_FURTHER = 1 / 3
_LEAST_REACH = 1.1
_TICKS = (
    *(
        0.001,
        0.01,
        0.02,
        0.05,
        0.1,
        0.2,
        0.3,
        0.4,
        0.5,
        0.6,
        0.7,
        0.8,
        0.9,
        0.95,
        0.98,
        0.99,
        0.995,
    ),
    *(
        1.005,
        1.01,
        1.02,
        1.05,
        1.1,
        1.2,
        1.3,
        1.5,
        2,
        3,
        4,
        5,
        10,
        20,
        50,
        100,
        1000,
        10_000,
        100_000,
    ),
)


@dataclass(frozen=True)
class RatioAxis:
    """The axis from ``low`` to ``high``."""

    low: float
    high: float

    @classmethod
    def of(cls, comparisons: Iterable[Comparison]) -> "RatioAxis":
        """Return one axis for the ratios of all ``comparisons``, so that pictures of them can be
        compared.

        A very wide interval does not decide it: what lies further out than a third of the span of
        the ratios that have a verdict is outside, and is drawn with an arrow.
        """
        every = [c for c in comparisons if c.ratio is not None and c.ratio > 0]
        firm = [c for c in every if c.verdict != "inconclusive"] or every
        ratios = [math.log(c.ratio or 1.0) for c in firm]
        low = min([*ratios, 0.0])
        high = max([*ratios, 0.0])
        reach = max(_FURTHER * (high - low), math.log(_LEAST_REACH))
        ends = [end for c in every for end in (c.ratio or 1.0, *(c.ci or ())) if end > 0]
        least = math.exp(low - reach)
        most = math.exp(high + reach)
        return cls(*ratio_range([min(max(end, least), most) for end in ends]))

    def at(self, ratio: float) -> float:
        """Return the position of a ratio, in percent of the width."""
        inside = min(max(ratio, self.low), self.high)
        return round(100 * math.log(inside / self.low) / math.log(self.high / self.low), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return the ticks with their labels."""
        return ratio_ticks(self.low, self.high)


def ratio_range(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the range of an axis of ratios: all of them and 1, with a margin; at least 1% to
    either side."""
    known = [ratio for ratio in ratios if ratio > 0 and math.isfinite(ratio)]
    low = min([*known, 0.99])
    high = max([*known, 1.01])
    room = (high / low) ** 0.04
    return low / room, high * room


def ratio_ticks(low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
    """Return ticks of a logarithmic axis of ratios with their labels: ``-50%``, ``0``, ``2x``."""
    apart = math.log(high / low) / most
    chosen = [1.0]
    for step in sorted(_TICKS, key=lambda step: (abs(math.log(step)), step)):
        if low <= step <= high and all(
            abs(math.log(step / other)) >= apart * 0.8 for other in chosen
        ):
            chosen.append(step)
    ticks = []
    for step in sorted(chosen):
        change = percent(step, 0 if abs(round(step * 100) - step * 100) < 1e-6 else 1)
        ticks.append((step, "0" if step == 1 else f"{step:,.0f}x" if step >= 3 else change))
    return ticks


_ROW_PX = 9
_LEAST_PX = 30
_MOST_PX = 76


class Strip(NamedTuple):
    """One headline metric of one variant; ``picture`` has its changes in SVG, ``height`` is in
    pixels."""

    group: Group
    verdict: Verdict
    text: str
    picture: str
    height: int


class Card(NamedTuple):
    """The verdict on one variant.

    ``figure`` is its change of the first headline metric over all points, and ``where`` says so.
    ``verdict`` is the verdict on this change; ``counts`` has the verdicts of all headline metrics.
    """

    variant: str
    verdict: Verdict
    figure: str
    where: str
    counts: list[tuple[Verdict, int]]
    strips: list[Strip]
    axis: RatioAxis


def cards(material: Material) -> list[Card]:
    """Return a card for each variant that was compared and is not broken, all on the same axis."""
    result = material.result
    by_name = {variant.name: variant.headlines for variant in material.answer.variants}
    compared = {name: findings for name in variants(result) if (findings := by_name.get(name, ()))}
    axis = RatioAxis.of(
        c for findings in compared.values() for finding in findings for c in finding.points
    )
    made = []
    for variant, findings in compared.items():
        if not result.broken(variant):
            number = Counter(
                finding.whole.verdict for finding in findings if finding.whole is not None
            )
            counts = [(verdict, number[verdict]) for verdict in VERDICTS if number[verdict]]
            strips = [_strip(finding, axis) for finding in findings]
            made.append(Card(variant, *_first(findings[0]), counts, strips, axis))
    return made


def _first(finding: MetricAnswer) -> tuple[Verdict, str, str]:
    """Return a verdict, its change, and where that is: over all points, or at the last with this
    verdict."""
    group = finding.group
    metric = finding.whole
    if metric is not None and metric.planned > 1:
        ends = "" if metric.ci is None or metric.exact else f" {interval(metric.ci)}"
        where = f"{group.name} over {points_text(metric)}{ends}"
        verdict = metric.verdict
        ratio = metric.ratio
    else:
        verdict = most_alarming(c.verdict for c in finding.points)
        last = next(c for c in reversed(finding.points) if c.verdict == verdict)
        at = f" at {point_text(last.point)}" if last.point else ""
        ends = "" if last.ci is None or last.exact else f" {interval(last.ci)}"
        where = f"{group.name}{at}{f': {change(last)}' if verdict == 'inconclusive' else ends}"
        ratio = last.ratio
    return verdict, percent(ratio) if ratio and verdict != "inconclusive" else "", where


def _strip(finding: MetricAnswer, axis: RatioAxis) -> Strip:
    group = finding.group
    rows = finding.points
    height = max(_LEAST_PX, min(_MOST_PX, _ROW_PX * len(rows) + 8))
    step = height / (len(rows) + 1)
    words = metric_sentence(finding).removeprefix(f"{finding.variant}: ")
    words = words.replace(f" points of {group.name}", " points").replace(f" on {group.name}", "")
    rows_of = [
        (round(step * (number + 1), 1), f"{point_text(c.point)}: {change(c)}, {c.verdict}", c)
        for number, c in enumerate(rows)
        if c.ratio is not None
    ]
    return Strip(group, finding.verdict, words, draw_as("strip", axis, rows_of), height)
