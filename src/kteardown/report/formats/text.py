"""The report on a terminal. Colours show the verdicts, which are in the text too."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table as RichTable
from rich.text import Text

from kteardown.judge.verdicts import STYLES
from kteardown.model.clock import CLOCKS
from kteardown.paths import program
from kteardown.report import contents
from kteardown.report.material import BothMaterial, Measured
from kteardown.report.sections.both_clocks_table import (
    clock_faults,
    clock_notes,
    clock_summary,
    clock_tables,
)
from kteardown.report.sections.changes import brief_table
from kteardown.report.sections.events import counted_events
from kteardown.report.sections.fault_lines import fault_lines, fault_source, reported_faults
from kteardown.report.sections.growth import law_tables
from kteardown.report.sections.levels import level_tables, waited_tables
from kteardown.report.sentence import VariantLine, lines
from kteardown.report.table import Block, Table
from kteardown.visible import on_one_line, visible

_GAP = 2
_FAULT_LINES = 24


def report(material: Measured, console: Console, *, alone: bool = True) -> None:
    """Print the report of a run; on both clocks both side by side, then the whole report of each.

    ``alone``: no other clock was measured. Tables are cut to the width of the console, which should
    be at least 80 columns.
    """
    result = material.result
    show_sentence(lines(material.whole, material.workloads), console)
    if isinstance(material, BothMaterial):
        console.print(Text(f"{result.experiment} on both clocks: {result.question}", style="bold"))
        console.print()
        show_both_clocks(material, console)
        for clock_material in material.clocks:
            console.print()
            console.print(
                Text(
                    f"{CLOCKS[clock_material.result.clock]} alone".capitalize(),
                    style="bold underline",
                )
            )
            console.print()
            report(clock_material, console, alone=False)
        return
    console.print(Text(f"{result.experiment}: {result.question}", style="bold"))
    verdict_lines = contents.verdicts(material)
    if verdict_lines:
        console.print()
    for line in verdict_lines:
        console.print(Text(line.text, style=STYLES[line.tone]))
    for fault in reported_faults(result):
        if fault.excerpt:
            console.print()
            console.print(Text(f"The log of {fault.kernel}, {fault_source(fault)}:", style="bold"))
        for logged in fault.excerpt[:_FAULT_LINES]:
            console.print(Text(f"  | {on_one_line(logged)}"), soft_wrap=True)
    room = None if console.options.ascii_only else (console.width, _GAP)
    for table in (*contents.all_tables(material, room), contents.kernels_table(result)):
        show(table, console)
    facts = RichTable.grid(padding=(0, _GAP, 0, 0))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in contents.facts(result, alone=alone):
        facts.add_row(on_one_line(name), Text(visible(value)))
    console.print()
    console.print(facts)
    console.print()
    console.print(Text("To repeat it:", style="bold"))
    console.print(Text(f"  {result.command}"), soft_wrap=True)


def show_both_clocks(material: BothMaterial, console: Console) -> None:
    """Print both clocks side by side."""
    both = material.both
    workloads = material.workloads
    for line in clock_faults(both):
        console.print(Text(line.text, style=STYLES[line.tone]))
    for table in clock_tables(both, workloads):
        show(table, console)
    console.print()
    for note in clock_notes(both, workloads):
        console.print(Text(note, style="dim"))


def show_sentence(answer: Sequence[VariantLine], console: Console) -> None:
    """Print the lines with which a report begins, and an empty line."""
    for line in answer:
        console.print(Text(line.text, style=STYLES[line.tone]))
    console.print()


def show(table: Table, console: Console) -> None:
    """Print one table after an empty line, cut to the width of the console."""
    console.print()
    console.print(Text(table.title, style="bold"))
    for number, block in enumerate(table.cut(console.width, _GAP)):
        if number:
            console.print()
        console.print(_block(block, console.width))
    for note in table.notes:
        console.print(Text(note, style="dim"))


def _block(block: Block, width: int) -> RichTable:
    # Where a block is too wide, its widest column of words is wrapped; rich wraps several, and
    # figures too.
    excess = block.width(_GAP) - width
    widths = dict[int, int]()
    texts = [
        n for n, name in enumerate(block.columns) if name in block.left and block.widths[n] > excess
    ]
    if excess > 0 and texts:
        widest = max(texts, key=lambda n: block.widths[n])
        words = [word for row in block.rows for word in row[widest].text.split()]
        widths[widest] = max(block.widths[widest] - excess, *map(len, words))
    grid = RichTable(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0)
    )
    for n, name in enumerate(block.columns):
        justify: JustifyMethod = "left" if name in block.left else "right"
        grid.add_column(name, justify=justify, overflow="fold", width=widths.get(n))
    for row in block.rows:
        grid.add_row(*(Text(cell.text, style=STYLES[cell.tone]) for cell in row))
    return grid


LINES = 45
"""At most as many lines are printed."""
_FAULTS = 3


def brief(material: Measured, console: Console) -> None:
    """Print the result in lines, the headline metrics, one growth law, and where the rest is."""
    result = material.result
    workloads = material.workloads
    answer = lines(material.whole, workloads)
    laws = law_tables(material.clocks[0])[:1]
    if isinstance(material, BothMaterial):
        faults = clock_faults(material.both)
        table = clock_summary(material.both, workloads)
    else:
        faults = fault_lines(result)
        (table, *_) = (
            [brief_table(result, workloads)]
            if result.comparisons
            else [*level_tables(result, workloads), None]
        )

    if table and table.keys.width(_GAP) > console.width:
        # Without the points, which the lines have too.
        block = table.keys
        kept = [n for n, name in enumerate(block.columns) if name != "points"]
        rows = [[row[n] for n in kept] for row in block.rows]
        table = replace(table, keys=Block.of([block.columns[n] for n in kept], rows, block.left))

    def show_all(most: int) -> None:
        show_sentence(answer[:most], console)
        if len(answer) > most:
            what = "variants" if result.comparisons else "sentences"
            console.print(f"and {len(answer) - most} more {what}")
        console.print(Text(f"{result.experiment}: {result.question}", style="bold"))
        for fault in faults[: min(most, _FAULTS)]:
            console.print(Text(fault.text, style=STYLES[fault.tone]))
        if table:
            show(first_rows(table, most), console)
        waits = counted_events(result) if result.comparisons else waited_tables(result)
        for counts in waits[:1]:
            show(first_rows(counts, most), console)
        for law in laws:
            show(first_rows(replace(law, blocks=law.blocks[:1], notes=()), most), console)
        console.print()
        console.print(f"The whole report: {program()} report {material.name}", soft_wrap=True)
        page = f"As a page: {program()} report {material.name} --format html"
        console.print(f"{page}; all runs: kteardown site --to FOLDER", soft_wrap=True)

    fitted(show_all, console, LINES)


def fitted(show: Callable[[int], None], console: Console, most: int) -> None:
    """Print what ``show`` prints with as many rows of each table as ``most`` lines have room
    for."""
    for rows in range(most, 0, -1):
        with console.capture() as made:
            show(rows)
        if made.get().count("\n") <= most:
            break
    console.file.write(made.get())


def first_rows(table: Table, most: int) -> Table:
    """Return the table with its first rows, and a note of how many more there are."""

    def cut(block: Block) -> Block:
        return replace(block, rows=block.rows[:most])

    more = len(table.keys.rows) - most
    notes = (f"and {more} more rows",) if more > 0 else ()
    blocks = tuple(map(cut, table.blocks))
    return replace(table, keys=cut(table.keys), blocks=blocks, notes=(*table.notes, *notes))
