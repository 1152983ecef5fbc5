"""The exponent of growth from two increments of a cost, with its interval.

If a cost is a + b * n**p, what it grows by from n = c to n = d is

    ratio(p) = (d**p - c**p) / (b**p - a**p)

times what it grows by from a to b: for a, b = c and d = N, 2N and 4N, two to the power of p. The exponent is
the p for which the ratio is that of the increments: 1 for a linear cost and 2 for a square, whatever the
constant part.

Its interval has each p for which "second increment - ratio(p) * first increment" does not differ
significantly from zero by Student's t over the seeds, the inversion of E. Fieller (J. Royal Statistical
Society B 16, 1954). So an increment of zero needs no logarithm. Each increment may in addition be wrong by
the floor of its curve, however little the seeds differ: a deterministic clock gives seeds that agree to the
last digit, and one seed has no spread.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from kteardown.hunt.curve import Array, Curve

POWERS: Array = np.round(np.linspace(-1.0, 5.0, 601), 2)
"""The exponents that are tried; an interval that reaches an end of them is unbounded."""


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

    ``confidence`` is that of each bound.
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
