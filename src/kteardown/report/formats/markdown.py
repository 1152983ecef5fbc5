"""The report as Markdown that is readable as plain text too, with tables of at most 100 columns."""

import html
import re
from collections.abc import Iterable, Mapping

from kteardown.inputs.published import Posting
from kteardown.model.result import Result
from kteardown.model.workload import Workload
from kteardown.report import contents
from kteardown.report.material import BothMaterial, Measured
from kteardown.report.sections.both_clocks_table import clock_faults, clock_notes, clock_tables
from kteardown.report.sections.fault_lines import FaultReport, fault_reports
from kteardown.report.sentence import VariantLine, lines
from kteardown.report.table import Block, Table
from kteardown.visible import on_one_line, visible

_WIDTH = 100 - len("|  |")
_GAP = len(" | ")
# Commands in backquotes and addresses of the mail archive, which stay as they are.
_KEPT = r"(`kteardown [\w ./=,:-]+`|https://lore\.kernel\.org/[\w./@%+=-]+)"
# What Markdown would read as markup. Intervals such as [-61.2, -60.8] and names with underscores are not.
_MARKUP = re.compile(_KEPT + r"|^[#+-](?=\s)|[\\`*~]|\[(?![+-]?\d)|\](?=[(\[:])|(?<!\w)_|_(?!\w)")
# What services link or notify after they read the Markdown, so that a backslash does not stop them.
_LIVE = re.compile(
    _KEPT + r"|(?<!\w)[@!$%^~](?=\w)|@(?=[\w-]+\.\w)|#(?=\d)|:(?=//)|www(?=\.)|\bGH(?=-\d)",
    re.IGNORECASE | re.ASCII,
)
_NOTHING = "&#8203;"
"""A space without width, which ends a mention or an address."""


def report(material: Measured) -> str:
    """Return the report of a run; on both clocks both side by side, then the whole report of each."""
    if not isinstance(material, BothMaterial):
        return render(material.result, material.workloads, material.reference)
    both, workloads, result = material.both, material.workloads, material.result
    parts = [
        bold(lines(both, workloads)),
        f"# {plain(result.experiment)} on both clocks: {plain(result.question)}",
        listed(line.text for line in clock_faults(both)),
        *map(layout, clock_tables(both, workloads)),
        listed(clock_notes(both, workloads)),
    ]
    for one in material.clocks:
        parts.append(f"# {one.title}")
        parts.append(render(one.result, one.workloads, one.reference, alone=False).rstrip("\n"))
    return "\n\n".join(filter(None, parts)) + "\n"


def render(
    result: Result, workloads: Mapping[str, Workload], reference: Posting | None, *, alone: bool = True
) -> str:
    """Return the whole report, with a newline at the end. ``alone``: no other clock was measured."""
    parts = [bold(lines(result, workloads))]
    parts.append(f"## {plain(result.experiment)}: {plain(result.question)}")
    parts.append(listed(line.text for line in contents.verdicts(result, workloads)))
    parts += [_console(fault) for fault in fault_reports(result) if fault.lines]
    parts += [layout(table) for table in contents.all_tables(result, workloads, reference)]
    parts.append("### What was run")
    parts.append(layout(contents.kernels_table(result)))
    parts.append(listed(f"{name}: {value}" for name, value in contents.facts(result, alone=alone)))
    parts.append(f"To repeat it:\n\n{code([result.command])}")
    return "\n\n".join(filter(None, parts)) + "\n"


def listed(texts: Iterable[str]) -> str:
    """Return texts from outside as a list."""
    return "\n".join(f"- {plain(text)}" for text in texts)


def _console(fault: FaultReport) -> str:
    """Return what the kernel printed, as an indented block."""
    return f"**{plain(fault.title.text)}**\n\n{code(fault.lines)}\n\nThe whole console: {plain(fault.source)}"


def bold(lines: Iterable[VariantLine]) -> str:
    """Return the lines with which a report begins, as a list."""
    return "\n".join(f"- **{plain(line.text)}**" for line in lines)


def layout(table: Table) -> str:
    """Return one table under its title."""
    blocks = "\n\n".join(_block(block) for block in table.cut(_WIDTH, _GAP))
    notes = "".join(f"\n\n{plain(note)}" for note in table.notes)
    return f"**{plain(table.title)}**\n\n{blocks}{notes}"


def _block(block: Block) -> str:
    rows = [[_cell(name) for name in block.columns]]
    rows += [[_cell(cell.text) for cell in row] for row in block.rows]
    left = [name in block.left for name in block.columns]
    widths = [max(3, *(len(row[column]) for row in rows)) for column in range(len(left))]
    rules = [
        "-" * width if to_left else "-" * (width - 1) + ":"
        for width, to_left in zip(widths, left, strict=True)
    ]
    lines = [
        [
            text.ljust(width) if to_left else text.rjust(width)
            for text, width, to_left in zip(row, widths, left, strict=True)
        ]
        for row in [rows[0], rules, *rows[1:]]
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(text: str) -> str:
    return plain(text).replace("|", "\\|")


def plain(text: str) -> str:
    """Return a text from outside for a line of Markdown: nothing of it is markup, a link or a mention."""
    return _MARKUP.sub(lambda found: found[1] or f"\\{found[0]}", inert(text))


def inert(text: str) -> str:
    """Return a text from outside for a line of HTML: nothing of it is a tag, a link or a mention."""
    escaped = html.escape(on_one_line(text).strip(), quote=False)
    return _LIVE.sub(lambda found: found[1] or f"{found[0]}{_NOTHING}", escaped)


def code(lines: Iterable[str]) -> str:
    """Return ``lines`` as an indented block; a line break in one of them does not end it."""
    return "\n".join(f"    {line}" for text in lines for line in visible(text).split("\n"))
