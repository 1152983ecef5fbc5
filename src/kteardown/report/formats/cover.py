"""The text for a cover letter: what the change does, in sentences with figures, and their limits.

Plain ASCII text of at most 72 columns. The command that repeats the run, and names that are longer
than a line, are on lines of their own and are not broken.
"""

import textwrap
from collections.abc import Iterator, Sequence

from kteardown.judge.metrics import Group, headline_rows
from kteardown.model.judged import Comparison
from kteardown.model.result import Result
from kteardown.report.contents import as_sentence, limits
from kteardown.report.formatting import change, decimals, scale
from kteardown.report.material import BothMaterial, Measured
from kteardown.report.metrics import point_cells
from kteardown.report.prose import change_sentences
from kteardown.report.publication import Publication
from kteardown.report.sections.both_clocks_table import (
    clock_faults,
    clock_tables,
    least_seen,
    rate_sentences,
)
from kteardown.report.sections.fault_lines import fault_lines, reported_faults
from kteardown.report.sentence import lines
from kteardown.report.table import Block, Cell, Table
from kteardown.visible import on_one_line

NEEDS = ("material",)
WIDTH = 72
_GAP = 2
_FAULT_LINES = 24


def render(publication: Publication) -> str:
    """Return the whole text, with a newline at the end."""
    return of_run(publication.run)


def of_run(material: Measured) -> str:
    """Return the whole text, with a newline at the end; on both clocks it begins with how they
    relate."""
    failed, texts = failures_and_limits(material)
    parts = [
        said_lines(material),
        wrapped(material.result.question),
        *(wrapped(cell.text, "- ") for cell in failed),
        *quoted_logs(material),
    ]
    parts += [wrapped(" ".join(texts)) for texts in change_sentences(material)]
    parts += map(layout, tables(material))
    parts.append("\n".join(["Limits:", *(wrapped(text, "- ") for text in texts)]))
    parts.append(f"To repeat it, with kteardown:\n\n  {on_one_line(material.result.command)}")
    return "\n\n".join(parts) + "\n"


def failures_and_limits(material: Measured) -> tuple[list[Cell], list[str]]:
    """Return what failed, and what the figures are based on and do not show; of both clocks those
    of each, without what the other clock would add."""
    if not isinstance(material, BothMaterial):
        return fault_lines(material.result), limits(material.result)
    both = material.both
    workloads = material.workloads
    clock_limits = [
        text
        for clock_material in material.clocks
        for text in limits(clock_material.result, alone=False)
    ]
    pair = [least_seen(both, workloads), *rate_sentences(both, workloads), *both.notes]
    texts = [*clock_limits, *(as_sentence(text) for text in pair if text)]
    return clock_faults(both), list(dict.fromkeys(texts))


def said_lines(material: Measured) -> str:
    """Return the headline: a line for each variant."""
    said = lines(material.whole, material.workloads)
    return "\n".join(wrapped(line.text, "- ") for line in said)


def quoted_logs(material: Measured) -> Iterator[str]:
    """Yield what the kernel printed about each fault. It is a quotation: its lines are not
    wrapped."""
    for result in material.whole.results.values():
        for fault in reported_faults(result):
            if fault.excerpt:
                quoted = [f"  | {on_one_line(line)}".rstrip() for line in fault.excerpt]
                title = wrapped(f"The log of {fault.kernel}:")
                yield "\n".join([title, *quoted[:_FAULT_LINES]])


def tables(material: Measured) -> Iterator[Table]:
    """Yield a table for each headline metric and variant, narrow enough for a cover letter."""
    if isinstance(material, BothMaterial):
        yield from clock_tables(material.both, material.workloads, narrow=True)
        return
    for group, variant, rows, _ in headline_rows(material.result, material.workloads):
        if not material.result.broken(variant):
            yield _table(material.result, group, variant, rows)


def _table(result: Result, group: Group, variant: str, rows: Sequence[Comparison]) -> Table:
    medians = [side.compared for c in rows for side in (c.base, c.changed)]
    unit = scale(rows[0].unit, result.clock, medians)
    digits = decimals(rows)
    names, keys = point_cells([c.point for c in rows])
    cells = [
        (
            *key,
            unit.text(c.base.compared),
            unit.text(c.changed.compared),
            change(c, digits),
            c.verdict,
        )
        for key, c in zip(keys, rows, strict=True)
    ]
    block = Block.of((*names, "base", "changed", "change", "verdict"), cells, left=("verdict",))
    title = (
        f"{group.name} ({group.key}) with {variant}: "
        f"{'median ' if group.statistic == 'median' else ''}in {unit.unit}, {group.better} is "
        f"better, change with {rows[0].confidence * 100:.4g}% interval"
    )
    return Table(title, block)


def layout(table: Table) -> str:
    """Return the table under its title; of one that is too wide, each row has two lines."""
    block = table.cut(WIDTH, _GAP)[0]
    names = block.columns
    rows = [tuple(cell.text for cell in row) for row in block.rows]
    laid_out = [_aligned(block, names, rows)]
    if block.width(_GAP) > WIDTH:
        figures = [name for name in names if name in _FIGURES]
        first = next((n for n, name in enumerate(names) if name in figures), len(names))
        laid_out = []
        for row in rows:
            place = ", ".join(
                f"{name} {text}" for name, text in zip(names[:first], row, strict=False)
            )
            said = ", ".join(
                text if name in _FIGURES[2:] else f"{name} {text}"
                for name, text in zip(names[first:], row[first:], strict=True)
            )
            laid_out += [wrapped(place), wrapped(said, "    ")] if place else [wrapped(said)]
    return "\n".join([wrapped(table.title + ":"), "", *laid_out])


_FIGURES = ("base", "changed", "change", "verdict")
"""The columns of a table that are not the point."""


def _aligned(block: Block, names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    laid_out = []
    for row in (names, *rows):
        cells = zip(names, row, block.widths, strict=True)
        padded = [text.ljust(n) if name in block.left else text.rjust(n) for name, text, n in cells]
        laid_out.append((" " * _GAP).join(padded).rstrip())
    return "\n".join(laid_out)


def wrapped(text: str, first: str = "") -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )
