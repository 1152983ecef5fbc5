"""Tables with a row for every single thing, for a page that can filter them: comparisons, and samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean, median, pstdev

from kteardown.model.result import Result
from kteardown.model.samples import Samples
from kteardown.report.comparison_groups import groups
from kteardown.report.context import Material
from kteardown.report.formatting import change, decimals, interval, place, probability, scale, share
from kteardown.report.table import Cell


@dataclass(frozen=True)
class Row:
    """One row, and what it is about; ``verdict`` is empty where it has none."""

    variant: str
    metric: str
    verdict: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class LongTable:
    """Rows under ``columns``; those of words stand on the left."""

    title: str
    columns: tuple[str, ...]
    left: frozenset[str]
    rows: tuple[Row, ...]


def comparison_table(result: Result) -> LongTable:
    """Every comparison that was asked for, with its interval, what could have been seen, and why."""
    wall = result.clock == "wall"
    beside = ("A/A", "mde", "rank p") if wall else ("mde",)
    columns = ("variant", "metric", "point", "base", "changed", "change", *beside, "verdict", "why")
    left = frozenset(("variant", "metric", "point", "verdict", "why"))
    return LongTable("Every change as a figure", columns, left, tuple(_comparisons(result, wall=wall)))


def _comparisons(result: Result, *, wall: bool) -> Iterator[Row]:
    for group in groups(result):
        unit = scale(
            group.comparisons[0].unit,
            result.clock,
            [side.compared for c in group.comparisons for side in (c.base, c.changed)],
        )
        digits = decimals(group.comparisons)
        for c in group.comparisons:
            null = (Cell(interval(c.null_ci, digits) if c.null_ci else "-"),) if wall else ()
            ranks = (Cell(probability(c.p_rank)),) if wall else ()
            cells = (
                Cell(c.variant),
                Cell(f"{group.name} ({unit.unit})"),
                Cell(place(c.point)),
                Cell(unit.text(c.base.compared)),
                Cell(unit.text(c.changed.compared)),
                Cell(change(c, digits), c.verdict),
                *null,
                Cell(share(c.mde)),
                *ranks,
                Cell(c.verdict, c.verdict),
                Cell(c.reason),
            )
            yield Row(c.variant, c.metric, c.verdict, cells)


def samples_table(material: Material) -> LongTable:
    """What the samples of each kernel at each point come to."""
    columns = ("kernel", "metric", "point", "boots", "samples", "smallest", "median", "mean", "largest", "sd")
    left = frozenset(("kernel", "metric", "point"))
    rows = tuple(_samples(s, material) for s in material.evidence.samples)
    return LongTable("The samples of each kernel as figures", columns, left, rows)


def _samples(s: Samples, material: Material) -> Row:
    values = [value for boot in s.boots.values() for value in boot]
    unit = scale(s.unit, material.result.clock, values)
    told = (min(values), median(values), fmean(values), max(values), pstdev(values))
    cells = (
        Cell(s.kernel),
        Cell(f"{s.metric} ({unit.unit})"),
        Cell(place(s.point)),
        Cell(f"{len(s.boots)}"),
        Cell(f"{len(values):,}"),
        *(Cell(unit.text(value)) for value in told),
    )
    return Row(s.kernel, s.metric, "", cells)
