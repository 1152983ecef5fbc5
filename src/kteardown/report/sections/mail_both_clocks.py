"""A run on both clocks as plain text for a mail: what each clock says of each headline metric, and
how they relate."""

from collections.abc import Mapping, Sequence

from kteardown.judge.metrics import is_headline, metric_name
from kteardown.model.both_clocks import READINGS, BothClocks, ClockReading, OneClock, Reading
from kteardown.model.workload import Workload
from kteardown.report.formatting import change_of, decimals
from kteardown.report.metrics import point_cells
from kteardown.report.sections.mail_tables import MailTable, kept_rows
from kteardown.report.table import Block
from kteardown.visible import on_one_line

_MEANINGS: Mapping[Reading, str] = {
    "agree": "both clocks say better, both worse, or both the same",
    "exact only": "only instructions change, though the wall clock could have shown it",
    "wall only": "only the time changes, though the instructions could have shown it",
    "disagree": "opposite directions",
    "undecided": "a clock is inconclusive",
}


def clock_averages(both: BothClocks, workloads: Mapping[str, Workload]) -> list[str]:
    """Return the change of each headline metric over all its points, on each clock."""
    return [
        f"{_title(reading, workloads)}: instructions {_text(reading.instructions)}, wall clock "
        f"{_text(reading.wall)}: {reading.reading}"
        for reading in _shown(both, both.metrics, workloads)
    ]


def clock_mail_tables(
    both: BothClocks, workloads: Mapping[str, Workload], most: int, most_rows: int
) -> list[MailTable]:
    """Return at most ``most`` tables, each of a headline metric and variant, with what both clocks
    say at each point."""
    groups: dict[str, list[ClockReading]] = {}
    for reading in _shown(both, both.readings, workloads):
        groups.setdefault(_title(reading, workloads), []).append(reading)
    return [_table(title, rows, most_rows) for title, rows in list(groups.items())[:most]]


def readings_legend(
    both: BothClocks, workloads: Mapping[str, Workload], tables: Sequence[MailTable]
) -> str:
    """Return what the readings mean of the averages and of ``tables``; empty without one."""
    averages = _shown(both, both.metrics, workloads)
    in_tables = {row[-1].text for table in tables for row in table.block.rows}
    occurring = {reading.reading for reading in averages} | in_tables
    texts = [f"{reading}: {_MEANINGS[reading]}" for reading in READINGS if reading in occurring]
    return f"{'. '.join(texts)}." if texts else ""


def _shown(
    both: BothClocks, readings: Sequence[ClockReading], workloads: Mapping[str, Workload]
) -> list[ClockReading]:
    return [
        reading
        for reading in readings
        if is_headline(workloads, reading.workload, reading.metric)
        and not any(result.broken(reading.variant) for result in both.results.values())
    ]


def _title(reading: ClockReading, workloads: Mapping[str, Workload]) -> str:
    name = metric_name(workloads, reading.workload, reading.metric, reading.statistic)
    return f"{on_one_line(reading.variant)}: {name}"


def _table(title: str, rows: Sequence[ClockReading], most_rows: int) -> MailTable:
    kept = kept_rows([reading.reading == "disagree" for reading in rows], most_rows)
    names, keys = point_cells([reading.point for reading in rows])
    digits = [
        decimals([side for side in sides if side is not None])
        for sides in ([r.instructions for r in rows], [r.wall for r in rows])
    ]
    cells = [
        (*key, _text(r.instructions, digits[0]), _text(r.wall, digits[1]), r.reading)
        for number, (key, r) in enumerate(zip(keys, rows, strict=True))
        if number in kept
    ]
    block = Block.of((*names, "instructions", "wall clock", "reading"), cells, left=("reading",))
    left = len(rows) - len(kept)
    notes = (f"{left} more row{'s' * (left > 1)}.",) if left else ()
    return MailTable(f"{title}, change on both clocks, {rows[0].better} is better", block, notes)


def _text(side: OneClock | None, digits: int = 1) -> str:
    if side is None:
        return "-"
    return change_of(side.ratio, side.ci, exact=side.exact, decimals=digits)
