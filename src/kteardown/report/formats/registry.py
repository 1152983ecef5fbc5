"""The text formats by name: each takes the material of a report and returns the whole file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kteardown.report.formats import comment, cover, html, json, junit, markdown
from kteardown.report.in_words import in_words
from kteardown.report.material import Material

TEXTS: Mapping[str, Callable[[Material], str]] = {
    "markdown": lambda m: markdown.render(m.result, m.workloads, m.reference),
    "json": lambda m: json.dumps(in_words(m.result, m.workloads)),
    "html": html.html_report,
    "cover": cover.render,
    "comment": comment.render,
    "junit": junit.render,
}
