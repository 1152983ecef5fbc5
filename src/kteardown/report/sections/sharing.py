"""Which functions and which data move cache lines between CPUs: a column for each number of CPUs,
with base and the variants in one cell."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kteardown.judge.metrics import PointKey
from kteardown.model.record import BASE
from kteardown.model.result import Result
from kteardown.model.sharing import SharingProfile, SharingRow
from kteardown.report.formatting import counted, point_text
from kteardown.report.sections.by_cpus import CPUS, MOST_PLACES, by_other_parameters
from kteardown.report.table import Block, Table

_ROWS = 12
_LEAST = 0.005
"""Fewer moves for one object are not shown: they would be rounded to 0.00."""
_LARGE = 100
"""Smaller counts have two decimals."""
_UNKNOWN = 0
"""The number of CPUs of a run whose points do not have it."""
_CountsOf = Callable[[SharingRow], Mapping[str, float]]


class _Kind(NamedTuple):
    """One of the two tables: its rows, and what is counted besides moves."""

    title: str
    column: str
    rows_of: Callable[[SharingProfile], Sequence[SharingRow]]
    others: Sequence[tuple[str, _CountsOf]]
    left_out: str
    """What a table has only at the largest number of CPUs."""


_KINDS = (
    _Kind(
        "functions that move cache lines",
        "function",
        lambda profile: profile.functions,
        (("locked", lambda row: row.locked),),
        "locked instructions",
    ),
    _Kind(
        "cache lines that move",
        "symbol, or who moves it",
        lambda profile: profile.data,
        (("rounds", lambda row: row.spins), ("lines", lambda row: row.lines)),
        "rounds of waiting and numbers of lines",
    ),
)


@dataclass(frozen=True)
class _Row:
    """A function, or data with one name, at each number of CPUs that has counts of it."""

    name: str
    line: str
    kernels: Sequence[str]
    at: Mapping[int, SharingRow]

    def counts(self, cpus: int, counts_of: _CountsOf) -> list[float | None]:
        """Return the count of each kernel; None if it has none."""
        counts = counts_of(self.at[cpus]) if cpus in self.at else {}
        return [counts.get(kernel) for kernel in self.kernels]

    def moves(self, cpus: int) -> float:
        """Return the moves on the kernel with most of them."""
        return max((count or 0.0 for count in self.counts(cpus, _moves)), default=0.0)


def sharing_tables(result: Result) -> list[Table]:
    """Return two tables for each workload and each setting of the other parameters than the CPUs:
    the functions, and the cache lines."""
    kernels = [name for name in result.kernels if result.is_asked_for(name)]
    by_workload: dict[str, list[SharingProfile]] = {}
    for profile in result.sharing:
        by_workload.setdefault(profile.workload, []).append(profile)

    every: list[Table] = []
    for profiles in by_workload.values():
        tables: list[Table] = []
        places = by_other_parameters([(profile.point, profile) for profile in profiles])
        for place, mine in list(places.items())[-MOST_PLACES:]:
            tables += [t for kind in _KINDS if (t := _table(kind, place, mine, kernels))]

        left = len(places) - MOST_PLACES
        if left > 0 and tables:
            note = f"only in result.json: {counted(left, 'setting')} of the other parameters"
            tables[-1] = replace(tables[-1], notes=(*tables[-1].notes, note))
        every += tables
    return every


def data_name(name: str, movers: Sequence[str]) -> str:
    """Return the symbols in a line, or the functions that move it."""
    return name or ", ".join(f"{mover}()" for mover in movers)


def _table(
    kind: _Kind, place: PointKey, profiles: Sequence[SharingProfile], kernels: Sequence[str]
) -> Table | None:
    """Return one table, with the rows with most moves at the most CPUs; None without a row."""
    by_cpus = {_cpus(profile): profile for profile in sorted(profiles, key=_cpus)}
    counted_on = {name for p in profiles for row in kind.rows_of(p) for name in row.moves}
    names = [name for name in kernels if name in counted_on]
    every = _rows(kind, by_cpus, names)
    shown = [row for row in every if any(row.moves(cpus) >= _LEAST for cpus in by_cpus)][:_ROWS]
    if not shown:
        return None

    # One CPU moves no line.
    moving = [cpus for cpus in by_cpus if any(row.moves(cpus) for row in every)]
    most = max(by_cpus)
    blocks = [_block("moves", cpus, shown, _moves) for cpus in moving]
    blocks += [_block(name, most, shown, counts_of) for name, counts_of in kind.others]
    if any(row.line for row in shown):
        blocks.append(Block.of(("line",), [(row.line,) for row in shown], left=("line",)))

    left_out = list(_left_out(kind, len(every), shown, by_cpus, moving))
    first = profiles[0]
    at = f" at {point_text(dict(place))}" if place else ""
    return Table(
        f"{first.workload}: {kind.title}, for one {first.object}{at}{_compared(names)}",
        Block.of((kind.column,), [(row.name,) for row in shown], left=(kind.column,)),
        tuple(blocks),
        ("; ".join(left_out),) if left_out else (),
    )


def _cpus(profile: SharingProfile) -> int:
    cpus = profile.point.get(CPUS)
    return cpus if isinstance(cpus, int) else _UNKNOWN


def _moves(row: SharingRow) -> Mapping[str, float]:
    return row.moves


def _rows(kind: _Kind, by_cpus: Mapping[int, SharingProfile], kernels: Sequence[str]) -> list[_Row]:
    """Return a row for each name, those with most moves at the most CPUs first."""
    found: dict[tuple[str, tuple[str, ...]], dict[int, SharingRow]] = {}
    for cpus, profile in by_cpus.items():
        for row in kind.rows_of(profile):
            found.setdefault((row.name, () if row.name else row.movers), {})[cpus] = row

    rows = []
    for (name, movers), at in found.items():
        words = data_name(name, movers)
        line = next((row.line for row in reversed(at.values()) if row.line), "")
        rows.append(_Row(words, line, kernels, at))
    descending = sorted(by_cpus, reverse=True)
    rows.sort(key=lambda row: ([-row.moves(cpus) for cpus in descending], row.name))
    return rows


def _block(what: str, cpus: int, rows: Sequence[_Row], counts_of: _CountsOf) -> Block:
    """Return a column with the counts of all kernels at a number of CPUs."""
    column = what if cpus == _UNKNOWN else f"{what}, {counted(cpus, 'CPU')}"
    return Block.of((column,), [(_cell(row.counts(cpus, counts_of)),) for row in rows])


def _cell(values: Sequence[float | None]) -> str | None:
    """Return base and the variants: ``4.55 / 4.93``; None if none of them has a count."""
    return None if {*values} == {None} else " / ".join(map(_digits, values))


def _digits(value: float | None) -> str:
    if value is None:
        return "-"
    if value < _LEAST:
        return f"<{2 * _LEAST:g}" if value else "0"
    return f"{value:.2f}" if value < _LARGE else f"{value:,.0f}"


def _compared(kernels: Sequence[str]) -> str:
    """Return whose counts a cell has, in its form; nothing for base alone."""
    return "" if [*kernels] == [BASE] else f"; {' / '.join(kernels)}"


def _left_out(
    kind: _Kind,
    count: int,
    shown: Sequence[_Row],
    every: Mapping[int, SharingProfile],
    moving: Sequence[int],
) -> Iterator[str]:
    """Yield what is not in the table, which shows some of ``count`` rows."""
    if count > len(shown):
        yield f"and {count - len(shown)} more with fewer moves"
    for cpus in every:
        if cpus not in moving:
            yield f"no line moves with {counted(cpus, 'CPU')}"
    if len(every) > 1:
        yield f"only in result.json: {kind.left_out} with fewer CPUs"
    if any(None in row.counts(cpus, _moves) for row in shown for cpus in moving):
        yield "-: not among those with most moves on that kernel"
