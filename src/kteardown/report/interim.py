"""The comparisons of a run that is not finished, as rows for a live display."""

from collections.abc import Mapping, Sequence

from kteardown.errors import KteardownError
from kteardown.model.result import Comparison, MetricVerdict, Result
from kteardown.model.workload import Workload
from kteardown.progress import InterimResult
from kteardown.report.comparison_groups import Group, headlines, variants, verdict_of
from kteardown.report.formatting import Scale, change, decimals, parameter, scale, verdict_counts
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load


def rows_of(run: RunDir) -> list[InterimResult]:
    """The interim comparisons of a run, by the statistics of the report; empty while data is insufficient."""
    from kteardown.analysis.conclude import analyse_run

    try:
        snapshot = load(run)
        return rows(analyse_run(snapshot), snapshot.workloads)
    except KteardownError:
        return []


def rows(result: Result, workloads: Mapping[str, Workload]) -> list[InterimResult]:
    """Return one row for each headline metric and variant: its last point, and the verdicts of all points."""
    return [
        _row(result, group, mine)
        for group in headlines(result, workloads)
        for mine in map(group.of, variants(result))
        if mine
    ]


def _row(result: Result, group: Group, mine: Sequence[Comparison]) -> InterimResult:
    last = mine[-1]
    unit = scale(last.unit, result.clock, (last.base.compared, last.changed.compared))
    point = mine[-1].point
    varying = [name for name in point if len({c.point.get(name) for c in mine}) > 1] or list(point)
    return InterimResult(
        metric=group.name,
        point=" ".join(f"{name}={parameter(point[name])}" for name in varying),
        base=_value(last.base.compared, unit),
        variant=last.variant,
        changed=_value(last.changed.compared, unit),
        change=change(last, decimals(mine)),
        verdict=last.verdict,
        others=_others(mine, verdict_of(result, group, last.variant)),
    )


def _value(value: float, unit: Scale) -> str:
    return unit.text(value) if unit.unit == "instructions" else f"{unit.text(value)} {unit.unit}"


def _others(mine: Sequence[Comparison], metric: MetricVerdict | None) -> str:
    """Return the verdict over all points, then those of the points."""
    whole = f"{metric.verdict}: " if metric is not None and metric.planned > 1 else ""
    return whole + verdict_counts(comparison.verdict for comparison in mine)
