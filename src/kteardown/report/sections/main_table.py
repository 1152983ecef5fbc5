"""The tables of the headline metrics: over all points, and a row per point with base and each variant."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kteardown.model.result import Comparison, MetricVerdict, Result
from kteardown.model.workload import Workload
from kteardown.report.comparison_groups import (
    Group,
    PointKey,
    headlines,
    leading,
    metric_change,
    point_cells,
    point_key,
    points_of,
    variants,
    verdict_of,
)
from kteardown.report.formatting import (
    Scale,
    change,
    decimals,
    detectable,
    detectable_span,
    interval,
    probability,
    scale,
    with_remedy,
)
from kteardown.report.sections.fault_lines import is_broken
from kteardown.report.table import Block, Table, Text


def headline_tables(result: Result, workloads: Mapping[str, Workload]) -> list[Table]:
    """Return a table for each headline metric and each of its percentiles."""
    return [_table(result, group) for group in headlines(result, workloads)]


def _table(result: Result, group: Group) -> Table:
    # Base is shown over the most boots: those of a variant that has none missing.
    points: dict[PointKey, Comparison] = {}
    for c in group.comparisons:
        key = point_key(c.point)
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
        by_point = {point_key(c.point): c for c in group.of(variant)}
        columns = ("changed", variant, *(("mde", "rank p") if wall else ()), "verdict")
        cells = [_row(by_point.get(at), unit, digits, wall=wall) for at in points]
        blocks.append(Block.of(columns, cells, left=("verdict",)))
    confidence = f"{group.comparisons[0].confidence * 100:.4g}%"
    title = (
        f"{group.workload}: {group.name} ({group.key}) in {unit.unit}, {group.better} is better; "
        f"{'median, ' if group.statistic == 'median' else ''}change with {confidence} interval"
    )
    return Table(title, keys, tuple(blocks), _notes(group, wall=wall), _nulls(points.values(), digits))


def _row(c: Comparison | None, unit: Scale, digits: int, *, wall: bool) -> Sequence[Text]:
    if c is None:
        return (None,) * (5 if wall else 3)
    extra = (detectable(c.mde), probability(c.p_rank)) if wall else ()
    size = (change(c, digits), c.verdict)
    return (unit.text(c.changed.compared), size, *extra, (c.verdict, c.verdict))


def _nulls(points: Iterable[Comparison], digits: int) -> Block | None:
    """Return the columns of the twins: the intervals of the A/A twin and layout twin that were measured."""
    twins = [(c.null_ci, c.layout_ci) for c in points]
    shown = [n for n in (0, 1) if any(cis[n] for cis in twins)]
    rows = [[interval(ci, digits) if (ci := cis[n]) else None for n in shown] for cis in twins]
    return Block.of([("A/A", "layout")[n] for n in shown], rows) if shown else None


def _notes(group: Group, *, wall: bool) -> tuple[str, ...]:
    """Return the reasons of the verdicts and the smallest detectable change."""
    notes = []
    for verdict in ("broken", "worse", "better", "inconclusive"):
        reasons = Counter(c.reason for c in group.comparisons if c.verdict == verdict and not c.exact)
        notes += [
            f"{count} {verdict}: {with_remedy(reason)}" for reason, count in sorted(reasons.items()) if reason
        ]
    same = [c for c in group.comparisons if c.verdict == "same"]
    for reason, count in sorted(Counter(c.reason for c in same).items()):
        ps = [c.p_same for c in same if c.reason == reason and c.p_same is not None and not c.exact]
        most = max(ps, default=0.0)
        tests = f" (TOST p {'< 0.001' if most < 0.001 else f'<= {probability(most)}'})" if ps else ""
        notes.append(f"{count} same: {reason}{tests}")
    mdes = [c.mde for c in group.comparisons if c.mde is not None and not c.exact]
    if mdes and not wall:
        notes.append(f"smallest detectable change (80% power): {detectable_span(mdes)}")
    with_outliers = sum(c.outliers > 0 for c in group.comparisons)
    if with_outliers:
        notes.append(
            f"{with_outliers} of {len(group.comparisons)} comparisons have outlier boots, listed below"
        )
    return tuple(notes)


_COLUMNS = ("metric", "variant", "points", "boots", "change", "A/A", "layout", "mde", "p", "verdict")
_EXPLAINED = ("inconclusive", "mixed")
_CORRECTED = (
    "geometric mean over points and boots of changed / base (points compare medians over boots); p: after "
    "the correction over headline metrics and variants"
)


def brief_table(result: Result, workloads: Mapping[str, Workload]) -> Table | None:
    """Return a row for each headline metric and variant that is not broken, without tests; None if empty."""
    rows = []
    for group in headlines(result, workloads):
        for variant in variants(result):
            mine, metric = group.of(variant), verdict_of(result, group, variant)
            if mine and not is_broken(result, variant):
                verdict = leading(metric, mine)
                size = metric_change(metric, mine) if metric else "-"
                points = points_of(metric) if metric else f"{len(mine)} points"
                rows.append((group.name, variant, (size, verdict), points, (verdict, verdict)))
    columns = ("metric", "variant", "change", "points", "verdict")
    return Table("Headline metrics", Block.of(columns, rows, left=columns)) if rows else None


def metric_tables(result: Result, workloads: Mapping[str, Workload]) -> list[Table]:
    """Return the table; empty if no headline metric has more than one point."""
    found = [
        (group.name, metric, metric_change(metric, rows))
        for group in headlines(result, workloads)
        for variant in variants(result)
        if (rows := group.of(variant)) and (metric := verdict_of(result, group, variant)) is not None
    ]
    if not any(metric.planned > 1 for _, metric, _ in found):
        return []
    cells = [_over_all_points(*one) for one in found]
    used = [n for n in range(len(_COLUMNS)) if any(row[n] for row in cells)]

    def block(first: int, last: int) -> Block:
        mine = [n for n in used if first <= n < last]
        rows = [[row[n] for n in mine] for row in cells]
        return Block.of([_COLUMNS[n] for n in mine], rows, left=("metric", "variant", "verdict"))

    reasons: dict[str, dict[str, None]] = {}
    for name, m, _ in found:
        if m.verdict in _EXPLAINED and m.reason:
            reasons.setdefault(m.reason, {})[name] = None
    words = tuple(f"{', '.join(names)}: {with_remedy(reason)}" for reason, names in reasons.items())
    confidence = f"{found[0][1].confidence * 100:.4g}%"
    title = f"Headline metrics over all their points, change with {confidence} interval"
    blocks = tuple(one for one in (block(2, 5), block(5, 7), block(7, 10)) if one.columns)
    return [Table(title, block(0, 2), blocks, (_CORRECTED, *words))]


def _over_all_points(name: str, metric: MetricVerdict, change: str) -> Sequence[Text]:
    planned = f"{metric.points}" + ("" if metric.points == metric.planned else f" of {metric.planned}")
    twins = [interval(ci) if ci else None for ci in (metric.null_ci, metric.layout_ci)]
    mde = None if metric.exact or metric.mde is None else detectable(metric.mde)
    p = None if metric.exact or metric.p_corrected is None else probability(metric.p_corrected)
    verdict = metric.verdict
    first = (name, metric.variant, planned, str(metric.boots), (change, verdict))
    return (*first, *twins, mde, p, (verdict, verdict))
