"""How much a find costs beyond the sizes that were measured: at the largest number that limits allow.

The growth laws of all sizes (``kteardown.analysis.growth.fit``) refuse beyond four times the largest size,
and where a cost is linear at first and a square later. A find needs a figure there, however rough. So the
prediction goes on from the largest size with two laws, both from the last four sizes: a power law,
a + b * n**p, and a parabola, a + b * n + c * n**2. The middle is the one that better fits the increment
between the two from which they are made. The ends contain both laws with their errors, and the parabola of
the last three sizes, for a cost that became a square within the four. What is none of these, such as a limit
on the length of a list, shows only in a measurement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kteardown.hunt.curve import Array, Curve
from kteardown.hunt.exponent import POWERS, Exponent, exponent, half_width, ratio
from kteardown.hunt.growth import MIN_SIZES


@dataclass(frozen=True)
class CostLaw:
    """The law of a cost that grows, in the unit of its curve.

    ``exponent`` is that of the last two doublings together. ``per_object`` is the median cost over seeds
    divided by the number of objects, at the smallest and at the largest size, constant part included.
    ``one_more`` is what one more object costs at the first and at the last doubling. ``steps`` are the sizes
    a doubling apart.
    """

    exponent: Exponent
    per_object: tuple[float, float]
    one_more: tuple[float, float]
    steps: Curve
    confidence: float

    def predict(self, at: float) -> tuple[float, float, float]:
        """Return the low end, the middle and the high end of the cost of ``at`` objects.

        The high end is infinite if the exponent has no upper bound. Raises ValueError if ``at`` is below the
        largest measured size.
        """
        sizes, rows = self.steps.sizes, self.steps.rows
        if not at >= sizes[-1]:
            raise ValueError(f"{at:,} objects are fewer than the {sizes[-1]:,} that were measured")
        level = float(rows[:, -1].mean())
        error = float(half_width(rows[:, -1], self.confidence)) + self.steps.floor
        laws = (self._power(at), self._parabola(at, -3), self._parabola(at, -2))
        middle = min(laws[:2], key=lambda law: law.misfit).middle
        low = max(level - error, 0.0) + max(0.0, min(law.low for law in laws))
        return low, level + middle, level + error + max(law.high for law in laws)

    def _power(self, at: float) -> _Further:
        sizes, last = self.steps.sizes, self.steps.increments[:, -1]
        grown = float(last.mean())
        error = float(half_width(last, self.confidence)) + self.steps.floor
        powers = np.clip((self.exponent.low, self.exponent.value, self.exponent.high), POWERS[0], POWERS[-1])
        low, middle, high = ratio((*sizes[-2:], sizes[-1], at), powers)
        between = grown / float(ratio(sizes[-3:-1] + sizes[-2:], powers[1:2])[0])
        return _Further(
            max(grown - error, 0.0) * float(low),
            grown * float(middle),
            (grown + error) * float(high) if math.isfinite(self.exponent.high) else math.inf,
            abs(between - self._between),
        )

    def _parabola(self, at: float, position: int) -> _Further:
        """Return the parabola with the slopes of the increments at this position and of the last one."""
        sizes, increments = self.steps.sizes, self.steps.increments
        (a, b), (c, d) = sizes[position - 1 : position + 1], sizes[-2:]
        first, last = increments[:, position] / (b - a), increments[:, -1] / (d - c)
        # The slope of a chord is that of the parabola in its middle; these are twice the distances.
        apart, beyond, inside = c + d - a - b, at - c, sizes[-3] + c - a - b
        further = (at - d) * (last + (last - first) * beyond / apart)
        between = (c - sizes[-3]) * (first + (last - first) * inside / apart)
        floor = self.steps.floor * (at - d) * ((1 + beyond / apart) / (d - c) + beyond / apart / (b - a))
        error = float(half_width(further, self.confidence)) + floor
        middle = float(further.mean())
        return _Further(middle - error, middle, middle + error, abs(float(between.mean()) - self._between))

    @property
    def _between(self) -> float:
        return float(self.steps.increments[:, -2].mean())


@dataclass(frozen=True)
class _Further:
    """What the cost grows by beyond the largest size, and by how much the doubling in the middle is off."""

    low: float
    middle: float
    high: float
    misfit: float


def law(curve: Curve, confidence: float = 0.95) -> CostLaw | None:
    """Return the law; None with fewer than four sizes a doubling apart, or without growth at the last one.

    ``confidence`` is that of each one-sided bound.
    """
    steps = curve.complete().ladder()
    count = len(steps.sizes)
    if count < MIN_SIZES:
        return None
    last = steps.increments[:, -1]
    if last.mean() <= half_width(last, confidence) + steps.floor:
        return None
    n: Array = np.array(steps.sizes, dtype=np.float64)
    costs = np.median(steps.rows, axis=0) / n
    slopes = steps.increments.mean(axis=0) / np.diff(n)
    return CostLaw(
        exponent(steps, count - 4, count - 2, confidence),
        (float(costs[0]), float(costs[-1])),
        (float(slopes[0]), float(slopes[-1])),
        steps,
        confidence,
    )
