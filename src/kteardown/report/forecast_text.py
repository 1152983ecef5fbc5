"""Describe what a plan takes and what it can decide, the first figures, and the verdicts at a
look."""

from collections.abc import Mapping

from kteardown.errors import KteardownError
from kteardown.judge.metrics import headline_rows, is_headline, metric_name
from kteardown.kernels.request import Building
from kteardown.model.experiment import Design
from kteardown.model.plan import DesignPower
from kteardown.model.record import BASE
from kteardown.model.result import Result
from kteardown.model.workload import Workload
from kteardown.progress import InterimResult
from kteardown.report.charts import written
from kteardown.report.formatting import Scale, change, decimals, parameter, scale, verdict_counts
from kteardown.report.sections.growth import growth_lines
from kteardown.report.table import Block, Table
from kteardown.run.forecast import REHEARSAL, Forecast
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load


def building(cost: Building) -> list[str]:
    """Return how many kernels are to be built and how long that takes; empty if none is."""
    return written("building", cost, duration)


def measuring(forecast: Forecast, memory_mb: int, *, at_most: bool = False) -> list[str]:
    """Return how long the boots take and how much memory they need, and what the forecast is based
    on."""
    return written("measuring", forecast, memory_mb, at_most, REHEARSAL, duration)


def look_summary(result: Result, workloads: Mapping[str, Workload]) -> str:
    """Return the verdicts at this look, on one line."""
    rows = [m for m in result.metric_verdicts if is_headline(workloads, m.workload, m.metric)]
    widths = [(row.ci[1] / row.ci[0]) ** 0.5 - 1 for row in rows if row.ci and row.ci[0] > 0]
    (line,) = written(
        "look", result, verdict_counts(row.verdict for row in rows), max(widths, default=None)
    )
    return line


def interim_rows_of(run: RunDir) -> list[InterimResult]:
    """The interim comparisons of a run, by the statistics of the report; empty while data is
    insufficient."""
    from kteardown.analysis.conclude import analyse_run

    try:
        snapshot = load(run)
        return interim_rows(analyse_run(snapshot), snapshot.workloads)
    except KteardownError:
        return []


def lines_of_base(run: RunDir) -> list[str]:
    """Return what one more object costs base, before a variant was measured; empty if no law is
    known."""
    from kteardown.analysis.conclude import analyse_run

    try:
        snapshot = load(run)
        lines = growth_lines(analyse_run(snapshot), snapshot.workloads, BASE)
    except KteardownError:
        return []
    return ["the first figures, of base alone:", *(f"  {line}" for line in lines)] if lines else []


def interim_rows(result: Result, workloads: Mapping[str, Workload]) -> list[InterimResult]:
    """Return one row for each headline metric and variant: its last point, and the verdicts of all
    points."""
    rows = []
    for group, variant, mine, metric in headline_rows(result, workloads):
        last = mine[-1]
        unit = scale(last.unit, result.clock, (last.base.compared, last.changed.compared))
        varying = [name for name in last.point if len({c.point.get(name) for c in mine}) > 1]
        # The verdict over all points, then those of the points.
        whole = f"{metric.verdict}: " if metric is not None and metric.planned > 1 else ""
        row = InterimResult(
            metric=group.name,
            point=" ".join(
                f"{name}={parameter(last.point[name])}" for name in varying or last.point
            ),
            base=_value(last.base.compared, unit),
            variant=variant,
            changed=_value(last.changed.compared, unit),
            change=change(last, decimals(mine)),
            verdict=last.verdict,
            others=whole + verdict_counts(c.verdict for c in mine),
        )
        rows.append(row)
    return rows


def _value(value: float, unit: Scale) -> str:
    return unit.text(value) if unit.unit == "instructions" else f"{unit.text(value)} {unit.unit}"


def duration(seconds: float) -> str:
    """Return ``40 s``, ``6 min`` or ``2.5 h``: no more digits than the accuracy of a forecast."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


_LARGE = 20.0


def power_table(power: DesignPower, design: Design, workloads: Mapping[str, Workload]) -> Table:
    """Return the smallest change of each headline metric, and of one of its points, that can be
    called."""
    unit = "boots" if design.clock == "wall" else "seeds"
    most = "at most " if design.until else ""
    tests = f"{power.tests} test{'s' if power.tests != 1 else ''} of headline metrics"
    named = any(row.run for row in power.rows)
    rows = []
    for row in power.rows:
        name = metric_name(workloads, row.workload, row.metric_name) if row.metric_name else ""
        spread = f"{row.spread:.2g}" if row.spread >= 1 else f"{row.spread:.2%}"
        sizes = (_size(row.metric), _size(row.point))
        shown = name or ("any other" if named else "any")
        rows.append((shown, str(row.points), spread, *sizes, row.run or "assumed"))
    columns = ("metric", "points", "spread", "smallest change", "of one point", "spread from")
    title = (
        f"Smallest change that is found four times in five, with {most}{power.boots} {unit} and "
        f"{tests}"
    )
    notes = ["spread: standard deviation over boots of the logarithm of changed / base"]
    if design.clock == "instructions":
        notes.insert(
            0,
            "where all seeds give the same counts, as they do for most metrics with one CPU, every "
            "change outside the margin is found",
        )
    elif design.clock == "wall":
        notes.append(
            "the A/A twin, which must differ less than the variant, makes the smallest change "
            "somewhat larger"
        )
    return Table(title, Block.of(columns, rows, left=("metric", "spread from")), notes=tuple(notes))


def _size(smallest: float | None) -> str:
    """Return a change as the increase and the decrease that are found: ``+25% or -20%``."""
    if smallest is None:
        return "none"
    if smallest > _LARGE:
        return f"{1 + smallest:,.0f} times" if smallest < 1e4 else "none"
    digits = 1 if smallest < 0.1 else 0
    return f"{smallest:+.{digits}%} or {1 / (1 + smallest) - 1:+.{digits}%}"
