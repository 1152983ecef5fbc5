"""The page as Markdown that is readable as plain text too, with tables of at most 100 columns."""

import html
import re
from collections.abc import Iterable

from kteardown.model.clock import CLOCKS
from kteardown.report import contents
from kteardown.report.material import BothMaterial, Measured
from kteardown.report.publication import Publication
from kteardown.report.sections.both_clocks_table import clock_faults, clock_notes, clock_tables
from kteardown.report.sections.fault_lines import (
    fault_sentence,
    fault_source,
    reported_faults,
)
from kteardown.report.sentence import VariantLine, lines
from kteardown.report.table import Block, Table
from kteardown.visible import on_one_line, visible

_WIDTH = 100 - len("|  |")
_GAP = len(" | ")
# Commands in backquotes and addresses of the mail archive, which stay as they are.
_KEPT = r"(`kteardown [\w ./=,:-]+`|https://lore\.kernel\.org/[\w./@%+=-]+)"
# What Markdown would read as markup. Intervals such as [-61.2, -60.8] and names with underscores
# are not.
_MARKUP = re.compile(_KEPT + r"|^[#+-](?=\s)|[\\`*~]|\[(?![+-]?\d)|\](?=[(\[:])|(?<!\w)_|_(?!\w)")
# What services link or notify after they read the Markdown, so that a backslash does not stop them.
_LIVE = re.compile(
    _KEPT + r"|(?<!\w)[@!$%^~](?=\w)|@(?=[\w-]+\.\w)|#(?=\d)|:(?=//)|www(?=\.)|\bGH(?=-\d)",
    re.IGNORECASE | re.ASCII,
)
_NOTHING = "&#8203;"
"""A space without width, which ends a mention or an address."""


def render(publication: Publication) -> str:
    """Return the page of the command, the report of its run, or both."""
    parts = [publication.page] if publication.page else []
    if publication.material is not None:
        parts.append(report(publication.material))
    return "\n".join(parts)


def report(material: Measured, *, alone: bool = True) -> str:
    """Return the report of a run, with a newline at the end. ``alone``: no other clock was
    measured.

    On both clocks it has both side by side, then the whole report of each.
    """
    workloads = material.workloads
    result = material.result
    parts = [bold(lines(material.whole, workloads))]
    if isinstance(material, BothMaterial):
        parts += [
            f"# {plain(result.experiment)} on both clocks: {plain(result.question)}",
            listed(line.text for line in clock_faults(material.both)),
            *map(layout, clock_tables(material.both, workloads)),
            listed(clock_notes(material.both, workloads)),
        ]
        for clock_material in material.clocks:
            parts += [
                f"# {CLOCKS[clock_material.result.clock].capitalize()} alone",
                report(clock_material, alone=False).rstrip("\n"),
            ]
        return "\n\n".join(filter(None, parts)) + "\n"
    parts.append(f"## {plain(result.experiment)}: {plain(result.question)}")
    parts.append(listed(line.text for line in contents.verdicts(material)))
    for fault in reported_faults(result):
        if fault.excerpt:
            source = f"The whole console: {plain(fault_source(fault))}"
            parts.append(f"**{plain(fault_sentence(fault))}**\n\n{code(fault.excerpt)}\n\n{source}")
    parts += [layout(table) for table in contents.all_tables(material)]
    parts.append("### What was run")
    parts.append(layout(contents.kernels_table(result)))
    parts.append(listed(f"{name}: {value}" for name, value in contents.facts(result, alone=alone)))
    parts.append(f"To repeat it:\n\n{code([result.command])}")
    return "\n\n".join(filter(None, parts)) + "\n"


def listed(texts: Iterable[str]) -> str:
    """Return texts from outside as a list."""
    return "\n".join(f"- {plain(text)}" for text in texts)


def bold(answer: Iterable[VariantLine]) -> str:
    """Return the lines with which a report begins, as a list."""
    return "\n".join(f"- **{plain(line.text)}**" for line in answer)


def layout(table: Table) -> str:
    """Return one table under its title."""
    blocks = "\n\n".join(_block(block) for block in table.cut(_WIDTH, _GAP))
    notes = "".join(f"\n\n{plain(note)}" for note in table.notes)
    return f"**{plain(table.title)}**\n\n{blocks}{notes}"


def _block(block: Block) -> str:
    texts = [block.columns, *([cell.text for cell in row] for row in block.rows)]
    rows = [[plain(text).replace("|", "\\|") for text in row] for row in texts]
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    columns = [
        (width, name in block.left) for width, name in zip(widths, block.columns, strict=True)
    ]
    rules = ["-" * width if to_left else "-" * (width - 1) + ":" for width, to_left in columns]
    laid_out = []
    for row in (rows[0], rules, *rows[1:]):
        cells = zip(row, columns, strict=True)
        padded = [
            text.ljust(width) if to_left else text.rjust(width) for text, (width, to_left) in cells
        ]
        laid_out.append(f"| {' | '.join(padded)} |")
    return "\n".join(laid_out)


def plain(text: str) -> str:
    """Return a text from outside for a line of Markdown: nothing of it is markup, a link or a
    mention."""
    return _MARKUP.sub(lambda match: match[1] or f"\\{match[0]}", inert(text))


def inert(text: str) -> str:
    """Return a text from outside for a line of HTML: nothing of it is a tag, a link or a
    mention."""
    escaped = html.escape(on_one_line(text).strip(), quote=False)
    return _LIVE.sub(lambda match: match[1] or f"{match[0]}{_NOTHING}", escaped)


def code(texts: Iterable[str]) -> str:
    """Return ``texts`` as an indented block; a line break in one of them does not end it."""
    return "\n".join(f"    {line}" for text in texts for line in visible(text).split("\n"))
