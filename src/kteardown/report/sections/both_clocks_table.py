"""Both clocks side by side: a row for each variant and headline metric, then a row for each
point."""

from collections import Counter
from collections.abc import Mapping, Sequence

from kteardown.judge.metrics import is_headline, metric_label, metric_name
from kteardown.model.both_clocks import READINGS, BothClocks, ClockReading, OneClock, Reading
from kteardown.model.clock import CLOCKS
from kteardown.model.judged import Verdict
from kteardown.model.workload import Workload
from kteardown.report.charts import written
from kteardown.report.formatting import WORDS, change_of, decimals, percent, size_of
from kteardown.report.metrics import point_cells
from kteardown.report.sections.fault_lines import fault_lines
from kteardown.report.table import Block, Cell, Table, Text

NO_RATE = 0.25
"""With a larger residual, no single rate is given."""
_TONES: Mapping[Reading, Verdict] = {
    "disagree": "worse",
    "exact only": "inconclusive",
    "wall only": "inconclusive",
    "undecided": "inconclusive",
}
"""The tones of readings; where the clocks agree it is that of the verdict."""

_Readings = Sequence[ClockReading]


def clock_faults(both: BothClocks) -> list[Cell]:
    """Return what failed or was not compared on either clock."""
    failed = [
        Cell(f"{CLOCKS[clock]}: {line.text}", line.tone)
        for clock, result in both.results.items()
        for line in fault_lines(result)
    ]
    return failed or (
        [] if both.readings else [Cell("nothing could be compared on both clocks", "inconclusive")]
    )


def clock_summary(both: BothClocks, workloads: Mapping[str, Workload]) -> Table | None:
    """Return the table of the headline metrics over all their points, a disagreement first; None if
    empty."""
    metrics = [
        (m, next(rows for rows in _groups(both, workloads) if _key(rows[0]) == _key(m)))
        for m in both.metrics
        if is_headline(workloads, m.workload, m.metric)
        and not any(result.broken(m.variant) for result in both.results.values())
    ]
    rows = []
    # Opposite points are never hidden by what the metric is over all of them.
    for m, points in sorted(metrics, key=lambda metric: min(map(_order, (metric[0], *metric[1])))):
        counts = Counter(r.reading for r in points)
        counted = ", ".join(
            f"{counts[reading]} {reading}" for reading in READINGS if counts[reading]
        )
        sides = (_text(m.instructions, 1), _text(m.wall, 1))
        readings = ((m.reading, _tone(m)), (counted, _tone(min(points, key=_order))))
        rows.append((metric_label(m.metric, m.statistic), m.variant, *sides, *readings))
    columns = ("metric", "variant", "instructions", "wall clock", "reading", "points")
    title = "Headline metrics over all their points, change on both clocks"
    block = Block.of(columns, rows, left=("metric", "variant", "reading", "points"))
    return Table(title, block) if rows else None


def clock_tables(
    both: BothClocks, workloads: Mapping[str, Workload], *, narrow: bool = False
) -> list[Table]:
    """Return the table of the headline metrics, then one for each of them and variant, with all
    points.

    ``narrow``: for a cover letter, without the column ``mde``.
    """
    summary = clock_summary(both, workloads)
    tables = [_table(rows, workloads, narrow=narrow) for rows in _groups(both, workloads)]
    return [summary, *tables] if summary else tables


def rate_sentences(both: BothClocks, workloads: Mapping[str, Workload]) -> list[str]:
    """Return what an instruction takes on this machine, for each headline metric that has a
    rate."""
    sentences = []
    for rate in both.rates:
        if not is_headline(workloads, rate.workload, rate.metric):
            continue
        name = metric_name(workloads, rate.workload, rate.metric)
        sentences += written("rate", name, rate, rate.residual > NO_RATE)
    return sentences


def clock_notes(both: BothClocks, workloads: Mapping[str, Workload]) -> tuple[str, ...]:
    """Return what the readings mean, the rates, and the notes of the comparison."""
    return (WORDS["readings"], *rate_sentences(both, workloads), *both.notes)


def least_seen(both: BothClocks, workloads: Mapping[str, Workload]) -> str:
    """Return the smallest changes that the wall clock could have seen; empty if no comparison has
    one."""
    return _least([r for rows in _groups(both, workloads) for r in rows])


def _groups(both: BothClocks, workloads: Mapping[str, Workload]) -> list[_Readings]:
    groups: dict[tuple[str, ...], list[ClockReading]] = {}
    for variant in dict.fromkeys(r.variant for r in both.readings):
        for r in both.readings:
            if r.variant == variant and is_headline(workloads, r.workload, r.metric):
                groups.setdefault(_key(r), []).append(r)
    return list(groups.values())


def _key(r: ClockReading) -> tuple[str, ...]:
    return r.variant, r.workload, r.metric, r.statistic


def _order(r: ClockReading) -> int:
    return READINGS.index(r.reading)


def _tone(r: ClockReading) -> Verdict | None:
    if r.reading == "agree":
        return r.instructions.verdict if r.instructions else None
    return _TONES[r.reading]


def _table(rows: _Readings, workloads: Mapping[str, Workload], *, narrow: bool) -> Table:
    first = rows[0]
    name = metric_name(workloads, first.workload, first.metric, first.statistic)
    exact = [r.instructions for r in rows]
    wall = [r.wall for r in rows]
    digits = [decimals([side for side in sides if side is not None]) for sides in (exact, wall)]
    names, keys = point_cells([r.point for r in rows])
    columns = (*names, "instructions", "wall clock", *(() if narrow else ("mde",)), "reading")
    lines = []
    for key, r in zip(keys, rows, strict=True):
        seen = _least_seen(r)
        mde = () if narrow else (None if seen is None else percent(seen),)
        sides = (_text(r.instructions, digits[0]), _text(r.wall, digits[1]))
        lines.append((*key, *sides, *mde, (r.reading, _tone(r))))
    label = metric_label(first.metric, first.statistic)
    title = (
        f"{first.workload}: {name} ({label}) with {first.variant}, change on both clocks; "
        f"{first.better} is better"
    )
    # The reasons of the readings, and the smallest changes that the wall clock could have seen.
    reasons = Counter((r.reading, r.reason) for r in rows if r.reason)
    ordered = sorted(reasons.items(), key=lambda item: READINGS.index(item[0][0]))
    notes = [f"{count} {reading}: {reason}" for (reading, reason), count in ordered]
    notes += filter(None, [_least(rows)])
    return Table(title, Block.of(columns, lines, left=("reading",)), notes=tuple(notes))


def _text(side: OneClock | None, digits: int) -> Text:
    if side is None:
        return None
    return change_of(side.ratio, side.ci, exact=side.exact, decimals=digits), side.verdict


def _least(rows: _Readings) -> str:
    ratios = sorted((ratio for r in rows if (ratio := _least_seen(r))), key=size_of)
    if not ratios:
        return ""
    low = percent(ratios[0])
    high = percent(ratios[-1])
    span = low if low == high else f"{low} to {high}"
    return f"smallest change that the wall clock could have seen (80% power): {span}"


def _least_seen(r: ClockReading) -> float | None:
    """Return the smallest change that the wall clock could have seen, as a ratio.

    Its direction is that of the exact change: a factor of 2 is +100%, and -50% if the exact change
    is lower.
    """
    if r.wall is None or r.wall.mde is None:
        return None
    side = r.instructions or r.wall
    lower = side.ratio is not None and side.ratio < 1
    return 1 / (1 + r.wall.mde) if lower else 1 + r.wall.mde
