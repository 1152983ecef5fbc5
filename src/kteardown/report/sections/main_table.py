"""The main tables: a row per point with base, and for each variant its change and verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kteardown.model.result import Comparison, Result
from kteardown.model.workload import Workload
from kteardown.report.comparison_groups import Group, PointKey, headlines, point_cells, point_key, variants
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
