"""The text formats by name: each takes the material of a report and returns the whole file."""

from collections.abc import Callable, Mapping

from kteardown.report.formats import cover, html, json, junit, markdown
from kteardown.report.material import Measured

TEXTS: Mapping[str, Callable[[Measured], str]] = {
    "markdown": markdown.report,
    "json": json.render,
    "html": html.html_report,
    "cover": cover.render,
    "comment": markdown.comment,
    "junit": junit.render,
}
