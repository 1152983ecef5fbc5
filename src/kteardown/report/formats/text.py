"""The report on a terminal. Colours show the verdicts, which are in the text too."""

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table as RichTable
from rich.text import Text

from kteardown.inputs.published import Posting
from kteardown.model.result import Result, Verdict
from kteardown.model.workload import Workload
from kteardown.report import contents
from kteardown.report.material import BothMaterial, Measured
from kteardown.report.sections.both_clocks_table import clock_faults, clock_notes, clock_tables
from kteardown.report.sections.fault_lines import FaultReport, fault_reports
from kteardown.report.sentence import VariantLine, lines
from kteardown.report.table import Block, Table
from kteardown.visible import on_one_line, visible

_GAP = 2
_FAULT_LINES = 24
STYLES: Mapping[Verdict | None, str] = {
    "broken": "bold white on red",
    "better": "green",
    "worse": "bold red",
    "mixed": "bold magenta",
    "same": "cyan",
    "inconclusive": "yellow",
    None: "",
}


def report(material: Measured, console: Console) -> None:
    """Print the report of a run; on both clocks both side by side, then the whole report of each."""
    if not isinstance(material, BothMaterial):
        render(material.result, material.workloads, material.reference, console)
        return
    result = material.result
    show_sentence(lines(material.both, material.workloads), console)
    console.print(Text(f"{result.experiment} on both clocks: {result.question}", style="bold"))
    console.print()
    show_both_clocks(material, console)
    for one in material.clocks:
        console.print()
        console.print(Text(one.title, style="bold underline"))
        console.print()
        render(one.result, one.workloads, one.reference, console, alone=False)


def show_both_clocks(material: BothMaterial, console: Console) -> None:
    """Print both clocks side by side."""
    both, workloads = material.both, material.workloads
    for line in clock_faults(both):
        console.print(Text(line.text, style=STYLES[line.tone]))
    for table in clock_tables(both, workloads):
        show(table, console)
    console.print()
    for note in clock_notes(both, workloads):
        console.print(Text(note, style="dim"))


def render(
    result: Result,
    workloads: Mapping[str, Workload],
    reference: Posting | None,
    console: Console,
    *,
    alone: bool = True,
) -> None:
    """Print the whole report. ``alone``: no other clock was measured.

    Tables are cut to the width of the console, which should be at least 80 columns.
    """
    show_sentence(lines(result, workloads), console)
    console.print(Text(f"{result.experiment}: {result.question}", style="bold"))
    found = contents.verdicts(result, workloads)
    if found:
        console.print()
    for line in found:
        console.print(Text(line.text, style=STYLES[line.tone]))
    for fault in fault_reports(result):
        if fault.lines:
            _show_fault(fault, console)
    room = None if console.options.ascii_only else (console.width, _GAP)
    for table in contents.all_tables(result, workloads, reference, room):
        show(table, console)
    show(contents.kernels_table(result), console)
    console.print()
    console.print(_facts(contents.facts(result, alone=alone)))
    console.print()
    console.print(Text("To repeat it:", style="bold"))
    console.print(Text(f"  {result.command}"), soft_wrap=True)


def show_sentence(lines: Sequence[VariantLine], console: Console) -> None:
    """Print the lines with which a report begins, and an empty line."""
    for line in lines:
        console.print(Text(line.text, style=STYLES[line.tone]))
    console.print()


def _show_fault(fault: FaultReport, console: Console) -> None:
    """Print what the kernel printed."""
    console.print()
    console.print(Text(f"The log of {fault.kernel}, {fault.source}:", style="bold"))
    for line in fault.lines[:_FAULT_LINES]:
        console.print(Text(f"  | {on_one_line(line)}"), soft_wrap=True)


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
    wrapped = _wrapped(block, width)
    grid = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    for n, name in enumerate(block.columns):
        justify: JustifyMethod = "left" if name in block.left else "right"
        grid.add_column(name, justify=justify, overflow="fold", width=wrapped.get(n))
    for row in block.rows:
        grid.add_row(*(Text(cell.text, style=STYLES[cell.tone]) for cell in row))
    return grid


def _wrapped(block: Block, width: int) -> dict[int, int]:
    """Return the width of the one column that is wrapped where a block is too wide, by its number.

    That is the widest column of words. Without this rich wraps several, and figures too.
    """
    excess = block.width(_GAP) - width
    texts = [n for n, name in enumerate(block.columns) if name in block.left and block.widths[n] > excess]
    if excess <= 0 or not texts:
        return {}
    widest = max(texts, key=lambda n: block.widths[n])
    words = [word for row in block.rows for word in row[widest].text.split()]
    return {widest: max(block.widths[widest] - excess, *map(len, words))}


def _facts(lines: list[tuple[str, str]]) -> RichTable:
    grid = RichTable.grid(padding=(0, _GAP, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in lines:
        grid.add_row(on_one_line(name), Text(visible(value)))
    return grid
