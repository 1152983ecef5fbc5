"""Tables with a row for every comparison or sample group, which a page can filter."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, median, pstdev

from kteardown.model.result import Result
from kteardown.model.workload import Workload
from kteardown.report.comparison_groups import Group, groups
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
    """One row with the variant that it is about. ``verdict`` is empty if it has none."""

    variant: str
    verdict: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class DataRows:
    """The rows about one metric; ``name`` has its unit."""

    metric: str
    name: str
    rows: tuple[DataRow, ...]

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return len(self.rows)


@dataclass(frozen=True)
class LongTable:
    """Rows under ``columns``; the columns in ``left`` are text and are aligned left."""

    title: str
    columns: tuple[str, ...]
    left: frozenset[str]
    bodies: tuple[DataRows, ...]


def comparison_table(result: Result, workloads: Mapping[str, Workload]) -> LongTable:
    """Return every comparison of requested variants with its interval, twins and reason."""
    wall = result.clock == "wall"
    extra = ("A/A", "mde", "rank p") if wall else ("mde",)
    columns = ("variant", "point", "base", "changed", "change", *extra, "verdict", "reason")
    bodies = tuple(_compared(result, group, wall=wall) for group in groups(result, workloads))
    return LongTable(
        "Every change in figures", columns, frozenset(("variant", "point", "verdict", "reason")), bodies
    )


def _compared(result: Result, group: Group, *, wall: bool) -> DataRows:
    values = [side.compared for c in group.comparisons for side in (c.base, c.changed)]
    unit = scale(group.comparisons[0].unit, result.clock, values)
    digits = decimals(group.comparisons)
    rows = []
    for c in group.comparisons:
        texts = [c.variant, point_text(c.point), unit.text(c.base.compared), unit.text(c.changed.compared)]
        twins = [interval(c.null_ci, digits) if c.null_ci else "-"] if wall else []
        tests = [*twins, detectable(c.mde), *([probability(c.p_rank)] if wall else [])]
        sized, judged = Cell(change(c, digits), c.verdict), Cell(c.verdict, c.verdict)
        cells = (*map(Cell, texts), sized, *map(Cell, tests), judged, Cell(with_remedy(c.reason)))
        rows.append(DataRow(c.variant, c.verdict, cells))
    return DataRows(group.metric, f"{group.name} ({unit.unit})", tuple(rows))


def samples_table(material: Material) -> LongTable:
    """Return a summary of the samples of each kernel at each point."""
    columns = ("kernel", "point", "boots", "samples", "smallest", "median", "mean", "largest", "sd")
    found: dict[tuple[str, str, str], list[DataRow]] = {}
    for s in material.evidence.samples:
        values = [value for boot in s.boots.values() for value in boot]
        unit = scale(s.unit, material.result.clock, values)
        statistics = (min(values), median(values), fmean(values), max(values), pstdev(values))
        texts = (s.kernel, point_text(s.point), f"{len(s.boots)}", f"{len(values):,}")
        cells = (*map(Cell, texts), *(Cell(unit.text(value)) for value in statistics))
        found.setdefault((s.workload, s.metric, unit.unit), []).append(DataRow(s.kernel, "", cells))
    bodies = tuple(
        DataRows(metric, f"{metric_name(material.workloads, workload, metric)} ({unit})", tuple(rows))
        for (workload, metric, unit), rows in found.items()
    )
    title = "The samples of each kernel in figures"
    return LongTable(title, columns, frozenset(("kernel", "point")), bodies)
