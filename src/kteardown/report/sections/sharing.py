"""Which functions and which data move cache lines between CPUs, base and variants side by side."""

from collections.abc import Callable, Sequence

from kteardown.model.result import Result
from kteardown.model.sharing import SharingProfile, SharingRow
from kteardown.report.formatting import point_text
from kteardown.report.table import Block, Table
from kteardown.script.units import digits

_ROWS = 12
_LEAST = 0.005
"""Fewer moves for one object are not shown."""
_ALLOCATED = "allocated: "


def sharing_tables(result: Result) -> list[Table]:
    """Return two tables for each workload and point: the functions, and the cache lines."""
    return [table for profile in result.sharing for table in _tables(profile, [*result.kernels])]


def _tables(profile: SharingProfile, kernels: Sequence[str]) -> list[Table]:
    names = [name for name in kernels if any(name in row.moves for row in profile.functions)]
    at = f" at {point_text(profile.point)}" if profile.point else ""
    return [
        _table(
            f"{profile.workload}: functions that move cache lines, for one {profile.object}{at}",
            ("function", "line"),
            [(row, (row.name, row.line)) for row in profile.functions],
            names,
            ("moves", "locked"),
        ),
        _table(
            f"{profile.workload}: cache lines that move, for one {profile.object}{at}",
            ("symbol, or who moves it",),
            [(row, (_data_name(row),)) for row in profile.data],
            names,
            ("moves", "lines"),
        ),
    ]


def _data_name(row: SharingRow) -> str:
    return row.name or _ALLOCATED + ", ".join(f"{mover}()" for mover in row.movers)


_VALUES: dict[str, Callable[[SharingRow], dict[str, float]]] = {
    "moves": lambda row: row.moves,
    "locked": lambda row: row.locked,
    "lines": lambda row: row.lines,
}


def _table(
    title: str,
    names: tuple[str, ...],
    rows: Sequence[tuple[SharingRow, tuple[str, ...]]],
    kernels: Sequence[str],
    counts: Sequence[str],
) -> Table:
    shown = [(row, keys) for row, keys in rows if max(row.moves.values(), default=0.0) >= _LEAST][
        :_ROWS
    ]
    blocks = [
        Block.of(
            kernels if len(counts) == 1 else [f"{kernel}: {count}" for kernel in kernels],
            [[_digits(_VALUES[count](row).get(kernel)) for kernel in kernels] for row, _ in shown],
        )
        for count in counts
    ]
    left = len(rows) - len(shown)
    notes = (f"and {left} more with fewer moves",) if left else ()
    return Table(
        title, Block.of(names, [keys for _, keys in shown], left=names), tuple(blocks), notes
    )


def _digits(value: float | None) -> str | None:
    return None if value is None else digits(round(value, 2))
