"""The result as a comment for GitHub, GitLab and other trackers: Markdown with folded details.

The sentence, what failed and the headline metrics are visible; consoles, points, laws and the host are
folded. What does not fit into the limit of these services is left out, the last parts first, and counted.
"""

import re
from collections.abc import Iterator, Sequence

from kteardown.model.clock import CLOCKS
from kteardown.model.result import Result
from kteardown.report import contents
from kteardown.report.contents import limits
from kteardown.report.formats.markdown import bold, code, inert, layout, listed, plain
from kteardown.report.material import BothMaterial, Material, Measured
from kteardown.report.sections.both_clocks_table import clock_tables
from kteardown.report.sections.fault_lines import fault_reports, uncompared_sentences
from kteardown.report.sections.main_table import brief_table
from kteardown.report.sentence import lines
from kteardown.report.table import Table
from kteardown.visible import visible

LIMIT = 65_536
"""The largest comment that GitHub takes, in characters; GitLab takes more."""
_NOTE = 100
"""Characters for the note about what was left out, without its command."""


def render(material: Measured) -> str:
    """Return the comment, with a newline at the end."""
    first, folded = [bold(lines(material.answer, material.workloads))], list[str]()
    if isinstance(material, BothMaterial):
        folded += map(_folded_table, clock_tables(material.both, material.workloads))
    for one in material.clocks:
        first += [f"On {CLOCKS[one.result.clock]}:"] if one is not material else []
        first += _visible(one)
        folded += _folded(one)
    return _fitted(first, folded, material.name, material.result)


def _visible(material: Material) -> Iterator[str]:
    for fault in fault_reports(material.result):
        yield f"- {plain(fault.title.text)}"
    for text in uncompared_sentences(material.result):
        yield f"- {plain(text)}"
    table = brief_table(material.result, material.workloads)
    if table:
        yield layout(table)


def _folded(material: Material) -> Iterator[str]:
    """Yield the folded parts, the most important ones first."""
    result = material.result
    for fault in fault_reports(result):
        if fault.lines:
            log = _fenced(visible("\n".join(fault.lines)))
            yield _folding(f"The log of {fault.kernel}, {fault.source}", log)
    tables = contents.all_tables(result, material.workloads, material.reference)
    yield from map(_folded_table, tables)
    facts = listed(f"{name}: {value}" for name, value in contents.facts(result))
    kernels = layout(contents.kernels_table(result))
    parts = (listed(limits(result)), kernels, facts)
    yield _folding("How it was measured, and the limits", "\n\n".join(parts))
    yield _folding("Repeat it", code([result.command]))


def _folded_table(table: Table) -> str:
    return _folding(table.title, layout(table).partition("\n\n")[2])


def _folding(title: str, text: str) -> str:
    """Return a folded part. The empty lines are needed: without them its Markdown is not read as such."""
    return f"<details><summary>{inert(title)}</summary>\n\n{text}\n\n</details>"


def _fenced(text: str) -> str:
    """Return ``text`` between two fences that are longer than every run of backticks in it."""
    fence = "`" * max(4, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}\n{text}\n{fence}"


def _fitted(first: Sequence[str], folded: Sequence[str], run: str, result: Result) -> str:
    """Return the parts that fit into the limit, and how many did not."""
    command = plain(f"`kteardown report {run} --format markdown`")
    end = f"\n\n<sub>kteardown, run {plain(run)}: {plain(result.experiment)}</sub>\n"
    room = LIMIT - _NOTE - len(command) - len(end)
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
