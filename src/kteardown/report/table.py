"""Tables that are independent of the output format, and their division to fit a width."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kteardown.model.judged import Verdict
from kteardown.visible import on_one_line


@dataclass(frozen=True)
class Cell:
    """One cell, on one line. ``tone`` is the verdict that gives it a colour, or None."""

    text: str
    tone: Verdict | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", on_one_line(self.text))


Text = Cell | str | tuple[str, Verdict | None] | None
"""A cell, its text alone or with its tone, or None for a dash."""


@dataclass(frozen=True)
class Block:
    """Columns that stay next to each other. Each row has one cell for each of ``columns``."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left: frozenset[str] = frozenset()
    """The columns of text, which are aligned left; the others are numbers and are aligned right."""

    @classmethod
    def of(
        cls, columns: Sequence[str], rows: Iterable[Sequence[Text]], left: Iterable[str] = ()
    ) -> "Block":
        """Return a block of cells that are given as texts."""
        return cls(tuple(columns), tuple(tuple(map(_cell, row)) for row in rows), frozenset(left))

    @property
    def widths(self) -> tuple[int, ...]:
        """Return the number of characters of each column."""
        cells = zip(*self.rows, strict=True) if self.rows else [()] * len(self.columns)
        return tuple(
            max([len(name), *(len(cell.text) for cell in column)])
            for name, column in zip(self.columns, cells, strict=True)
        )

    def width(self, gap: int) -> int:
        """Return the number of characters of a line with ``gap`` characters between two columns."""
        return sum(self.widths) + gap * (len(self.columns) - 1)


@dataclass(frozen=True)
class Table:
    """A table: ``keys`` identifies the rows, and each of ``blocks`` adds columns, usually of one
    variant.

    ``aside`` is shown next to every block if the width allows it for all of them. Otherwise it is
    in a part of its own, which comes first.
    """

    title: str
    keys: Block
    blocks: tuple[Block, ...] = ()
    notes: tuple[str, ...] = field(default=())
    aside: Block | None = None

    def cut(self, width: int, gap: int) -> list[Block]:
        """Divide the table into blocks of at most ``width`` characters, each with the key columns.

        ``gap`` is the number of characters between two columns. A part is wider than ``width`` only
        where the keys and a single block do not fit.
        """
        keys = [self.keys]
        parts = [[self.keys]]
        if self.aside is not None:
            with_aside = [self.keys, self.aside]
            if all(_joined([*with_aside, block]).width(gap) <= width for block in self.blocks):
                keys = with_aside
                parts = [with_aside]
            else:
                parts = [with_aside, keys]
        for block in self.blocks:
            if len(parts[-1]) > len(keys) and _joined([*parts[-1], block]).width(gap) > width:
                parts.append(keys)
            parts[-1] = [*parts[-1], block]
        return [_joined(part) for part in parts]


class LongRow(NamedTuple):
    """A row with the variant that it is about. ``verdict`` is empty if it has none."""

    variant: str
    verdict: str
    cells: tuple[Cell, ...]


class LongRows(NamedTuple):
    """The rows about one metric; ``name`` has its unit."""

    metric: str
    name: str
    rows: list[LongRow]


class LongTable(NamedTuple):
    """A row for every comparison or group of samples; the columns in ``left`` are aligned left."""

    title: str
    columns: tuple[str, ...]
    left: tuple[str, ...]
    bodies: list[LongRows]


def _cell(text: Text) -> Cell:
    if isinstance(text, Cell):
        return text
    return Cell(*text) if isinstance(text, tuple) else Cell("-" if text is None else text)


def _joined(blocks: Sequence[Block]) -> Block:
    rows = zip(*(block.rows for block in blocks), strict=True)
    return Block(
        columns=tuple(name for block in blocks for name in block.columns),
        rows=tuple(tuple(cell for part in row for cell in part) for row in rows),
        left=frozenset[str]().union(*(block.left for block in blocks)),
    )
