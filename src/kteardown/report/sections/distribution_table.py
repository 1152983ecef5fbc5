"""The tables of distributions: a row per point, with the percentiles of all values of each kernel."""

from collections.abc import Mapping, Sequence

from kteardown.model.result import Distribution, Result
from kteardown.model.workload import Workload
from kteardown.report.comparison_groups import point_cells, point_key
from kteardown.report.formatting import Scale, parameter, percent, scale
from kteardown.report.metric_names import metric_name
from kteardown.report.table import Block, Table


def distribution_tables(result: Result, workloads: Mapping[str, Workload]) -> list[Table]:
    """Return a table for each histogram, base first."""
    found: dict[tuple[str, str], list[Distribution]] = {}
    for distribution in result.distributions:
        if result.is_asked_for(distribution.kernel):
            found.setdefault((distribution.workload, distribution.metric), []).append(distribution)
    return [_table(result, workloads, workload, metric, mine) for (workload, metric), mine in found.items()]


def _table(
    result: Result,
    workloads: Mapping[str, Workload],
    workload: str,
    metric: str,
    mine: Sequence[Distribution],
) -> Table:
    values = [value for one in mine for value in one.percentiles.values()]
    unit = scale(mine[0].unit, result.clock, values)
    points = list({point_key(one.point): one.point for one in mine}.values())
    names, keys = point_cells(points)
    blocks = []
    for kernel in dict.fromkeys(one.kernel for one in mine):
        of_kernel = {point_key(one.point): one for one in mine if one.kernel == kernel}
        cells = [of_kernel.get(point_key(point)) for point in points]
        percents = list(mine[0].percentiles)
        columns = (f"{kernel}: n", *(f"p{name}" for name in percents))
        blocks.append(Block.of(columns, [_row(one, percents, unit) for one in cells]))
    error = percent(1 + max(one.error for one in mine)).lstrip("+")
    note = f"all values of all boots together, without intervals; bucket error at most {error}"
    name = metric_name(workloads, workload, metric)
    title = f"{workload}: {name} ({metric}) of all boots together, in {unit.unit}"
    return Table(title, Block.of(names, keys), tuple(blocks), notes=(note,))


def _row(one: Distribution | None, percents: Sequence[str], unit: Scale) -> Sequence[str]:
    if one is None:
        return ("-",) * (len(percents) + 1)
    return (parameter(one.n), *(unit.text(one.percentiles[name]) for name in percents))
