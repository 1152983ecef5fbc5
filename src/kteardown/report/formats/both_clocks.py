"""The report of a run on both clocks, in every text format: both clocks side by side, then each by itself."""

from __future__ import annotations

import json as json_text
from collections.abc import Callable, Mapping

from rich.console import Console
from rich.text import Text

from kteardown.model.both_clocks import BothClocks
from kteardown.model.clock import CLOCKS
from kteardown.model.workload import Workload
from kteardown.report.formats import comment, cover, html, junit, markdown, text
from kteardown.report.in_words import in_words
from kteardown.report.material import BothMaterial, Material
from kteardown.report.sections.both_clocks_table import (
    EXPLAINED,
    clock_faults,
    clock_tables,
    rate_sentences,
)
from kteardown.report.sentence import lines, sentence


def render(material: BothMaterial, console: Console) -> None:
    """Print the report: both clocks side by side, then the whole report of each."""
    result = material.instructions.result
    text.show_sentence(lines(material.both, material.instructions.workloads), console)
    console.print(Text(f"{result.experiment} on both clocks: {result.question}", style="bold"))
    console.print()
    show(material, console)
    for one in material.clocks:
        console.print()
        console.print(Text(_title(one), style="bold underline"))
        console.print()
        text.render(one.result, one.workloads, one.reference, console, alone=False)


def _title(one: Material) -> str:
    return f"{CLOCKS[one.result.clock]} alone".capitalize()


def show(material: BothMaterial, console: Console) -> None:
    """Print both clocks side by side."""
    both, workloads = material.both, material.instructions.workloads
    for line in clock_faults(both):
        console.print(Text(line.text, style=text.STYLES[line.tone]))
    for table in clock_tables(both, workloads):
        text.show(table, console)
    console.print()
    for note in (EXPLAINED, *rate_sentences(both, workloads), *both.notes):
        console.print(Text(note, style="dim"))


def _markdown(material: BothMaterial) -> str:
    both, workloads = material.both, material.instructions.workloads
    result = material.instructions.result
    extra = (EXPLAINED, *rate_sentences(both, workloads), *both.notes)
    parts = [
        markdown.bold(lines(both, workloads)),
        f"# {markdown.plain(result.experiment)} on both clocks: {markdown.plain(result.question)}",
        "\n".join(f"- {markdown.plain(line.text)}" for line in clock_faults(both)),
        *(markdown.layout(table) for table in clock_tables(both, workloads)),
        "\n".join(f"- {markdown.plain(note)}" for note in extra),
    ]
    for one in material.clocks:
        parts.append(f"# {_title(one)}")
        parts.append(markdown.render(one.result, one.workloads, one.reference, alone=False).rstrip("\n"))
    return "\n\n".join(filter(None, parts)) + "\n"


def dumps(both: BothClocks, workloads: Mapping[str, Workload]) -> str:
    """Return the JSON of a run on both clocks, with a newline at the end."""
    results = {clock: in_words(result, workloads) for clock, result in both.results.items()}
    both = both.model_copy(update={"results": results, "sentence": sentence(both, workloads)})
    fields = both.model_dump(mode="json", by_alias=True)
    return json_text.dumps(fields, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


TEXTS: Mapping[str, Callable[[BothMaterial], str]] = {
    "markdown": _markdown,
    "json": lambda m: dumps(m.both, m.instructions.workloads),
    "html": html.html_both,
    "cover": cover.render_both,
    "comment": comment.render_both,
    "junit": junit.render_both,
}
"""The text formats by name, as ``registry.TEXTS`` has those of one clock."""
