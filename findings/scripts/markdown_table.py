"""Markdown tables that are readable as plain text too."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def markdown(lines: Sequence[Sequence[str]], keys: int, left: Collection[int] = ()) -> str:
    """A table with padded cells: the first ``keys`` columns and those of ``left`` to the left.

    The other columns are figures, and to the right.
    """
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
    to_left = [number < keys or number in left for number in range(len(widths))]
    rule = [
        "-" * width if text else "-" * (width - 1) + ":"
        for width, text in zip(widths, to_left, strict=True)
    ]
    padded = [
        [
            cell.ljust(width) if text else cell.rjust(width)
            for cell, width, text in zip(line, widths, to_left, strict=True)
        ]
        for line in (lines[0], rule, *lines[1:])
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)
