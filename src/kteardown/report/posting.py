"""The tables that put a posting's figures beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kteardown.records.schema import ParamValue
from kteardown.report.layout import Block, Cell, Table
from kteardown.report.reference import Figure, Posted, Reference
from kteardown.report.words import change, decimals, parameter, percent, place
from kteardown.stats.results import Comparison, Result


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


def _posting_table(result: Result, reference: Reference, figure: Figure) -> Table | None:
    ours = [
        c
        for c in result.comparisons
        if (c.metric, c.statistic) == (figure.metric, figure.statistic)
        and (result.is_asked_for(c.variant) if figure.variant == "" else c.variant == figure.variant)
        and figure.param in c.point
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
