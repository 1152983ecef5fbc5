"""What a command prints of a run that it has measured: the most important of its report, in a few lines.

``kteardown report`` has the rest.
"""

from collections.abc import Callable
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from kteardown.report.formats import text
from kteardown.report.material import BothMaterial, Measured
from kteardown.report.sections.both_clocks_table import clock_faults, clock_summary
from kteardown.report.sections.fault_lines import fault_lines
from kteardown.report.sections.growth_table import law_tables
from kteardown.report.sections.main_table import brief_table
from kteardown.report.sentence import lines
from kteardown.report.table import Block, Table

LINES = 45
"""At most as many lines are printed."""
_FAULTS = 3


def render(material: Measured, console: Console) -> None:
    """Print the result in lines, the headline metrics, one growth law, and where the rest is."""
    result, workloads = material.result, material.workloads
    answer, laws = lines(material.answer, workloads), law_tables(result, workloads)[:1]
    if isinstance(material, BothMaterial):
        faults, table = clock_faults(material.both), clock_summary(material.both, workloads)
    else:
        faults, table = fault_lines(result), brief_table(result, workloads)

    def show(most: int) -> None:
        text.show_sentence(answer[:most], console)
        if len(answer) > most:
            console.print(f"and {len(answer) - most} more variants")
        console.print(Text(f"{result.experiment}: {result.question}", style="bold"))
        for fault in faults[: min(most, _FAULTS)]:
            console.print(Text(fault.text, style=text.STYLES[fault.tone]))
        if table:
            text.show(first_rows(_narrow(table, console.width), most), console)
        for law in laws:
            text.show(first_rows(replace(law, blocks=law.blocks[:1], notes=()), most), console)
        console.print()
        console.print(f"The whole report: kteardown report {material.name}", soft_wrap=True)
        page = f"As a page: kteardown report {material.name} --format html; all runs: kteardown serve"
        console.print(page, soft_wrap=True)

    fitted(show, console, LINES)


def _narrow(table: Table, width: int) -> Table:
    """Return a table of one block without the points, which the lines have too, if it is too wide."""
    block = table.keys
    kept = [n for n, name in enumerate(block.columns) if name != "points" or block.width(2) <= width]
    columns = tuple(block.columns[n] for n in kept)
    rows = tuple(tuple(row[n] for n in kept) for row in block.rows)
    return replace(table, keys=replace(block, columns=columns, rows=rows))


def fitted(show: Callable[[int], None], console: Console, most: int) -> None:
    """Print what ``show`` prints with as many rows of each table as ``most`` lines have room for."""
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
