"""A report as a terminal shows it, and its tables as rows of cells."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from kteardown.model.judged import Comparison
from kteardown.model.result import Result
from kteardown.report.formats import text
from kteardown.report.material import Material
from unit.simulation import WORKLOADS


def printed(result: Result, width: int = 120, encoding: str = "utf-8") -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    text.report(Material("", result, WORKLOADS), Console(file=stream, width=width))
    stream.flush()
    stream.seek(0)
    return stream.read()


def rows(report: str, title: str) -> list[list[str]]:
    """Return the table that begins under ``title``, each row split at two or more spaces."""
    lines = report.split(title, 1)[1].splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("─"))
    end = next((n for n in range(first, len(lines)) if not lines[n].strip()), len(lines))
    return [
        [cell.strip() for cell in line.split("  ") if cell.strip()]
        for line in lines[first - 1 : end]
    ]


def with_comparisons(result: Result, **changed: Any) -> Result:
    return result.model_copy(
        update={"comparisons": tuple(c.model_copy(update=changed) for c in result.comparisons)}
    )


def first(result: Result) -> Comparison:
    return result.comparisons[0]
