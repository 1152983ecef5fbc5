"""Every table of a report, out of a Result; text and Markdown only set them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kteardown.records.schema import ParamValue
from kteardown.report.layout import Block, Cell, Table
from kteardown.report.reference import Figure, Posted, Reference
from kteardown.report.words import (
    CLOCKS,
    VERDICTS,
    Scale,
    change,
    decimals,
    interval,
    number,
    parameter,
    percent,
    place,
    scale,
    sentence,
    tone,
)
from kteardown.spec.model import Workload
from kteardown.stats.results import Comparison, Law, Result, VoidTrials

_HASH = 10
_LONG_FACT = 160

_Place = tuple[tuple[str, ParamValue], ...]


def verdicts(result: Result, workloads: Mapping[str, Workload]) -> list[Cell]:
    """A sentence for each variant and headline metric: what a reader wants to know first."""
    lines = []
    for variant in _variants(result):
        for _, metric, group in _headlines(result, workloads):
            mine = [c for c in group if c.variant == variant]
            if mine:
                lines.append(Cell(sentence(metric, variant, mine), tone(mine)))
    if len(result.kernels) == 1:
        return [Cell("base ran alone: there is nothing to compare it with", "inconclusive")]
    return lines or [Cell("nothing could be compared: see the boots and trials below", "inconclusive")]


def seed_tables(result: Result, workloads: Mapping[str, Workload]) -> list[Table]:
    """For each headline metric a row per point: base, and each variant with change and verdict."""
    return [
        _seed_table(result, workload, metric, group)
        for workload, metric, group in _headlines(result, workloads)
    ]


def other_metrics(result: Result, workloads: Mapping[str, Workload]) -> Table | None:
    """The metrics that have no table of their own, a row for each of them and each variant."""
    rows = []
    for workload, metric, group in _metrics(result):
        if _is_headline(workloads, workload, metric):
            continue
        for variant in _variants(result):
            mine = [c for c in group if c.variant == variant]
            ratios = [c.ratio for c in mine if c.ratio is not None]
            span = f"{percent(min(ratios))} to {percent(max(ratios))}" if ratios else ""
            counts = Counter(c.verdict for c in mine)
            told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
            if mine:
                rows.append((Cell(metric), Cell(variant), Cell(told, tone(mine)), Cell(span)))
    if not rows:
        return None
    columns = ("metric", "variant", "points", "change")
    return Table("Other metrics", Block(columns, tuple(rows), left=frozenset(columns)))


def law_tables(result: Result, workloads: Mapping[str, Workload]) -> list[Table]:
    """For each headline metric with a law: what one more costs each kernel, and how that grows."""
    groups: dict[tuple[str, str, str], list[Law]] = {}
    for law in result.laws:
        if _is_headline(workloads, law.workload, law.metric):
            groups.setdefault((law.workload, law.metric, place(law.point)), []).append(law)
    return [_law_table(result, laws, where) for (_, _, where), laws in groups.items()]


def posting_tables(result: Result, reference: Reference | None) -> list[Table]:
    """The posting's figures beside our changes, where it has figures for a metric of ours."""
    if reference is None:
        return []
    source = reference.source
    machine = f"; {source.machine}" if source.machine else ""
    note = f'posted: "{source.title}", {source.posted}{machine}; as posted, on another machine'
    found = [_posting_table(result, reference, figure) for figure in reference.figures]
    tables = [table for table in found if table is not None]
    return [*tables[:-1], *(replace(table, notes=(note,)) for table in tables[-1:])]


def kernels_table(result: Result) -> Table:
    """What was booted, by the hashes of what went into it."""
    rows = tuple(
        (
            Cell(name),
            Cell(facts.release),
            Cell(facts.source),
            Cell(facts.config_hash[:_HASH]),
            Cell(facts.image_hash[:_HASH]),
        )
        for name, facts in result.kernels.items()
    )
    columns = ("kernel", "release", "source", "config", "image")
    compilers = dict.fromkeys(facts.compiler for facts in result.kernels.values())
    arches = dict.fromkeys(facts.arch for facts in result.kernels.values())
    notes = (f"{', '.join(arches)}; {'; '.join(compilers)}",) if rows else ()
    return Table("Kernels", Block(columns, rows, left=frozenset(columns)), notes=notes)


def facts(result: Result) -> list[tuple[str, str]]:
    """What was run, as names and values: clock, boots, unusable trials, host."""
    boots = ", ".join(f"{count} {outcome}" for outcome, count in result.boots.items() if count)
    lines = [("clock", f"{result.clock}: {CLOCKS[result.clock]}"), ("boots", boots or "none")]
    lines += [("left out", text) for text in _left_out(result)]
    lines += [("note", note) for note in result.notes]
    lines += [(f"host {name}", text) for name, value in result.machine.items() if (text := _fact(value))]
    return lines


def _seed_table(result: Result, workload: str, metric: str, group: Sequence[Comparison]) -> Table:
    points = {_place(c): c for c in group}
    medians = [side.median for c in group for side in (c.base, c.changed)]
    unit = scale(group[0].unit, result.clock, medians)
    digits = decimals(group)
    nulls = any(c.null_ci for c in group)
    names, key_rows = _point_cells([dict(at) for at in points])
    keys = Block(
        columns=(*names, "base", *(("A/A",) if nulls else ())),
        rows=tuple(
            (
                *cells,
                Cell(unit.text(c.base.median)),
                *((Cell(interval(c.null_ci, digits) if c.null_ci else "-"),) if nulls else ()),
            )
            for cells, c in zip(key_rows, points.values(), strict=True)
        ),
    )
    blocks = []
    for variant in _variants(result):
        by_point = {_place(c): c for c in group if c.variant == variant}
        rows = tuple(_compared(by_point.get(at), unit, digits) for at in points)
        blocks.append(Block(("changed", variant, "verdict"), rows, left=frozenset(("verdict",))))
    confidence = f"{group[0].confidence * 100:g}%"
    title = (
        f"{workload}: {metric} in {unit.unit}, {group[0].better} is better; "
        f"median, change with {confidence} interval"
    )
    return Table(title, keys, tuple(blocks), _reasons(group))


def _compared(comparison: Comparison | None, unit: Scale, digits: int) -> tuple[Cell, ...]:
    if comparison is None:
        return (Cell("-"), Cell("-"), Cell("-"))
    return (
        Cell(unit.text(comparison.changed.median)),
        Cell(change(comparison, digits), comparison.verdict),
        Cell(comparison.verdict, comparison.verdict),
    )


def _reasons(group: Sequence[Comparison]) -> tuple[str, ...]:
    """Why points stay inconclusive, what counts as the same, and what could have been seen at all."""
    reasons = Counter(c.reason for c in group if c.verdict == "inconclusive" and c.reason)
    notes = [f"inconclusive {count}x: {reason}" for reason, count in sorted(reasons.items())]
    same = Counter(c.reason for c in group if c.verdict == "same")
    notes += [f"same {count}x: {reason}" for reason, count in sorted(same.items())]
    mdes = [c.mde for c in group if c.mde is not None and not c.exact]
    if mdes:
        low, high = min(mdes), max(mdes)
        span = f"{low:.1%}" if f"{low:.1%}" == f"{high:.1%}" else f"{low:.1%} to {high:.1%}"
        notes.append(f"a change of {span} would have been found four times in five")
    return tuple(notes)


def _law_table(result: Result, laws: Sequence[Law], where: str) -> Table:
    first = laws[0]
    unit = scale(first.unit, result.clock, [law.per_unit or 0.0 for law in laws])
    rows = tuple(
        (
            Cell(law.kernel),
            Cell("-" if law.per_unit is None else _with(law.per_unit / unit.divisor, law.per_unit_ci, unit)),
            Cell(law.model),
            Cell(_exponent(law)),
        )
        for law in laws
    )
    columns = ("kernel", f"{unit.unit} for one more", "law", "exponent")
    block = Block(columns, rows, left=frozenset(("kernel", "law")))
    at = f" at {where}" if where else ""
    return Table(f"{first.workload}: growth of {first.metric} with {first.param}{at}", block)


def _with(value: float, ci: tuple[float, float] | None, unit: Scale) -> str:
    if ci is None:
        return number(value)
    return f"{number(value)} [{number(ci[0] / unit.divisor)}, {number(ci[1] / unit.divisor)}]"


def _exponent(law: Law) -> str:
    if law.exponent is None or law.exponent_ci is None:
        return "-"
    return f"{law.exponent:.2f} [{law.exponent_ci[0]:.2f}, {law.exponent_ci[1]:.2f}]"


def _posting_table(result: Result, reference: Reference, figure: Figure) -> Table | None:
    ours = [
        c
        for c in result.comparisons
        if c.metric == figure.metric and figure.variant in ("", c.variant) and figure.param in c.point
    ]
    if not ours:
        return None
    posted = reference.rows(figure)
    bases, changes = _posted([row.base for row in posted]), _posted([row.changed for row in posted])
    keys = Block(
        columns=(figure.param, "posted base", "posted changed", "posted change"),
        rows=tuple(
            (
                Cell(parameter(row.at)),
                Cell(base),
                Cell(changed),
                Cell("-" if row.change is None else percent(1 + row.change)),
            )
            for row, base, changed in zip(posted, bases, changes, strict=True)
        ),
    )
    groups: dict[tuple[str, str], dict[ParamValue, Comparison]] = {}
    for c in ours:
        rest = place({name: value for name, value in c.point.items() if name != figure.param})
        groups.setdefault((c.variant, rest), {})[c.point[figure.param]] = c
    blocks = []
    for (variant, rest), mine in groups.items():
        digits = decimals(mine.values())
        cells = [mine.get(row.at) for row in posted]
        rows = tuple((Cell(change(c, digits), c.verdict) if c else Cell("-"),) for c in cells)
        blocks.append(Block((f"here: {variant} {rest}".rstrip(),), rows))
    label = f", {figure.label}" if figure.label else ""
    return Table(f"Beside the posting: {figure.metric}, posted in {figure.unit}{label}", keys, tuple(blocks))


def _posted(column: Sequence[Posted]) -> list[str]:
    """A column of posted values, all with the decimals of the most exact one."""
    decimals_of = [len(f"{v.value:.6f}".rstrip("0").partition(".")[2]) for v in column]
    digits = max(decimals_of, default=0)
    return [f"{v.value:,.{digits}f}" + ("" if v.sd is None else f" ({v.sd:g})") for v in column]


def _point_cells(
    points: Sequence[Mapping[str, ParamValue]],
) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    """The parameters that tell the points apart (all, where nothing does), and a row of cells for each."""
    names = list(dict.fromkeys(name for point in points for name in point))
    varying = [name for name in names if len({point.get(name) for point in points}) > 1] or names
    rows = [tuple(Cell(parameter(point.get(name, "-"))) for name in varying) for point in points]
    return tuple(varying), rows


def _variants(result: Result) -> list[str]:
    return list(dict.fromkeys(c.variant for c in result.comparisons))


def _metrics(result: Result) -> list[tuple[str, str, list[Comparison]]]:
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in result.comparisons:
        groups.setdefault((comparison.workload, comparison.metric), []).append(comparison)
    return [(workload, metric, group) for (workload, metric), group in groups.items()]


def _headlines(result: Result, workloads: Mapping[str, Workload]) -> list[tuple[str, str, list[Comparison]]]:
    return [entry for entry in _metrics(result) if _is_headline(workloads, entry[0], entry[1])]


def _is_headline(workloads: Mapping[str, Workload], workload: str, metric: str) -> bool:
    """A workload that marks none has all of them in the main tables."""
    metrics = workloads[workload].metrics
    return metrics[metric].headline or not any(spec.headline for spec in metrics.values())


def _place(comparison: Comparison) -> _Place:
    return tuple(comparison.point.items())


def _left_out(result: Result) -> list[str]:
    """Unusable trials; points that share kernel, workload and reason share a line."""
    groups: dict[tuple[str, str, str, str], list[VoidTrials]] = {}
    for void in result.voids:
        groups.setdefault((void.kernel, void.workload, void.status, void.detail), []).append(void)
    return [
        f"{kernel}: {sum(void.count for void in voids)} x {workload}, "
        f"{place(voids[0].point) if len(voids) == 1 else f'{len(voids)} points'}, {status}: {detail}"
        for (kernel, workload, status, detail), voids in groups.items()
    ]


def _fact(value: Any) -> str:
    """A fact of the host on one line; what is long is left to result.json."""
    if isinstance(value, Mapping):
        known = {name: text for name, entry in value.items() if (text := _fact(entry))}
        text = ", ".join(f"{name} {entry}" for name, entry in known.items())
        return text if len(text) <= _LONG_FACT else f"{len(known)} entries, in result.json"
    return "" if value is None else str(value)
