"""A cost of a kind over the number of its objects, every seed a boot of its own, and exponents of growth."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]

DOUBLING = 1.7
"""Sizes whose ratio is at least this are a doubling; confirmation has sizes with a ratio of about 2."""
POWERS: Array = np.round(np.linspace(-1.0, 5.0, 601), 2)
"""The exponents that are tried; an interval that reaches an end of them is unbounded."""


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

    def at(self, columns: Sequence[int]) -> "Curve":
        """Return only the sizes at these positions, which ascend."""
        return Curve(tuple(self.sizes[c] for c in columns), self.rows[:, list(columns)], self.floor)

    def complete(self) -> "Curve":
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

    def ladder(self) -> "Curve":
        """Return the largest size and, going down, each next one that is at least a doubling apart."""
        columns: list[int] = []
        for column in reversed(range(len(self.sizes))):
            if not columns or self.sizes[columns[0]] >= DOUBLING * self.sizes[column]:
                columns.insert(0, column)
        return self.at(columns)


@dataclass(frozen=True)
class Exponent:
    """An exponent between two one-sided bounds, infinite where the costs give none.

    NaN if neither increment is above zero. ``sizes`` are those from which it was computed.
    """

    sizes: tuple[int, ...]
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def exponent(curve: Curve, first: int, second: int, confidence: float) -> Exponent:
    """Return the exponent from the increments at these positions of a curve without missing costs.

    ``confidence`` is that of each bound. If a cost is a + b * n**p, what it grows by from n = c to n = d is

        ratio(p) = (d**p - c**p) / (b**p - a**p)

    times what it grows by from a to b: for a, b = c and d = N, 2N and 4N, two to the power of p. The exponent
    is the p for which the ratio is that of the increments: 1 for a linear cost and 2 for a square, whatever
    the constant part.

    Its interval has each p for which "second increment - ratio(p) * first increment" does not differ
    significantly from zero by Student's t over the seeds, the inversion of E. Fieller (J. Royal Statistical
    Society B 16, 1954). So an increment of zero needs no logarithm. Each increment may in addition be wrong
    by the floor of its curve, however little the seeds differ: a deterministic clock gives seeds that agree
    to the last digit, and one seed has no spread.
    """
    one, two = curve.increments[:, first], curve.increments[:, second]
    ends = (*curve.sizes[first : first + 2], *curve.sizes[second : second + 2])
    ratios = ratio(ends, POWERS)
    contrasts = two[:, None] - ratios * one[:, None]
    error = half_width(contrasts, confidence) + (1 + ratios) * curve.floor
    middle = contrasts.mean(axis=0)
    not_more, not_less = np.flatnonzero(middle <= error), np.flatnonzero(middle >= -error)
    # Rounded outwards: the bounds themselves are rejected, and so is everything beyond them.
    low = POWERS[max(not_more[0] - 1, 0) if len(not_more) else -1]
    high = POWERS[min(not_less[-1] + 1, len(POWERS) - 1) if len(not_less) else 0]
    grown, more = float(one.mean()), float(two.mean())
    value = math.inf if more > 0 else math.nan
    if grown > 0:
        value = float(np.interp(more / grown, ratios, POWERS))
    return Exponent(
        tuple(dict.fromkeys(ends)),
        value,
        -math.inf if low == POWERS[0] else float(low),
        math.inf if high == POWERS[-1] else float(high),
    )


def ratio(ends: tuple[int | float, ...], powers: Array) -> Array:
    """Return by how much the increment between the last two ``ends`` exceeds that between the first two.

    ``powers`` has the exponents; the result has their shape.
    """
    a, b, c, d = ends
    p = np.where(np.abs(powers) < 1e-9, 1e-9, powers)
    found: Array = (c / a) ** p * np.expm1(p * math.log(d / c)) / np.expm1(p * math.log(b / a))
    return found


def half_width(figures: Array, confidence: float) -> Array:
    """Return how far the mean over seeds, the rows of ``figures``, may be from the truth, to either side.

    Zero for one seed, which does not show how seeds differ.
    """
    seeds = len(figures)
    if seeds < 2:
        return np.zeros(figures.shape[1:])
    t = float(special.stdtrit(seeds - 1, confidence))
    return np.asarray(t * np.std(figures, axis=0, ddof=1) / math.sqrt(seeds))
