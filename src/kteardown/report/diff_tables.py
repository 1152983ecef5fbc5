"""Two compared results as text: sentences about what differs, then tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kteardown.report.diff import ComparedRow, Difference, SideValue
from kteardown.report.formatting import point_text
from kteardown.report.metric_names import metric_label
from kteardown.report.table import Block, Table

_AGREE = {True: "overlap", False: "disjoint", None: "-"}


def passages(found: Difference) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield headings, each with its sentences."""
    yield "environment, A / B", found.environment or ("no difference that can matter",)
    yield "kernels, A / B", found.kernels or ("the same",)
    if found.only_a:
        yield "only in A", found.only_a
    if found.only_b:
        yield "only in B", found.only_b


def comparison_tables(found: Difference) -> list[Table]:
    """Return a table for each metric and variant that both results have, with a row for each point."""
    return [
        _table([row for row in found.rows if _key(row) == key])
        for key in dict.fromkeys(map(_key, found.rows))
    ]


def _key(row: ComparedRow) -> tuple[str, ...]:
    return row.workload, row.metric, row.statistic, row.variant, row.variant_b


def _title(row: ComparedRow) -> str:
    variant = row.variant if row.variant == row.variant_b else f"{row.variant} (A) and {row.variant_b} (B)"
    key = metric_label(row.metric, row.statistic)
    return f"{row.workload}: {row.name} ({key}), {variant} against base"


def _table(rows: Sequence[ComparedRow]) -> Table:
    columns = ("point", "A", "verdict of A", "B", "verdict of B", "intervals", "base B / A")
    cells = []
    for row in rows:
        sides = [text for side in (row.a, row.b) for text in (_change(side), (side.verdict, side.tone))]
        levels = None if row.base_ratio is None else f"{row.base_ratio:.3f}"
        cells.append((point_text(row.point), *sides, _AGREE[row.agree], levels))
    left = ("point", "verdict of A", "verdict of B", "intervals")
    return Table(_title(rows[0]), Block.of(columns, cells, left))


def _change(side: SideValue) -> str:
    if side.ratio is None:
        return "-"
    interval = "" if side.ci is None else " [{:+.2f}, {:+.2f}]".format(*(100 * (x - 1) for x in side.ci))
    return f"{100 * (side.ratio - 1):+.2f}%{interval}"
