"""Tables that know no format: what is in them, and how they are cut to a width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kteardown.model.result import Verdict


@dataclass(frozen=True)
class Cell:
    """One cell; ``tone`` is the verdict that colours it, where there is one."""

    text: str
    tone: Verdict | None = None


@dataclass(frozen=True)
class Block:
    """Columns that stay beside each other. ``rows`` hold a cell for each of ``columns``."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left: frozenset[str] = frozenset()
    """Columns of words; the others are numbers and stand on the right."""

    @property
    def widths(self) -> tuple[int, ...]:
        """Characters of each column."""
        cells = zip(*self.rows, strict=True) if self.rows else [()] * len(self.columns)
        return tuple(
            max([len(name), *(len(cell.text) for cell in column)])
            for name, column in zip(self.columns, cells, strict=True)
        )

    def width(self, gap: int) -> int:
        """Characters of a line, with ``gap`` between two columns."""
        return sum(self.widths) + gap * (len(self.columns) - 1)


@dataclass(frozen=True)
class Table:
    """``keys`` name the rows; each of ``blocks`` says something about them (a variant, mostly).

    ``aside`` belongs beside every block: there where each has the room, else in a part of its own, first.
    """

    title: str
    keys: Block
    blocks: tuple[Block, ...] = ()
    notes: tuple[str, ...] = field(default=())
    aside: Block | None = None

    def cut(self, width: int, gap: int) -> list[Block]:
        """The table as blocks of at most ``width`` characters, where one block beside the keys fits.

        ``gap`` is the room between two columns. The keys are repeated in each.
        """
        keys, parts = [self.keys], [[self.keys]]
        if self.aside is not None:
            with_aside = [self.keys, self.aside]
            if all(_beside([*with_aside, block]).width(gap) <= width for block in self.blocks):
                keys, parts = with_aside, [with_aside]
            else:
                parts = [with_aside, keys]
        for block in self.blocks:
            if len(parts[-1]) > len(keys) and _beside([*parts[-1], block]).width(gap) > width:
                parts.append(keys)
            parts[-1] = [*parts[-1], block]
        return [_beside(part) for part in parts]


def _beside(blocks: Sequence[Block]) -> Block:
    rows = zip(*(block.rows for block in blocks), strict=True)
    return Block(
        columns=tuple(name for block in blocks for name in block.columns),
        rows=tuple(tuple(cell for part in row for cell in part) for row in rows),
        left=frozenset[str]().union(*(block.left for block in blocks)),
    )
