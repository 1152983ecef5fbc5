"""Describe what a design can decide, as a table of the plan."""

from __future__ import annotations

from collections.abc import Mapping

from kteardown.model.experiment import Design
from kteardown.model.power import DesignPower
from kteardown.model.workload import Workload
from kteardown.report.metric_names import metric_name
from kteardown.report.table import Block, Table

_LARGE = 20.0


def table(power: DesignPower, design: Design, workloads: Mapping[str, Workload]) -> Table:
    """Return the smallest change of each headline metric, and of one of its points, that can be called."""
    unit = "boots" if design.clock == "wall" else "seeds"
    most = "at most " if design.until else ""
    tests = f"{power.tests} test{'s' if power.tests != 1 else ''} of headline metrics"
    named = any(row.run for row in power.rows)
    rows = []
    for row in power.rows:
        name = metric_name(workloads, row.workload, row.metric_name) if row.metric_name else ""
        spread = f"{row.spread:.2g}" if row.spread >= 1 else f"{row.spread:.2%}"
        sizes = (_size(row.metric), _size(row.point))
        shown = name or ("any other" if named else "any")
        rows.append((shown, str(row.points), spread, *sizes, row.run or "assumed"))
    columns = ("metric", "points", "spread", "smallest change", "of one point", "spread from")
    title = f"Smallest change that is found four times in five, with {most}{power.boots} {unit} and {tests}"
    notes = ["spread: standard deviation over boots of the logarithm of changed / base"]
    if design.clock == "instructions":
        notes.append("where all seeds give the same counts, every change outside the margin is found")
    else:
        notes.append("the A/A twin, which must differ less than the variant, makes it somewhat larger")
    return Table(title, Block.of(columns, rows, left=("metric", "spread from")), notes=tuple(notes))


def _size(change: float | None) -> str:
    """Return a change as the increase and the decrease that are found: ``+25% or -20%``."""
    if change is None:
        return "none"
    if change > _LARGE:
        return f"{1 + change:,.0f} times" if change < 1e4 else "none"
    digits = 1 if change < 0.1 else 0
    return f"{change:+.{digits}%} or {1 / (1 + change) - 1:+.{digits}%}"
