"""The main tables: a row per point with base, and each variant with its change and verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kteardown.model.result import Comparison, Result
from kteardown.model.workload import Workload
from kteardown.report.comparison_groups import Group, headlines, place_of, point_cells, variants
from kteardown.report.formatting import Scale, change, decimals, interval, probability, scale, share
from kteardown.report.table import Block, Cell, Table

Interval = tuple[float, float] | None


def seed_tables(result: Result, workloads: Mapping[str, Workload]) -> list[Table]:
    """A table for each headline metric, and for each percentile of one."""
    return [_table(result, group) for group in headlines(result, workloads)]


def _table(result: Result, group: Group) -> Table:
    # Base is shown over the boots of the variant that lost none of them.
    points = {place_of(c): c for c in group.comparisons}
    for c in group.comparisons:
        points[place_of(c)] = max(points[place_of(c)], c, key=lambda one: one.base.boots)
    medians = [side.compared for c in group.comparisons for side in (c.base, c.changed)]
    unit = scale(group.comparisons[0].unit, result.clock, medians)
    digits = decimals(group.comparisons)
    names, key_rows = point_cells([dict(at) for at in points])
    keys = Block(
        columns=(*names, "base"),
        rows=tuple(
            (*cells, Cell(unit.text(c.base.compared)))
            for cells, c in zip(key_rows, points.values(), strict=True)
        ),
    )
    wall = result.clock == "wall"
    blocks = []
    for variant in variants(result):
        by_point = {place_of(c): c for c in group.of(variant)}
        rows = tuple(_row(by_point.get(at), unit, digits, wall=wall) for at in points)
        columns = ("changed", variant, *(("mde", "rank p") if wall else ()), "verdict")
        blocks.append(Block(columns, rows, left=frozenset(("verdict",))))
    confidence = f"{group.comparisons[0].confidence * 100:.4g}%"
    title = (
        f"{group.workload}: {group.name} in {unit.unit}, {group.comparisons[0].better} is better; "
        f"{'median, ' if group.statistic == 'median' else ''}change with {confidence} interval"
    )
    return Table(title, keys, tuple(blocks), _notes(group, wall=wall), _nulls(points.values(), digits))


def _row(comparison: Comparison | None, unit: Scale, digits: int, *, wall: bool) -> tuple[Cell, ...]:
    if comparison is None:
        return (Cell("-"),) * (5 if wall else 3)
    beside = (Cell(share(comparison.mde)), Cell(probability(comparison.p_rank))) if wall else ()
    return (
        Cell(unit.text(comparison.changed.compared)),
        Cell(change(comparison, digits), comparison.verdict),
        *beside,
        Cell(comparison.verdict, comparison.verdict),
    )


def _nulls(points: Iterable[Comparison], digits: int) -> Block | None:
    """What base shows against itself, and with its code moved: a column for each that was measured."""
    found = list(points)
    columns: dict[str, list[Interval]] = {
        "A/A": [c.null_ci for c in found],
        "layout": [c.layout_ci for c in found],
    }
    shown = {name: cis for name, cis in columns.items() if any(cis)}
    if not shown:
        return None
    cells = [[Cell(interval(ci, digits) if ci else "-") for ci in cis] for cis in shown.values()]
    return Block(tuple(shown), tuple(zip(*cells, strict=True)))


def _notes(group: Group, *, wall: bool) -> tuple[str, ...]:
    """Why verdicts are what they are, and what could have been seen at all."""
    notes = []
    for verdict in ("worse", "better", "inconclusive"):
        reasons = Counter(c.reason for c in group.comparisons if c.verdict == verdict and not c.exact)
        notes += [f"{verdict} {count}x: {reason}" for reason, count in sorted(reasons.items()) if reason]
    same = [c for c in group.comparisons if c.verdict == "same"]
    for reason, count in sorted(Counter(c.reason for c in same).items()):
        ps = [c.p_same for c in same if c.reason == reason and c.p_same is not None and not c.exact]
        tests = f" (two one-sided tests: p {_at_most(max(ps))})" if ps else ""
        notes.append(f"same {count}x: {reason}{tests}")
    mdes = [c.mde for c in group.comparisons if c.mde is not None and not c.exact]
    if mdes and not wall:
        low, high = share(min(mdes)), share(max(mdes))
        span = low if low == high else f"{low} to {high}"
        notes.append(f"a change of {span} would have been found four times in five")
    far = sum(c.outliers > 0 for c in group.comparisons)
    if far:
        notes.append(f"{far} of {len(group.comparisons)} comparisons have boots far from the others, below")
    return tuple(notes)


def _at_most(p: float) -> str:
    return "below 0.001" if p < 0.001 else f"at most {probability(p)}"
