"""The tables that show published figures next to ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kteardown.inputs.published import Figure as PublishedFigure
from kteardown.inputs.published import Posted, PostedRow, Posting
from kteardown.model.result import Comparison, Result
from kteardown.model.workload import Workload
from kteardown.report.comparison_groups import PointKey, point_key
from kteardown.report.formatting import (
    Scale,
    change,
    decimals,
    parameter,
    percent,
    point_text,
    scale,
    speedup,
)
from kteardown.report.metric_names import metric_name
from kteardown.report.sections.published_means import (
    NOTE,
    Judgements,
    by_variant,
    judge_posted,
    our_blocks,
    posted_block,
)
from kteardown.report.table import Block, Cell, Table


def published_tables(
    result: Result, workloads: Mapping[str, Workload], reference: Posting | None
) -> list[Table]:
    """Return the published figures next to our changes, for the metrics that we have too."""
    if reference is None:
        return []
    source = reference.source
    machine = f"; {source.machine}" if source.machine else ""
    link = f"; https://lore.kernel.org/all/{source.message_id}/" if source.message_id else ""
    note = f'posted: "{source.title}", {source.posted}{machine}; measured on another machine{link}'
    judged = judge_posted(result, reference)
    found = [_published_table(result, workloads, reference, figure, judged) for figure in reference.figures]
    tables = [table for table in found if table is not None]
    return [*tables[:-1], *(replace(table, notes=(*table.notes, note)) for table in tables[-1:])]


def comparisons_for(result: Result, figure: PublishedFigure) -> dict[PointKey, list[Comparison]]:
    """Return our comparisons for a published figure, by the values of the other parameters."""
    by_rest: dict[PointKey, list[Comparison]] = {}
    for c in result.comparisons:
        if (
            (c.metric, c.statistic) == (figure.metric, figure.statistic)
            and (_step(result, c.variant) if figure.speedup else _asked_for(result, figure, c.variant))
            and figure.param in c.point
        ):
            rest = point_key({name: value for name, value in c.point.items() if name != figure.param})
            by_rest.setdefault(rest, []).append(c)
    return by_rest


def figure_name(
    figure: PublishedFigure, workloads: Mapping[str, Workload], ours: Mapping[PointKey, Sequence[Comparison]]
) -> str:
    """Return the name of the metric of ``ours`` to which a published figure belongs, with its label."""
    first = next(mine[0] for mine in ours.values())
    name = metric_name(workloads, first.workload, first.metric, first.statistic)
    return f"{name}, {figure.label}" if figure.label else name


def _published_table(
    result: Result,
    workloads: Mapping[str, Workload],
    reference: Posting,
    figure: PublishedFigure,
    judged: Judgements,
) -> Table | None:
    by_rest = comparisons_for(result, figure)
    if not by_rest:
        return None
    measured = {c.point[figure.param] for mine in by_rest.values() for c in mine}
    every = reference.rows(figure)
    posted = [row for row in every if row.at in measured]
    if not posted:
        return None
    left_out = (f"{len(every) - len(posted)} posted rows at points that were not measured here",)
    notes = left_out if len(every) > len(posted) else ()
    draw = our_blocks if figure.means else _speedup_blocks if figure.speedup else _change_blocks
    blocks = [
        block
        for rest, mine in by_rest.items()
        for block in draw(result, figure, posted, point_text(dict(rest)), mine)
    ]
    title = f"Published figures: {figure_name(figure, workloads, by_rest)}, posted in {figure.unit}"
    if figure.means:
        (first, *_), *_ = by_rest.values()
        keys = posted_block(figure, posted, first.better, judged)
        return Table(f"{title}: mean (standard deviation)", keys, tuple(blocks), notes=(*notes, NOTE))
    return Table(title, _keys(figure, posted), tuple(blocks), notes=notes)


def _asked_for(result: Result, figure: PublishedFigure, variant: str) -> bool:
    return variant == figure.variant or (not figure.variant and result.is_asked_for(variant))


def _step(result: Result, variant: str) -> int:
    """Return the number of patches of ``variant`` if they are the first ones of its series, else 0."""
    facts = result.kernels.get(variant)
    patches = facts.patch_set.patches if facts and facts.patch_set else ()
    return len(patches) if patches == tuple(range(1, len(patches) + 1)) else 0


def _keys(figure: PublishedFigure, posted: Sequence[PostedRow]) -> Block:
    bases, changes = _posted([row.base for row in posted]), _posted([row.changed for row in posted])
    posted_changes = [
        "-" if row.change is None else (speedup if figure.speedup else percent)(1 + row.change)
        for row in posted
    ]
    rows = zip(posted, bases, changes, posted_changes, strict=True)
    return Block(
        columns=(
            figure.param,
            *("posted base", "posted changed", "posted speedup" if figure.speedup else "posted change"),
        ),
        rows=tuple((Cell(parameter(row.at)), Cell(b), Cell(c), Cell(t)) for row, b, c, t in rows),
    )


def _change_blocks(
    result: Result,
    figure: PublishedFigure,
    posted: Sequence[PostedRow],
    rest: str,
    ours: Sequence[Comparison],
) -> list[Block]:
    """Return a column of changes for each variant."""
    blocks = []
    for variant, mine in by_variant(figure, ours).items():
        digits = decimals(mine.values())
        cells = [mine.get(row.at) for row in posted]
        rows = tuple((Cell(change(c, digits), c.verdict) if c else Cell("-"),) for c in cells)
        blocks.append(Block((f"here: {variant} {rest}".rstrip(),), rows))
    return blocks


def _speedup_blocks(
    result: Result,
    figure: PublishedFigure,
    posted: Sequence[PostedRow],
    rest: str,
    ours: Sequence[Comparison],
) -> list[Block]:
    """Return a column of base's medians, then medians and speedups for each prefix of the series."""
    medians = [value for c in ours for value in (c.base.median, c.changed.median)]
    unit = scale(ours[0].unit, result.clock, medians)
    steps = by_variant(figure, sorted(ours, key=lambda c: _step(result, c.variant)))
    base = {at: c for mine in steps.values() for at, c in mine.items()}
    cells = [base.get(row.at) for row in posted]
    rows = tuple((Cell(unit.text(c.base.median)) if c else Cell("-"),) for c in cells)
    blocks = [Block((f"here: base, {unit.unit} {rest}".rstrip(),), rows)]
    for variant, mine in steps.items():
        cells = [mine.get(row.at) for row in posted]
        rows = tuple((_speedup_cell(c, unit) if c else Cell("-"),) for c in cells)
        facts = result.kernels[variant].patch_set
        blocks.append(Block((variant.removeprefix(facts.series if facts else "") or variant,), rows))
    return blocks


def _speedup_cell(c: Comparison, unit: Scale) -> Cell:
    return Cell(f"{unit.text(c.changed.median)}  {speedup(c.ratio, c.ci, exact=c.exact)}", c.verdict)


def _posted(column: Sequence[Posted]) -> list[str]:
    """Return a column of published values, all with as many decimals as the most precise one."""
    decimals_of = [len(f"{v.value:.6f}".rstrip("0").partition(".")[2]) for v in column]
    digits = max(decimals_of, default=0)
    return [f"{v.value:,.{digits}f}" + ("" if v.sd is None else f" ({v.sd:g})") for v in column]
