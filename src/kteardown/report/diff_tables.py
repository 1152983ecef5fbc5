"""Two results side by side as a reader sees them: sentences on what differs, then tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kteardown.report.comparison_groups import named
from kteardown.report.diff import Difference, Row, Told
from kteardown.report.formatting import place
from kteardown.report.table import Block, Cell, Table

_AGREE = {True: "overlap", False: "apart", None: "-"}


def passages(found: Difference) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Headings, each with its sentences."""
    yield "environment, A / B", found.environment or ("nothing that can matter differs",)
    yield "kernels, A / B", found.kernels or ("the same",)
    if found.only_a:
        yield "only in A", found.only_a
    if found.only_b:
        yield "only in B", found.only_b


def comparison_tables(found: Difference) -> list[Table]:
    """A table for each metric and variant that both have, a row a point."""
    return [
        _table(name, [row for row in found.rows if _title(row) == name])
        for name in dict.fromkeys(map(_title, found.rows))
    ]


def summary(rows: Sequence[Row]) -> str:
    """How many comparisons both have, and how they agree."""
    if not rows:
        return "no comparison is in both"
    apart = sum(row.agree is False for row in rows)
    other = sum(not row.same_verdict for row in rows)
    return (
        f"{len(rows)} comparisons in both: the intervals of {apart} lie apart, the verdicts of {other} differ"
    )


def _title(row: Row) -> str:
    return f"{row.workload}: {named(row.metric, row.statistic)}, {row.variant} against base"


def _table(title: str, rows: Sequence[Row]) -> Table:
    columns = ("point", "A", "verdict of A", "B", "verdict of B", "intervals", "base B / A")
    cells = tuple(
        (
            Cell(place(row.point)),
            Cell(_told(row.a)),
            Cell(row.a.verdict, row.a.tone),
            Cell(_told(row.b)),
            Cell(row.b.verdict, row.b.tone),
            Cell(_AGREE[row.agree]),
            Cell("-" if row.base_ratio is None else f"{row.base_ratio:.3f}"),
        )
        for row in rows
    )
    left = frozenset(("point", "verdict of A", "verdict of B", "intervals"))
    return Table(title, Block(columns, cells, left))


def _told(told: Told) -> str:
    if told.ratio is None:
        return "-"
    interval = "" if told.ci is None else " [{:+.2f}, {:+.2f}]".format(*(100 * (x - 1) for x in told.ci))
    return f"{100 * (told.ratio - 1):+.2f}%{interval}"
