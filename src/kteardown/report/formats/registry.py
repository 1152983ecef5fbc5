"""The text formats by name: each takes the material of a report and returns the whole file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kteardown.report.context import Material
from kteardown.report.formats import benchstat, cover, csv, html, json, markdown, mmtests

TEXTS: Mapping[str, Callable[[Material], str]] = {
    "markdown": lambda m: markdown.render(m.result, m.workloads, m.reference),
    "json": lambda m: json.dumps(m.result),
    "html": html.html_report,
    "cover": cover.render,
    "csv": lambda m: csv.render(m.result),
    "mmtests": mmtests.render,
    "benchstat": benchstat.render,
}
