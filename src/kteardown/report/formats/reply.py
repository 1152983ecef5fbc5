"""The text to paste below a quoted patch: what was measured and on what, the figures with their
intervals, what they do not say, and how to repeat it.

Plain ASCII text of at most 72 columns, without a greeting and without a judgement of anybody's
work. The command that repeats the run, and names that are longer than a line, are on lines of their
own and are not broken.
"""

from collections.abc import Iterator

from kteardown.model.record import BASE
from kteardown.model.result import Result
from kteardown.report.formats.cover import (
    failures_and_limits,
    layout,
    quoted_logs,
    said_lines,
    tables,
    wrapped,
)
from kteardown.report.material import Measured
from kteardown.report.publication import Publication
from kteardown.visible import on_one_line

NEEDS = ("material",)
_TABLES = 3
"""So many tables are in a mail; the report has the others."""
_PROJECT = "kteardown (a lab for the paths on which Linux stops and tears down things)"


def render(publication: Publication) -> str:
    """Return the whole text, with a newline at the end."""
    material = publication.run
    result = material.result
    failed, (basis, *limits) = failures_and_limits(material)
    shown = list(tables(material))
    parts = [
        wrapped(f"Measured with {_PROJECT}: {_what(material)}"),
        *_patches(result),
        wrapped(basis),
        said_lines(material),
        *(wrapped(cell.text, "- ") for cell in failed),
        *quoted_logs(material),
        *map(layout, shown[:_TABLES]),
    ]
    if len(shown) > _TABLES:
        parts.append(wrapped(f"The report has {len(shown) - _TABLES} more tables."))
    if limits:
        parts.append(
            "\n".join(["What it does not say:", *(wrapped(text, "- ") for text in limits)])
        )
    parts.append(f"To repeat it:\n\n  {on_one_line(result.command)}")
    return "\n\n".join(parts) + "\n"


def _what(material: Measured) -> str:
    """Return what the workloads do."""
    summaries = [on_one_line(workload.summary) for workload in material.workloads.values()]
    text = "; ".join(summary.rstrip(".") for summary in summaries)
    return text if text.endswith("?") else f"{text}."


def _patches(result: Result) -> Iterator[str]:
    """Yield which patches each variant has; nothing for another kernel."""
    for name, facts in result.kernels.items():
        if name == BASE or facts.patch_set is None or facts.for_ablation:
            continue
        subjects = [wrapped(on_one_line(text), "  ") for text in facts.patch_set.subjects]
        yield "\n".join([wrapped(f"{on_one_line(name)} is the base with"), *subjects])
