"""The changes from base as tables: in short, over all points, for each point, and in full."""

from collections import Counter
from collections.abc import Mapping, Sequence

from kteardown.judge.deciding import is_far_from_no_change
from kteardown.judge.metrics import Group, PointKey, groups, headline_rows, variants
from kteardown.judge.verdicts import most_alarming
from kteardown.model.judged import Comparison
from kteardown.model.result import Result
from kteardown.model.workload import Workload
from kteardown.report.formatting import (
    WORDS,
    change,
    decimals,
    detectable,
    detectable_span,
    interval,
    point_text,
    probability,
    scale,
    with_remedy,
)
from kteardown.report.material import Material
from kteardown.report.metrics import metric_change, point_cells, points_text, verdict_text
from kteardown.report.prose import why_unsure
from kteardown.report.table import Block, Cell, LongRow, LongRows, LongTable, Table, Text


def headline_table(result: Result, group: Group) -> Table:
    """Return the table of a headline metric or one of its percentiles, with a row for each
    point."""
    # Base is shown over the most boots: those of a variant that has none missing.
    points: dict[PointKey, Comparison] = {}
    for c in group.comparisons:
        key = tuple(c.point.items())
        points[key] = max(points.get(key, c), c, key=lambda comparison: comparison.base.boots)
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
        for compared in map(by_point.get, points):
            if compared is None:
                cells.append((None,) * (5 if wall else 3))
                continue
            tests = (detectable(compared.mde), probability(compared.p_rank)) if wall else ()
            size = (change(compared, digits), compared.verdict)
            judged = (verdict_text(compared, compared.base.boots), compared.verdict)
            cells.append((unit.text(compared.changed.compared), size, *tests, judged))
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
    judged = []
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
            judged.append((group.name, m))
    if not any(m.planned > 1 for _, m in judged):
        return []
    used = [n for n in range(len(_COLUMNS)) if any(row[n] for row in cells)]

    def block(first: int, last: int) -> Block:
        mine = [n for n in used if first <= n < last]
        rows = [[row[n] for n in mine] for row in cells]
        return Block.of([_COLUMNS[n] for n in mine], rows, left=("metric", "variant", "verdict"))

    reasons: dict[str, dict[str, None]] = {}
    for name, m in judged:
        if m.verdict in _EXPLAINED and m.reason:
            reasons.setdefault(why_unsure(m, result.clock), {})[name] = None
    words = tuple(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
    confidence = f"{judged[0][1].confidence * 100:.4g}%"
    title = f"Headline metrics over all their points, change with {confidence} interval"
    blocks = tuple(part for part in (block(2, 5), block(5, 7), block(7, 10)) if part.columns)
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
