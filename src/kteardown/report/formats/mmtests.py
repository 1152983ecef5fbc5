"""The layout of MMTests' compare-kernels: a column for each kernel, a row for each statistic and point.

The gain relative to the first column is in brackets and is positive if the kernel is better. It is between
``*`` instead of brackets if the verdict is better or worse, by kteardown's rules and not by those of MMTests.
Statistics are over all samples, boots and executions together, as in MMTests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean, stdev

from kteardown.model.record import ParamValue
from kteardown.model.result import Comparison
from kteardown.model.samples import PointOf, Samples
from kteardown.report.comparison_groups import groups, variants
from kteardown.report.context import Material
from kteardown.report.formatting import Scale, parameter, scale
from kteardown.report.sections.fault_lines import fault_lines

_Statistic = Callable[[Sequence[float]], float]
_FIRST, _NAME, _COLUMN = 10, 2, 24


def render(material: Material) -> str:
    """Return a block for each metric, with a newline at the end; a sentence if there are no samples.

    What failed is first, in lines that begin with ``#``.
    """
    found = [_block(material, workload, metric) for workload, metric in _metrics(material)]
    first = "".join(f"# {line.text}\n" for line in fault_lines(material.result))
    return first + ("\n".join(found) if found else "no samples that could be compared\n")


def _metrics(material: Material) -> list[tuple[str, str]]:
    return list(dict.fromkeys((group.workload, group.metric) for group in groups(material.result)))


def _block(material: Material, workload: str, metric: str) -> str:
    kernels = ["base", *variants(material.result)]
    verdicts = {
        (c.variant, *sorted(c.point.items())): c
        for c in material.result.asked_for
        if (c.workload, c.metric, c.statistic) == (workload, metric, "median")
    }
    points = _points(material, workload, metric)
    sides = {
        (kernel, *sorted(point.items())): found
        for kernel in kernels
        for point in points
        if (found := material.evidence.of(kernel, workload, metric, point))
    }
    unit = _unit(material, list(sides.values()))
    names = _names(points)
    width = max(_NAME, *(len(name) for name in names)) + 2
    lines = [f"{workload} {metric} ({unit.unit})", *_heading(material, kernels, width)]
    better = next(iter(sides.values())).better if sides else "lower"
    for label, figure, less_is_better in _statistics(better):
        for point, name in zip(points, names, strict=True):
            key = tuple(sorted(point.items()))
            values = {k: _values(sides[k, *key]) for k in kernels if (k, *key) in sides}
            judged = {k: verdicts.get((k, *key)) for k in kernels} if label.endswith("mean") else {}
            cells = [
                _cell(values, k, figure, unit, less_is_better=less_is_better, judged=judged.get(k))
                for k in kernels
            ]
            lines.append(f"{label:<{_FIRST}}{name:<{width}}{''.join(cells)}".rstrip())
    return "\n".join(lines) + "\n"


def _statistics(better: str) -> list[tuple[str, _Statistic, bool]]:
    """Return label, function, and whether a lower value is a gain.

    Rates have the harmonic mean, as in MMTests.
    """
    low = better == "lower"
    middle: tuple[str, _Statistic, bool] = ("Amean", fmean, True) if low else ("Hmean", _hmean, False)
    return [
        ("Min", min, low),
        middle,
        ("Stddev", _sd, True),
        ("CoeffVar", _variation, True),
        ("Max", max, low),
    ]


def _cell(
    values: dict[str, list[float]],
    kernel: str,
    figure: _Statistic,
    unit: Scale,
    *,
    less_is_better: bool,
    judged: Comparison | None,
) -> str:
    if kernel not in values:
        return "-".rjust(_COLUMN)
    value = figure(values[kernel])
    base = figure(values["base"]) if "base" in values else math.nan
    text = f"{value:.2f}" if figure is _variation else f"{value / unit.divisor:.2f}"
    gain = _gain(base, value, less_is_better=less_is_better)
    significant = judged is not None and judged.verdict in ("better", "worse")
    open_, close = ("*", "*") if significant else ("(", ")")
    return f"{text} {open_}{gain:>8}{close}".rjust(_COLUMN)


def _gain(base: float, value: float, *, less_is_better: bool) -> str:
    if base == value:
        return "0.00%"
    if not base or math.isnan(base):
        return "-"
    gain = (base - value if less_is_better else value - base) / abs(base)
    return f"{100 * gain + 0.0:.2f}%"


def _heading(material: Material, kernels: Sequence[str], width: int) -> list[str]:
    """Return the release above the name of each kernel; long names are cut from the left, as in MMTests."""
    releases = [facts.release if (facts := material.result.kernels.get(k)) else "" for k in kernels]
    blank = " " * (_FIRST + width)
    rows = (releases, kernels)
    return [blank + "".join(text[-_COLUMN + 1 :].rjust(_COLUMN) for text in row) for row in rows]


def _points(material: Material, workload: str, metric: str) -> list[PointOf]:
    found = {
        tuple(sorted(s.point.items())): s.point
        for s in material.evidence.samples
        if (s.workload, s.metric) == (workload, metric)
    }
    return list(found.values())


def _names(points: Sequence[PointOf]) -> list[str]:
    """Return each point as one word: the values that vary, joined by dashes."""
    names = list(dict.fromkeys(name for point in points for name in point))
    varying = [name for name in names if len({point.get(name) for point in points}) > 1] or names
    return ["-".join(_plain(point[name]) for name in varying if name in point) for point in points]


def _plain(value: ParamValue) -> str:
    return parameter(value).replace(",", "")


def _values(samples: Samples) -> list[float]:
    return [value for boot in samples.boots.values() for value in boot]


def _unit(material: Material, sides: Sequence[Samples]) -> Scale:
    values = [max(_values(side)) for side in sides]
    return scale(sides[0].unit if sides else "", material.result.clock, values)


def _hmean(values: Sequence[float]) -> float:
    return len(values) / sum(1 / value for value in values) if all(values) else 0.0


def _sd(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0


def _variation(values: Sequence[float]) -> float:
    middle = fmean(values)
    return 100 * _sd(values) / middle if middle else 0.0
