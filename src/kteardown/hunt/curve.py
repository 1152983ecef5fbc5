"""A cost of a kind over the number of its objects, as measured: every seed is a boot of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DOUBLING = 1.7
"""Sizes whose ratio is at least this are a doubling; confirmation has sizes with a ratio of about 2."""


def spaced(largest: int, count: int, factor: int = 2) -> tuple[int, ...]:
    """Return ``count`` sizes, each exactly ``factor`` times the one before and the last about ``largest``.

    They are at least a tenth away from powers of two: a table that doubles does so there, and then exactly
    once between two sizes, so that its steps double with the sizes and the cost stays linear. The last size
    is never above ``largest``; ValueError if that is below 5 times ``factor`` to the power of ``count`` - 1.
    """
    first = largest // factor ** (count - 1)
    if first < 5:
        raise ValueError(f"{largest:,} is too small for {count} sizes that are a factor of {factor} apart")
    power = 1 << (first.bit_length() - 1)
    if first > 1.8 * power:
        first = int(1.8 * power)
    elif first < 1.1 * power:
        first = int(0.9 * power)
    return tuple(first * factor**i for i in range(count))


@dataclass(frozen=True, eq=False)
class Curve:
    """The cost of ``sizes`` objects: making, synchronous or deferred in instructions, or held memory in kB.

    ``sizes`` are positive and ascend. ``rows`` has the shape (seeds, sizes), and NaN where a trial has no
    figure, because it did not end or was not begun. Differences of two costs below ``floor``, in the unit of
    the costs, are noise of the measurement, such as one timer tick more.

    Raises ValueError if the shapes do not fit, a size is not above the one before, or the floor is negative.
    """

    sizes: tuple[int, ...]
    rows: Array
    floor: float

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or self.rows.shape[1] != len(self.sizes):
            raise ValueError(f"costs have the shape {self.rows.shape}, not (seeds, {len(self.sizes)})")
        if any(b <= a for a, b in pairwise((0, *self.sizes))):
            raise ValueError(f"sizes must be positive and ascend: {self.sizes}")
        if not self.floor >= 0:
            raise ValueError(f"the floor must not be negative: {self.floor}")

    @property
    def increments(self) -> Array:
        """Return what each size costs more than the one before, of the shape (seeds, sizes - 1)."""
        return np.diff(self.rows, axis=1)

    def at(self, columns: Sequence[int]) -> Curve:
        """Return only the sizes at these positions, which ascend."""
        return Curve(tuple(self.sizes[c] for c in columns), self.rows[:, list(columns)], self.floor)

    def complete(self) -> Curve:
        """Return sizes and seeds without a missing cost.

        Seeds without any cost are left out. If two or more remain, two are kept: the size with the most
        missing costs is left out, the largest of several, until two seeds have all others. Then the seeds
        that lack one are left out.
        """
        rows = self.rows[np.isfinite(self.rows).any(axis=1)]
        columns = list(range(len(self.sizes))) if len(rows) else []
        while columns:
            missing = ~np.isfinite(rows[:, columns])
            whole = ~missing.any(axis=1)
            if np.count_nonzero(whole) >= min(2, len(rows)):
                return Curve(self.at(columns).sizes, rows[whole][:, columns], self.floor)
            counts = missing.sum(axis=0)
            columns.pop(int(np.flatnonzero(counts == counts.max())[-1]))
        return Curve((), np.empty((0, 0)), self.floor)

    def ladder(self) -> Curve:
        """Return the largest size and, going down, each next one that is at least a doubling apart."""
        columns: list[int] = []
        for column in reversed(range(len(self.sizes))):
            if not columns or self.sizes[columns[0]] >= DOUBLING * self.sizes[column]:
                columns.insert(0, column)
        return self.at(columns)
