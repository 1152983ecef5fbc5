"""Tables and figures from a result, as Markdown that is readable as plain text too.

A table has a row and a column for each combination of the values of its axes. A cell is a text with
figures in braces. A figure in a sentence is the same with its place: ``{value reap_ns exit-linear
processes=2000}``, with quotes where a name has spaces: ``{value reap_ns 'exit-linear on debian:7.2'
processes=2000}``.

| figure | what it is |
|---|---|
| ``value`` | what was compared: the median over boots, or the percentile of ``METRIC:p99`` |
| ``change``, ``ci`` | changed / base in percent, and its interval |
| ``times`` | base / changed |
| ``verdict`` | the verdict |
| ``judged`` | not worse: below the ``margin`` of the table; worse: above it; else open |
| ``per_unit``, ``per_unit_ci`` | what one more costs, by the growth law |
| ``exponent``, ``exponent_ci``, ``law`` | of the growth law |
"""

from __future__ import annotations

import io
import math
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from rich.console import Console

from claims import Claim, TableSpec
from kteardown.analysis.both_clocks import both_clocks
from kteardown.inputs.load import load_workload
from kteardown.model.clock import BOTH
from kteardown.model.judged import Comparison, MetricVerdict
from kteardown.model.laws import Law
from kteardown.model.record import BASE
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result
from kteardown.report.contents import kernels_table
from kteardown.report.formats import text as terminal
from kteardown.report.formatting import decimals, interval, parameter, percent
from kteardown.report.material import Material
from kteardown.report.sections.both_clocks_table import clock_tables
from kteardown.report.table import Table
from markdown_table import markdown
from replications import findings

UNITS = {"": 1.0, "million": 1e6, "us": 1e3, "ms": 1e6, "s": 1e9, "percent": 0.01}
"""What a value is divided by, by the name of the unit in which it is shown."""
_OF_LAWS = ("per_unit", "exponent", "law")
_WIDTH = 112
_FIGURE = re.compile(r"\{(\w+)\}")


class NoFigure(ValueError):
    """The result does not have what was asked for."""


@dataclass(frozen=True)
class Fact:
    """The figures of one metric of one kernel at one point, as texts."""

    metric: str
    kernel: str
    point: Mapping[str, ParamValue]
    figures: Mapping[str, str]

    def at(self, axis: str) -> str:
        """Its value on one axis, as text."""
        if axis == "metric":
            return self.metric
        return self.kernel if axis == "kernel" else str(self.point.get(axis, ""))


def table(spec: TableSpec, claim: Claim) -> str:
    """The table, without what is written around it. Raises NoFigure."""
    if spec.both_clocks:
        return _on_both(spec, claim)
    result = result_of(claim, spec)
    if spec.terminal:
        return _on_terminal(spec, result)
    if spec.findings:
        return findings(claim, result)
    if spec.verdicts:
        return _verdicts(spec, result)
    laws = any(name.startswith(_OF_LAWS) for name in _FIGURE.findall(spec.cell))
    facts = list(_chosen(spec, _of_laws(result, spec) if laws else _of_comparisons(result, spec)))
    if not facts:
        raise NoFigure(f"the result has no figures of {', '.join(spec.metrics)} there")
    base = spec.cell if laws else spec.base
    cells = {
        _key(fact, (*spec.rows, *spec.columns)): _filled(
            base if fact.kernel == BASE else spec.cell, fact
        )
        for fact in facts
    }
    rows, columns = _combinations(spec, spec.rows, facts), _combinations(spec, spec.columns, facts)
    lines = [
        [_name(spec, axis) for axis in spec.rows] + [_heading(spec, column) for column in columns]
    ]
    for row in rows:
        found = [cells.get(tuple(value for _, value in (*row, *column)), "-") for column in columns]
        lines.append([_label(spec, axis, value) for axis, value in row] + found)
    return markdown(lines, len(spec.rows))


def _verdicts(spec: TableSpec, result: Result) -> str:
    found = [m for m in result.metric_verdicts if _is_of(spec, m)]
    if not found:
        raise NoFigure("the result has no verdicts of headline metrics")
    cells = {(_metric_name(m), m.variant): _verdict(m) for m in found}
    kernels = dict.fromkeys(m.variant for m in found)
    lines = [["", "points", *(_label(spec, "kernel", kernel) for kernel in kernels)]]
    for name, points in {_metric_name(m): m.planned for m in found}.items():
        lines.append([name, str(points), *(cells.get((name, kernel), "-") for kernel in kernels)])
    return markdown(lines, 1)


def _metric_name(m: MetricVerdict) -> str:
    statistic = "" if m.statistic == "median" else f":{m.statistic}"
    return f"{m.workload}: {m.metric}{statistic}"


def _verdict(m: MetricVerdict) -> str:
    if m.ratio is None or m.ci is None:
        return m.verdict
    return f"{percent(m.ratio, 1)} {'exact' if m.exact else interval(m.ci, 1)} {m.verdict}"


def figure(words: str, claim: Claim, unit: str) -> str:
    """One figure of a sentence. Raises NoFigure."""
    kind, metric, kernel, *conditions = shlex.split(words)
    where: dict[str, tuple[ParamValue, ...]] = {}
    for condition in conditions:
        name, _, value = condition.partition("=")
        where[name] = (int(value) if value.lstrip("-").isdigit() else value,)
    spec = TableSpec(metrics=(metric,), kernels=(kernel,), where=where, unit=unit)
    result = result_of(claim, spec)
    facts = _of_laws(result, spec) if kind.startswith(_OF_LAWS) else _of_comparisons(result, spec)
    found = {fact.figures[kind] for fact in _chosen(spec, facts) if kind in fact.figures}
    if len(found) != 1:
        raise NoFigure(f"{{{words}}}: {'no such figure' if not found else 'more than one figure'}")
    return found.pop()


def caption(claim: Claim) -> str:
    """How, when and at which commit it was measured, as a sentence."""
    results, measured = list(claim.results.values()), claim.measured
    if measured is None:
        raise NoFigure("not measured")
    releases = dict.fromkeys(
        k.release for result in results for k in result.kernels.values() if k.release
    )
    sizes = []
    for result in results:
        count = max((c.base.boots for c in result.comparisons), default=0)
        sizes.append(f"{count} {'boot' if result.clock == 'wall' else 'seed'}{'s' * (count != 1)}")
    facts = [" and ".join(releases), " and ".join(sizes), f"{measured.date} at {measured.commit}"]
    return f"Measured with `{measured.command}` ({', '.join(fact for fact in facts if fact)})."


def result_of(claim: Claim, spec: TableSpec) -> Result:
    """The result on the clock of a table. Raises NoFigure."""
    found = [result for clock, result in claim.results.items() if spec.clock in (None, clock)]
    if len(found) != 1:
        raise NoFigure(
            "measured on both clocks: the table must name one" if found else "not measured"
        )
    return found[0]


def brief(value: float) -> str:
    """A number with three significant digits, or all before the point, and no needless zeros."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    text = f"{value:.{2 - math.floor(math.log10(abs(value)))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _of_comparisons(result: Result, spec: TableSpec) -> Iterator[Fact]:
    wanted = {metric.partition(":")[::2]: metric for metric in spec.metrics}
    found = [
        (c, wanted.get((c.metric, "" if c.statistic == "median" else c.statistic)))
        for c in result.comparisons
    ]
    digits = decimals(c for c, metric in found if metric)
    by = UNITS[spec.unit] * spec.divide
    for c, metric in found:
        if metric:
            yield Fact(metric, BASE, c.point, {"value": brief(c.base.compared / by)})
            yield Fact(
                metric,
                c.variant,
                c.point,
                _changed(c, digits, by) | {"judged": _judged(c, spec.margin)},
            )


def _changed(c: Comparison, digits: int, by: float) -> dict[str, str]:
    figures = {"value": brief(c.changed.compared / by), "verdict": c.verdict, "ci": ""}
    figures["change"] = percent(c.ratio, digits) if c.ratio is not None else "no ratio"
    figures["times"] = brief(1 / c.ratio) if c.ratio else "no ratio"
    if c.exact or c.ci:
        figures["ci"] = "exact" if c.exact or not c.ci else interval(c.ci, digits)
    return figures


def _judged(c: Comparison, margin: float) -> str:
    """Whether the whole interval says that a change is not worse, or worse, by more than
    ``margin``."""
    if c.ratio is None or not (c.ci or c.exact):
        return "open"
    low, high = c.ci or (c.ratio, c.ratio)
    if c.better == "higher":
        low, high = 1 / high, 1 / low
    return "not worse" if high <= 1 + margin else "worse" if low > 1 + margin else "open"


def _of_laws(result: Result, spec: TableSpec) -> Iterator[Fact]:
    for law in result.laws:
        if law.metric in spec.metrics:
            yield Fact(
                law.metric, law.kernel, law.point, _of_law(law, UNITS[spec.unit] * spec.divide)
            )


def _of_law(law: Law, by: float) -> dict[str, str]:
    figures = {
        "law": law.model,
        "per_unit": "-",
        "exponent": "",
        "per_unit_ci": "",
        "exponent_ci": "",
    }
    if law.per_unit is not None:
        figures["per_unit"] = brief(law.per_unit / by)
    if law.exponent is not None:
        figures["exponent"] = f"{law.exponent:.2f}"
    if law.per_unit_ci:
        figures["per_unit_ci"] = _range(brief(end / by) for end in law.per_unit_ci)
    if law.exponent_ci:
        figures["exponent_ci"] = _range(f"{end:.2f}" for end in law.exponent_ci)
    return figures


def _range(ends: Iterable[str]) -> str:
    return f"[{', '.join(ends)}]"


def _chosen(spec: TableSpec, facts: Iterable[Fact]) -> Iterator[Fact]:
    for fact in facts:
        if (not spec.kernels or fact.kernel in spec.kernels) and all(
            fact.point.get(name) in values for name, values in spec.where.items()
        ):
            yield fact


def _key(fact: Fact, axes: Sequence[str]) -> tuple[str, ...]:
    return tuple(fact.at(axis) for axis in axes)


def _combinations(
    spec: TableSpec, axes: Sequence[str], facts: Sequence[Fact]
) -> list[tuple[tuple[str, str], ...]]:
    """Every combination of values of the axes that occurs, each as pairs of axis and value, in
    order."""
    values = [[(axis, value) for value in _values(spec, axis, facts)] for axis in axes]
    occurring = {_key(fact, axes) for fact in facts}
    return [pairs for pairs in product(*values) if tuple(value for _, value in pairs) in occurring]


def _values(spec: TableSpec, axis: str, facts: Sequence[Fact]) -> list[str]:
    """The values of an axis: as the table lists them, or else in the order of the result."""
    listed = {"metric": spec.metrics, "kernel": spec.kernels}.get(axis, spec.where.get(axis, ()))
    found = dict.fromkeys(fact.at(axis) for fact in facts)
    return [value for value in map(str, listed) if value in found] if listed else list(found)


def _filled(cell: str, fact: Fact) -> str:
    text = _FIGURE.sub(lambda match: fact.figures.get(match[1], ""), cell)
    return " ".join(text.split())


def _name(spec: TableSpec, axis: str) -> str:
    return spec.labels.get(axis, "" if axis in ("metric", "kernel") else axis)


def _label(spec: TableSpec, axis: str, value: str) -> str:
    shown = parameter(int(value)) if value.isdigit() else value
    return spec.labels.get(f"{axis}={value}", spec.labels.get(value, shown))


def _heading(spec: TableSpec, column: Sequence[tuple[str, str]]) -> str:
    return ", ".join(_in_heading(spec, axis, value) for axis, value in column)


def _in_heading(spec: TableSpec, axis: str, value: str) -> str:
    """A value in a heading: a number that has no label of its own is named by its axis."""
    text = _label(spec, axis, value)
    plain = value.isdigit() and f"{axis}={value}" not in spec.labels and value not in spec.labels
    return f"{_name(spec, axis)} {text}" if plain else text


def _is_of(spec: TableSpec, one: Any) -> bool:
    kernel = getattr(one, "variant", None) or getattr(one, "kernel", None)
    return not spec.kernels or kernel in spec.kernels


def _on_both(spec: TableSpec, claim: Claim) -> str:
    """A table for each metric and variant: a row for each point, with both changes and their
    reading."""
    if len(claim.results) != len(BOTH):
        raise NoFigure("not measured on both clocks")
    both = both_clocks(claim.results["instructions"], claim.results["wall"])
    chosen = tuple(
        one
        for one in both.readings
        if one.metric in spec.metrics
        and _is_of(spec, one)
        and all(one.point.get(name) in values for name, values in spec.where.items())
    )
    workloads = {one.workload: load_workload(one.workload) for one in chosen}
    tables = clock_tables(both.model_copy(update={"readings": chosen, "metrics": ()}), workloads)
    if not tables:
        raise NoFigure(f"the result has no headline figures of {', '.join(spec.metrics)} there")
    return "\n\n".join(_in_markdown(one) for one in tables)


def _in_markdown(shown: Table) -> str:
    (block,) = shown.cut(sys.maxsize, gap=0)
    lines = [block.columns, *([cell.text for cell in row] for row in block.rows)]
    left = [number for number, name in enumerate(block.columns) if name in block.left]
    return "\n\n".join((f"{shown.title}:", markdown(lines, 0, left), *shown.notes))


def _on_terminal(spec: TableSpec, result: Result) -> str:
    """What a terminal shows of these metrics, as a block of code."""
    about: dict[str, Any] = {
        name: tuple(one for one in value if one.metric in spec.metrics and _is_of(spec, one))
        for name, value in result
        if isinstance(value, tuple) and value and hasattr(value[0], "metric")
    }
    about["kernels"] = {
        name: k for name, k in result.kernels.items() if name in (spec.kernels or (name,))
    }
    part = result.model_copy(update=about)
    names = dict.fromkeys(c.workload for c in part.comparisons)
    out = io.StringIO()
    console = Console(file=out, width=_WIDTH, color_system=None)
    terminal.report(Material("", part, {name: load_workload(name) for name in names}), console)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    end = lines.index(kernels_table(result).title)
    return "\n".join(f"    {line}".rstrip() for line in lines[:end]).rstrip()
