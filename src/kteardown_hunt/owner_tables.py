"""The table of releases by several processes at once, and for what they wait."""

from collections import Counter
from collections.abc import Iterable, Iterator

from kteardown.report.formatting import share
from kteardown.report.table import Block, Table, Text
from kteardown.script.units import digits
from kteardown_hunt.result import ContendedData, HuntResult, OwnersResult

_COLUMNS = (
    *("way", "processes", "objects each", "time", "verdict", "lines moved", "locked"),
    *("waits for", "one process"),
)
_LEFT = frozenset(("way", "verdict", "waits for", "one process"))
_ASLEEP = "sleeps"
_EARLIER = ("measured by an earlier version, on the wall clock",)
_NOTES = (
    "time: that of all, relative to one process alone with as many objects, by the clocks of the "
    "CPUs (docs/contention.md); the interval has all seeds and both costs of a moved line, and is "
    "empty with one seed",
    "serial: as if they took turns; convoy: longer; parallel: they hinder each other little",
    "lines moved, locked: cache lines that move between CPUs, and locked instructions, for one "
    "object",
    "waits for: the lock or the cache line with the largest share of the time for which CPUs wait; "
    "of memory that is allocated, the functions that take the lock or move the line",
    "one process: how the cost of its release grows, on the instruction clock",
)


def owners_table(result: HuntResult, *, everything: bool) -> Table | None:
    """Return the table of releases by several processes at once; without ``everything`` only if
    they wait."""
    if not result.owners:
        return None
    shown = [release for release in result.owners if everything or release.waits]
    counts = Counter(release.verdict for release in result.owners)
    notes = _EARLIER if result.owners[0].moves_each is None else _NOTES
    all_verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    return Table(
        "Several processes at once",
        Block.of(
            (*_COLUMNS, *result.against),
            [(*_row(release), *_elsewhere(release, result.against)) for release in shown],
            _LEFT | set(result.against),
        ),
        notes=(f"all: {all_verdicts}", *notes),
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


def _elsewhere(release: OwnersResult, kernels: Iterable[str]) -> Iterator[str]:
    for kernel in kernels:
        there = release.elsewhere.get(kernel)
        yield f"{there.verdict}, {there.ratio:.2f}" if there else ""


def _count(value: float | None) -> str | None:
    return None if value is None else digits(round(value, 2))


def what_is_waited_for(release: OwnersResult) -> str:
    """Return for what the CPUs wait most, with its share: a lock, a line, or asleep."""
    waits = [(data.share, data_name(data)) for data in release.data]
    waits.append((release.asleep_share, _ASLEEP))
    part, name = max(waits)
    return f"{name} ({share(part)})" if part else ""


def data_name(data: ContendedData) -> str:
    """Return the symbols in the line, or the functions that move it."""
    return data.name or ", ".join(f"{mover}()" for mover in data.movers)
