"""The text for a cover letter: the result in lines, the tables that it is from, and their limits.

Plain ASCII text of at most 72 columns. The command that repeats the run, and names that are longer than a
line, are on lines of their own and are not broken.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from kteardown.model.result import Comparison, Result
from kteardown.report.comparison_groups import Group, headlines, point_cells, variants
from kteardown.report.formatting import change, decimals, scale
from kteardown.report.material import BothMaterial, Material
from kteardown.report.sections.both_clocks_table import (
    clock_faults,
    clock_tables,
    least_seen,
    rate_sentences,
)
from kteardown.report.sections.fault_lines import FaultReport, fault_lines, fault_reports, is_broken
from kteardown.report.sections.metric_table import brief_table
from kteardown.report.sentence import Line, lines
from kteardown.report.summary import as_sentence, limits
from kteardown.report.table import Block, Cell, Table
from kteardown.visible import on_one_line

WIDTH = 72
_GAP = 2
_FAULT_LINES = 24


def render(material: Material) -> str:
    """Return the whole text, with a newline at the end."""
    result = material.result
    parts = [_first(lines(result, material.workloads)), wrapped(result.question)]
    parts += [wrapped(cell.text, "- ") for cell in fault_lines(result)]
    parts += [_console(fault) for fault in fault_reports(result) if fault.lines]
    parts += [
        layout(table) for table in (brief_table(result, material.workloads), *tables(material)) if table
    ]
    parts.append("\n".join(["Limits:", *(wrapped(text, "- ") for text in limits(result))]))
    parts.append(f"To repeat it, with kteardown:\n\n  {on_one_line(result.command)}")
    return "\n\n".join(parts) + "\n"


def _console(fault: FaultReport) -> str:
    """Return what the kernel printed, as a quotation: its lines are not wrapped."""
    quoted = [f"  | {on_one_line(line)}".rstrip() for line in fault.lines[:_FAULT_LINES]]
    return "\n".join([wrapped(f"The log of {fault.kernel}:"), *quoted])


def render_both(material: BothMaterial) -> str:
    """Return the text of a run on both clocks: how the clocks relate, then the claims of each."""
    both, workloads = material.both, material.instructions.workloads
    result = material.instructions.result
    parts = [_first(lines(both, workloads)), wrapped(result.question)]
    parts += [wrapped(line.text, "- ") for line in clock_faults(both)]
    parts += [_console(fault) for one in both.results.values() for fault in fault_reports(one) if fault.lines]
    parts += [layout(table) for table in clock_tables(both, workloads, narrow=True)]
    parts.append("\n".join(["Limits:", *(wrapped(text, "- ") for text in _limits_of_both(material))]))
    parts.append(f"To repeat it, with kteardown:\n\n  {on_one_line(result.command)}")
    return "\n\n".join(parts) + "\n"


def _limits_of_both(material: BothMaterial) -> list[str]:
    """Return the limits of each clock, without what the other clock would add, and those of the pair."""
    both, workloads = material.both, material.instructions.workloads
    each = [text for one in material.clocks for text in limits(one.result, alone=False)]
    pair = [least_seen(both, workloads), *rate_sentences(both, workloads), *both.notes]
    return list(dict.fromkeys([*each, *(as_sentence(text) for text in pair if text)]))


def tables(material: Material) -> Iterator[Table]:
    """Yield a table for each headline metric and variant, narrow enough for a cover letter."""
    for group in headlines(material.result, material.workloads):
        for variant in variants(material.result):
            rows = group.of(variant)
            if rows and not is_broken(material.result, variant):
                yield _table(material.result, group, variant, rows)


def _table(result: Result, group: Group, variant: str, rows: Sequence[Comparison]) -> Table:
    medians = [side.compared for c in rows for side in (c.base, c.changed)]
    unit = scale(rows[0].unit, result.clock, medians)
    digits = decimals(rows)
    names, cells = point_cells([c.point for c in rows])
    block = Block(
        (*names, "base", "changed", "change", "verdict"),
        tuple(
            (
                *key,
                Cell(unit.text(c.base.compared)),
                Cell(unit.text(c.changed.compared)),
                Cell(change(c, digits)),
                Cell(c.verdict),
            )
            for key, c in zip(cells, rows, strict=True)
        ),
        left=frozenset(("verdict",)),
    )
    title = (
        f"{group.name} ({group.key}) with {variant}: {'median ' if group.statistic == 'median' else ''}"
        f"in {unit.unit}, {group.better} is better, change with {rows[0].confidence * 100:.4g}% interval"
    )
    return Table(title, block)


def layout(table: Table) -> str:
    """Return the table under its title.

    A table that is too wide is laid out with a paragraph for each row.
    """
    block = table.cut(WIDTH, _GAP)[0]
    lines = _lines(block) if block.width(_GAP) <= WIDTH else _paragraphs(block)
    return "\n".join([wrapped(table.title + ":"), "", *lines])


def _lines(block: Block) -> list[str]:
    rows = [block.columns, *(tuple(cell.text for cell in row) for row in block.rows)]
    return [
        (" " * _GAP)
        .join(
            text.ljust(width) if name in block.left else text.rjust(width)
            for text, width, name in zip(row, block.widths, block.columns, strict=True)
        )
        .rstrip()
        for row in rows
    ]


def _paragraphs(block: Block) -> list[str]:
    return [
        wrapped(", ".join(f"{name} {cell.text}" for name, cell in zip(block.columns, row, strict=True)), "* ")
        for row in block.rows
    ]


def _first(lines: Sequence[Line]) -> str:
    """Return the lines with which a report begins."""
    return "\n".join(wrapped(line.text, "- ") for line in lines)


def wrapped(text: str, first: str = "") -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )
