"""A comment for GitHub, GitLab and other trackers: what failed and the headline metrics are
visible.

Consoles, points, laws and the host are folded. What does not fit into the limit of these services
is left out, the last parts first, and counted.
"""

import re
from collections.abc import Sequence
from textwrap import indent

from kteardown.model.clock import CLOCKS
from kteardown.model.result import Result
from kteardown.report import contents
from kteardown.report.contents import limits
from kteardown.report.formats.markdown import bold, code, inert, layout, listed, plain
from kteardown.report.material import BothMaterial, Measured
from kteardown.report.publication import Publication
from kteardown.report.sections.both_clocks_table import clock_tables
from kteardown.report.sections.changes import brief_table
from kteardown.report.sections.fault_lines import (
    fault_sentence,
    fault_source,
    reported_faults,
    uncompared_sentences,
)
from kteardown.report.sentence import lines
from kteardown.report.table import Table
from kteardown.visible import visible

COMMENT_LIMIT = 65_536
"""The largest comment that GitHub takes, in characters; GitLab takes more."""
_NOTE = 100
"""Characters for the note about what was left out, without its command."""


def render(publication: Publication) -> str:
    """Return the comment, with a newline at the end. A page that is plain text is quoted as it
    is."""
    if publication.material is not None:
        return comment(publication.material, [publication.page] if publication.page else [])
    text = indent(publication.page, "    ") if publication.is_plain else publication.page
    return (
        text if len(text) <= COMMENT_LIMIT else text[: COMMENT_LIMIT - 1].rpartition("\n")[0] + "\n"
    )


def comment(material: Measured, before: Sequence[str] = ()) -> str:
    """Return the comment, with a newline at the end; ``before``: parts in Markdown with which it
    begins."""
    first = [*before, bold(lines(material.whole, material.workloads))]
    folded: list[str] = []
    if isinstance(material, BothMaterial):
        folded += map(_folded_table, clock_tables(material.both, material.workloads))
    for clock_material in material.clocks:
        first += (
            [f"On {CLOCKS[clock_material.result.clock]}:"] if clock_material is not material else []
        )
        first += [
            f"- {plain(fault_sentence(fault))}" for fault in reported_faults(clock_material.result)
        ]
        first += [f"- {plain(text)}" for text in uncompared_sentences(clock_material.result)]
        first += map(
            layout, filter(None, [brief_table(clock_material.result, clock_material.workloads)])
        )
        # The most important parts are first.
        for fault in reported_faults(clock_material.result):
            if fault.excerpt:
                log = visible("\n".join(fault.excerpt))
                # Fences that are longer than every run of backticks in it.
                fence = "`" * max(4, 1 + max(map(len, re.findall("`+", log)), default=0))
                title = f"The log of {fault.kernel}, {fault_source(fault)}"
                folded.append(_folding(title, f"{fence}\n{log}\n{fence}"))
        folded += map(_folded_table, contents.all_tables(clock_material))
        facts = listed(f"{name}: {value}" for name, value in contents.facts(clock_material.result))
        how = (
            listed(limits(clock_material.result)),
            layout(contents.kernels_table(clock_material.result)),
            facts,
        )
        folded.append(_folding("How it was measured, and the limits", "\n\n".join(how)))
        folded.append(_folding("Repeat it", code([clock_material.result.command])))
    return _fitted(first, folded, material.name, material.result)


def _folded_table(table: Table) -> str:
    return _folding(table.title, layout(table).partition("\n\n")[2])


def _folding(title: str, text: str) -> str:
    """Return a folded part. The empty lines are needed: without them its Markdown is not read as
    such."""
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
