"""The table of releases by several processes at once, and for what they wait."""

from collections import Counter
from collections.abc import Iterable, Iterator

from kteardown.report.formatting import share
from kteardown.report.sections.sharing import data_name
from kteardown.report.table import Block, Table, Text
from kteardown.script.units import digits
from kteardown_hunt.result import ContendedData, HuntResult, OwnersFailure, OwnersResult

_COLUMNS = (
    *("way", "processes", "objects each", "time", "verdict", "lines moved", "locked"),
    *("waits for", "one process"),
)
_LEFT = frozenset(("way", "verdict", "waits for", "one process"))
_ASLEEP = "sleeps"
_EARLIER = ("measured by an earlier version, on the wall clock",)
_NOTES = (
    "time: that of all, relative to one process alone with as many objects, by the clocks of the "
    "CPUs (docs/contention.md); the interval has all seeds and both costs of a moved line, and no "
    "width with one seed",
    "serial: as if they took turns; convoy: longer; parallel: they hinder each other little",
    "lines moved, locked: cache lines that move between CPUs, and locked instructions, for one "
    "object",
    "waits for: the largest share of the time for which CPUs wait: a lock or cache lines, or they "
    "sleep; of memory that is allocated, the functions that take the lock or move the lines",
    "one process: how the cost of its release grows, on the instruction clock",
)


def owners_table(result: HuntResult, *, everything: bool) -> Table | None:
    """Return the table of releases by several processes at once; without ``everything`` only if
    they wait."""
    if not result.owners and not result.owners_failed:
        return None
    shown = [release for release in result.owners if everything or release.waits]
    counts = Counter(release.verdict for release in result.owners)
    is_earlier = any(release.moves_each is None for release in result.owners)
    notes = list(_EARLIER if is_earlier else _NOTES)
    if left := result.owners_left_out:
        ways = "1 way" if left == 1 else f"{left:,} ways"
        notes.append(f"not measured: {ways}, of which too few objects fit, or are too expensive")
    all_verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    return Table(
        "Several processes at once",
        Block.of(
            (*_COLUMNS, *result.against),
            [
                *(_failed_row(failure, len(result.against)) for failure in result.owners_failed),
                *((*_row(release), *_elsewhere(release, result.against)) for release in shown),
            ],
            _LEFT | set(result.against),
        ),
        notes=(f"all: {all_verdicts or 'none'}", *notes),
    )


def _row(release: OwnersResult) -> tuple[Text, ...]:
    return (
        f"{release.kind}, {release.way}",
        f"{release.owners}",
        f"{release.objects:,}",
        f"{release.ratio:.2f} [{release.ci[0]:.2f}, {release.ci[1]:.2f}]",
        (release.verdict, "worse" if release.is_find else None),
        _count(release.moves_each),
        _count(release.locked_each),
        what_is_waited_for(release),
        release.alone,
    )


def _failed_row(failure: OwnersFailure, kernels: int) -> tuple[Text, ...]:
    failed = failure.failed
    figures = (None,) * (len(_COLUMNS) + kernels - 6)
    return (
        f"{failure.kind}, {failure.way}",
        f"{failure.owners}",
        f"{failed.objects:,}",
        None,
        (failed.outcome, "worse"),
        *figures[:2],
        failed.detail,
        *figures[2:],
    )


def _elsewhere(release: OwnersResult, kernels: Iterable[str]) -> Iterator[str]:
    for kernel in kernels:
        there = release.elsewhere.get(kernel)
        yield f"{there.verdict}, {there.ratio:.2f}" if there else ""


def _count(value: float | None) -> str | None:
    return None if value is None else digits(round(value, 2))


def what_is_waited_for(release: OwnersResult) -> str:
    """Return for what the CPUs wait most, with its share: a lock, lines, or asleep.

    If they mostly sleep, it also has what they wait for besides.
    """
    lines = [f"{_described(data)} ({share(data.share)})" for data in release.data[:1]]
    most = max((data.share for data in release.data), default=0.0)
    if release.asleep_share > most:
        lines.insert(0, f"{_ASLEEP} ({share(release.asleep_share)})")
    return "; ".join(lines)


def _described(data: ContendedData) -> str:
    name = data_name(data.name, data.movers)
    return f"{name}, {data.lines:,} lines" if data.lines > 1 else name
