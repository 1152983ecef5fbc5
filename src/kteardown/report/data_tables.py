"""Tables with a row for every comparison or sample group, which a page can filter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean, median, pstdev

from kteardown.model.result import Result
from kteardown.model.samples import Samples
from kteardown.model.workload import Workload
from kteardown.report.comparison_groups import groups
from kteardown.report.formatting import (
    change,
    decimals,
    detectable,
    interval,
    point_text,
    probability,
    scale,
    with_remedy,
)
from kteardown.report.material import Material
from kteardown.report.metric_names import metric_name
from kteardown.report.table import Cell


@dataclass(frozen=True)
class DataRow:
    """One row with the variant and metric that it is about. ``verdict`` is empty if it has none."""

    variant: str
    metric: str
    verdict: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class LongTable:
    """Rows under ``columns``; the columns in ``left`` are text and are aligned left."""

    title: str
    columns: tuple[str, ...]
    left: frozenset[str]
    rows: tuple[DataRow, ...]


def comparison_table(result: Result, workloads: Mapping[str, Workload]) -> LongTable:
    """Return every comparison of requested variants with its interval, twins and reason."""
    wall = result.clock == "wall"
    extra = ("A/A", "mde", "rank p") if wall else ("mde",)
    columns = ("variant", "metric", "point", "base", "changed", "change", *extra, "verdict", "reason")
    left = frozenset(("variant", "metric", "point", "verdict", "reason"))
    return LongTable(
        "Every change in figures", columns, left, tuple(_comparisons(result, workloads, wall=wall))
    )


def _comparisons(result: Result, workloads: Mapping[str, Workload], *, wall: bool) -> Iterator[DataRow]:
    for group in groups(result, workloads):
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
                Cell(point_text(c.point)),
                Cell(unit.text(c.base.compared)),
                Cell(unit.text(c.changed.compared)),
                Cell(change(c, digits), c.verdict),
                *null,
                Cell(detectable(c.mde)),
                *ranks,
                Cell(c.verdict, c.verdict),
                Cell(with_remedy(c.reason)),
            )
            yield DataRow(c.variant, c.metric, c.verdict, cells)


def samples_table(material: Material) -> LongTable:
    """Return a summary of the samples of each kernel at each point."""
    columns = ("kernel", "metric", "point", "boots", "samples", "smallest", "median", "mean", "largest", "sd")
    left = frozenset(("kernel", "metric", "point"))
    rows = tuple(_samples(s, material) for s in material.evidence.samples)
    return LongTable("The samples of each kernel in figures", columns, left, rows)


def _samples(s: Samples, material: Material) -> DataRow:
    values = [value for boot in s.boots.values() for value in boot]
    unit = scale(s.unit, material.result.clock, values)
    statistics = (min(values), median(values), fmean(values), max(values), pstdev(values))
    cells = (
        Cell(s.kernel),
        Cell(f"{metric_name(material.workloads, s.workload, s.metric)} ({unit.unit})"),
        Cell(point_text(s.point)),
        Cell(f"{len(s.boots)}"),
        Cell(f"{len(values):,}"),
        *(Cell(unit.text(value)) for value in statistics),
    )
    return DataRow(s.kernel, s.metric, "", cells)
