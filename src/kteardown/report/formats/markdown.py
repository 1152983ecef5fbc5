"""The report as Markdown that is readable as plain text too, with tables of at most 100 columns.

Also as a comment for GitHub, GitLab and other trackers: the sentence, what failed and the headline metrics
are visible; consoles, points, laws and the host are folded. What does not fit into the limit of these
services is left out, the last parts first, and counted.
"""

import html
import re
from collections.abc import Iterable, Sequence

from kteardown.model.clock import CLOCKS
from kteardown.model.result import Result
from kteardown.report import contents
from kteardown.report.contents import limits
from kteardown.report.material import BothMaterial, Measured
from kteardown.report.sections.both_clocks_table import clock_faults, clock_notes, clock_tables
from kteardown.report.sections.changes import brief_table
from kteardown.report.sections.fault_lines import (
    fault_sentence,
    fault_source,
    reported_faults,
    uncompared_sentences,
)
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


def report(material: Measured, *, alone: bool = True) -> str:
    """Return the report of a run, with a newline at the end. ``alone``: no other clock was measured.

    On both clocks it has both side by side, then the whole report of each.
    """
    workloads, result = material.workloads, material.result
    parts = [bold(lines(material.answer, workloads))]
    if isinstance(material, BothMaterial):
        parts += [
            f"# {plain(result.experiment)} on both clocks: {plain(result.question)}",
            listed(line.text for line in clock_faults(material.both)),
            *map(layout, clock_tables(material.both, workloads)),
            listed(clock_notes(material.both, workloads)),
        ]
        for one in material.clocks:
            parts += [
                f"# {CLOCKS[one.result.clock].capitalize()} alone",
                report(one, alone=False).rstrip("\n"),
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


def bold(lines: Iterable[VariantLine]) -> str:
    """Return the lines with which a report begins, as a list."""
    return "\n".join(f"- **{plain(line.text)}**" for line in lines)


def layout(table: Table) -> str:
    """Return one table under its title."""
    blocks = "\n\n".join(_block(block) for block in table.cut(_WIDTH, _GAP))
    notes = "".join(f"\n\n{plain(note)}" for note in table.notes)
    return f"**{plain(table.title)}**\n\n{blocks}{notes}"


def _block(block: Block) -> str:
    texts = [block.columns, *([cell.text for cell in row] for row in block.rows)]
    rows = [[plain(text).replace("|", "\\|") for text in row] for row in texts]
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    columns = [(width, name in block.left) for width, name in zip(widths, block.columns, strict=True)]
    rules = ["-" * width if to_left else "-" * (width - 1) + ":" for width, to_left in columns]
    lines = []
    for row in (rows[0], rules, *rows[1:]):
        cells = zip(row, columns, strict=True)
        padded = [text.ljust(width) if to_left else text.rjust(width) for text, (width, to_left) in cells]
        lines.append(f"| {' | '.join(padded)} |")
    return "\n".join(lines)


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


COMMENT_LIMIT = 65_536
"""The largest comment that GitHub takes, in characters; GitLab takes more."""
_NOTE = 100
"""Characters for the note about what was left out, without its command."""


def comment(material: Measured, before: Sequence[str] = ()) -> str:
    """Return the comment, with a newline at the end; ``before``: parts in Markdown with which it begins."""
    first, folded = [*before, bold(lines(material.answer, material.workloads))], list[str]()
    if isinstance(material, BothMaterial):
        folded += map(_folded_table, clock_tables(material.both, material.workloads))
    for one in material.clocks:
        first += [f"On {CLOCKS[one.result.clock]}:"] if one is not material else []
        first += [f"- {plain(fault_sentence(fault))}" for fault in reported_faults(one.result)]
        first += [f"- {plain(text)}" for text in uncompared_sentences(one.result)]
        first += map(layout, filter(None, [brief_table(one.result, one.workloads)]))
        # The most important parts are first.
        for fault in reported_faults(one.result):
            if fault.excerpt:
                log = visible("\n".join(fault.excerpt))
                # Fences that are longer than every run of backticks in it.
                fence = "`" * max(4, 1 + max(map(len, re.findall("`+", log)), default=0))
                title = f"The log of {fault.kernel}, {fault_source(fault)}"
                folded.append(_folding(title, f"{fence}\n{log}\n{fence}"))
        folded += map(_folded_table, contents.all_tables(one))
        facts = listed(f"{name}: {value}" for name, value in contents.facts(one.result))
        how = (listed(limits(one.result)), layout(contents.kernels_table(one.result)), facts)
        folded.append(_folding("How it was measured, and the limits", "\n\n".join(how)))
        folded.append(_folding("Repeat it", code([one.result.command])))
    return _fitted(first, folded, material.name, material.result)


def _folded_table(table: Table) -> str:
    return _folding(table.title, layout(table).partition("\n\n")[2])


def _folding(title: str, text: str) -> str:
    """Return a folded part. The empty lines are needed: without them its Markdown is not read as such."""
    return f"<details><summary>{inert(title)}</summary>\n\n{text}\n\n</details>"


def _fitted(first: Sequence[str], folded: Sequence[str], run: str, result: Result) -> str:
    """Return the parts that fit into the limit, and how many did not."""
    command = plain(f"`kteardown report {run} --format markdown`")
    end = f"\n\n<sub>kteardown, run {plain(run)}: {plain(result.experiment)}</sub>\n"
    room = COMMENT_LIMIT - _NOTE - len(command) - len(end)
    text = "\n\n".join(part for part in first if part)
    if len(text) > room:
        text = text[:room].rpartition("\n")[0]
    left_out = 0
    for part in folded:
        if len(text) + len(part) + 2 > room:
            left_out += 1
        else:
            text += f"\n\n{part}"
    if left_out:
        parts = f"{left_out} part{'s' if left_out > 1 else ''}"
        text += f"\n\n{parts} of the report did not fit into a comment: {command} has all."
    return text + end
