"""The layout of Go's benchstat: a row for each point, a column for each kernel.

``±`` is half the width of the interval of a kernel's own median over boots. The change has the p of this
report, after the correction for the number of tests, and is ``~`` if the verdict is neither better nor worse.
n is the number of boots. The last row has the geometric means, with the p of a headline metric over all its
points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from kteardown.model.record import ParamValue
from kteardown.model.result import Comparison, Summary
from kteardown.report.comparison_groups import Group, groups, point_key, variants
from kteardown.report.context import Material
from kteardown.report.metric_words import verdict_of
from kteardown.report.sections.fault_lines import fault_lines

_PREFIXES = (
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "µ"),
    (1e-9, "n"),
)
_Cells = list[str]


def render(material: Material) -> str:
    """Return a table for each metric, with a newline at the end.

    What failed is first, in lines that begin with ``#``.
    """
    found = [_table(material, group) for group in groups(material.result)]
    first = "".join(f"# {line.text}\n" for line in fault_lines(material.result))
    return first + ("\n".join(found) if found else "nothing could be compared\n")


def _table(material: Material, group: Group) -> str:
    kernels = variants(material.result)
    unit, by = _unit(material, group)
    points = list({point_key(c.point): c for c in group.comparisons}.values())
    mine = {(c.variant, point_key(c.point)): c for c in group.comparisons}
    names = [_name(group, c) for c in points]
    heads = ["base", *(kernel for kernel in kernels if group.of(kernel))]
    columns: list[list[_Cells]] = [
        [[_value(c.base.compared * by), _half_width(material, group, c, "base", c.base)] for c in points]
    ]
    for kernel in heads[1:]:
        found = [mine.get((kernel, point_key(c.point))) for c in points]
        columns.append([_changed(material, group, c, by) for c in found])
    means = _means(material, group, heads, points, by)
    rows: list[list[str | _Cells]] = [
        [name, *(column[n] for column in columns)] for n, name in enumerate(names)
    ]
    return f"metric: {group.name}\n{_layout([*rows, means], heads, unit)}"


def _changed(material: Material, group: Group, c: Comparison | None, by: float) -> _Cells:
    if c is None:
        return ["-", "", ""]
    value = _value(c.changed.compared * by)
    return [value, _half_width(material, group, c, c.variant, c.changed), _delta(c)]


def _delta(c: Comparison) -> str:
    significant = c.verdict in ("better", "worse") and c.ratio is not None
    change = f"{100 * ((c.ratio or 1.0) - 1):+.2f}%" if significant else "~"
    p = f"p={c.p_holm:.3f} " if c.p_holm is not None else ""
    return f"{change} ({p}n={min(c.base.boots, c.changed.boots)})"


def _half_width(material: Material, group: Group, c: Comparison, kernel: str, side: Summary) -> str:
    samples = material.evidence.of(kernel, group.workload, group.metric, c.point)
    ends = samples.intervals.get(group.statistic) if samples else None
    if ends is None:
        return "± ∞"
    value = side.compared
    half = max(ends[1] - value, value - ends[0])
    return f"± {100 * half / abs(value):.0f}%" if value else "± 0%"


def _means(
    material: Material, group: Group, heads: Sequence[str], points: Sequence[Comparison], by: float
) -> list[str | _Cells]:
    bases = [c.base.compared * by for c in points]
    row: list[str | _Cells] = ["geomean", [_geometric(bases), ""]]
    for kernel in heads[1:]:
        mine = group.of(kernel)
        ratios = [c.ratio for c in mine if c.ratio]
        whole = len(ratios) == len(points) > 0
        delta = f"{round(100 * (math.exp(fmean(map(math.log, ratios))) - 1), 2) + 0.0:+.2f}%" if whole else ""
        metric = verdict_of(material.result, group, kernel)
        if delta and metric is not None and metric.p_corrected is not None:
            delta = delta if metric.verdict in ("better", "worse") else "~"
            delta += f" (p={metric.p_corrected:.3f} n={metric.boots})"
        row.append([_geometric([c.changed.compared * by for c in mine]), "", delta])
    return row


def _geometric(values: Sequence[float]) -> str:
    if not values or any(value <= 0 for value in values):
        return ""
    return _value(math.exp(fmean(map(math.log, values))))


def _layout(rows: Sequence[Sequence[str | _Cells]], heads: Sequence[str], unit: str) -> str:
    """Return the rows under two header lines, with a bar before each kernel."""
    first = max(len(str(row[0])) for row in rows)
    blocks = []
    for column, head in enumerate(heads):
        cells = [row[column + 1] for row in rows]
        widths = [max(len(cell[n]) for cell in cells) for n in range(len(cells[0]))]
        values = [unit, "", "vs base"][: len(widths)]
        widths[0] = max(widths[0], len(unit) - widths[1] - 1)
        lines = [
            f"{cell[0]:>{widths[0]}} {cell[1]:<{widths[1]}}"
            + (f"  {cell[2]:<{widths[2]}}" if len(cell) > 2 else "")
            for cell in cells
        ]
        wide = max(len(head), *(len(line) for line in lines))
        under = f"{values[0]:^{widths[0] + 1 + widths[1]}}" + ("  vs base" if len(widths) > 2 else "")
        blocks.append([f"{head:^{wide}}", f"{under:<{wide}}", *(f"{line:<{wide}}" for line in lines)])
    names = ["", "", *(str(row[0]) for row in rows)]
    text = []
    for number, name in enumerate(names):
        bar = " │ " if number < 2 else "   "
        end = " │" if number < 2 else ""
        text.append((f"{name:<{first}}{bar}" + bar.join(b[number] for b in blocks) + end).rstrip())
    return "\n".join(text) + "\n"


def _name(group: Group, c: Comparison) -> str:
    words = [f"{name}={_plain(value)}" for name, value in c.point.items()]
    return "/".join((group.workload.title().replace("_", ""), *words))


def _plain(value: ParamValue) -> str:
    return str(value)


def _unit(material: Material, group: Group) -> tuple[str, float]:
    """Return benchstat's own unit if it has one (seconds, bytes), and the factor that converts to it."""
    unit = group.comparisons[0].unit
    if unit in ("ns", "us"):
        if material.result.clock == "instructions":
            return "instructions", 1.0 if unit == "ns" else 1e3
        return "sec", 1e-9 if unit == "ns" else 1e-6
    if unit == "per_s" and material.result.clock == "instructions":
        return "1/1e9 instructions", 1.0
    return {"kb": ("B", 1e3), "per_s": ("1/s", 1.0)}.get(unit, (unit, 1.0))


def _value(value: float) -> str:
    """Return ``value`` with four digits and an SI prefix."""
    if value == 0:
        return "0.000"
    by, prefix = next(((by, name) for by, name in _PREFIXES if abs(value) >= by * 0.9995), _PREFIXES[-1])
    scaled = value / by
    decimals = 3 if abs(scaled) < 9.9995 else 2 if abs(scaled) < 99.995 else 1
    return f"{scaled:.{decimals}f}{prefix}"
