"""What a curve would cost at a size that was not measured."""

import math
from typing import NamedTuple

import numpy as np

from kteardown_hunt.growth import MIN_SIZES, POWERS, Curve, exponent, half_width, ratio


class _Further(NamedTuple):
    """What the cost grows by beyond the largest size, and by how much the doubling in the middle is
    off."""

    low: float
    middle: float
    high: float
    misfit: float


def predict(curve: Curve, at: float, confidence: float = 0.95) -> tuple[float, float, float] | None:
    """Return the low end, the middle and the high end of the cost of ``at`` objects, in the curve's
    unit.

    None with fewer than four sizes a doubling apart, or without growth at the last one. The high
    end is infinite if the exponent has no upper bound. ``confidence`` is that of each one-sided
    bound. Raises ValueError if ``at`` is below the largest measured size.

    The growth laws of all sizes (``kteardown.analysis.growth.fit``) refuse beyond four times the
    largest size, and where a cost is linear at first and a square later. A find needs a figure
    there, however rough. So the prediction goes on from the largest size with two laws, both from
    the last four sizes: a power law, a + b * n**p, and a parabola, a + b * n + c * n**2. The middle
    is the one that better fits the increment between the two from which they are made. The ends
    contain both laws with their errors, and the parabola of the last three sizes, for a cost that
    became a square within the four. What is none of these, such as a limit on the length of a list,
    shows only in a measurement.
    """
    steps = curve.complete().ladder()
    if len(steps.sizes) < MIN_SIZES:
        return None
    sizes = steps.sizes
    rows = steps.rows
    last = steps.increments[:, -1]
    if last.mean() <= half_width(last, confidence) + steps.floor:
        return None
    if not at >= sizes[-1]:
        raise ValueError(f"{at:,} objects are fewer than the {sizes[-1]:,} that were measured")
    level = float(rows[:, -1].mean())
    error = float(half_width(rows[:, -1], confidence)) + steps.floor
    power = _power(steps, at, confidence)
    parabola, late = (_parabola(steps, at, position, confidence) for position in (-3, -2))
    middle = min(power, parabola, key=lambda law: law.misfit).middle
    low = max(level - error, 0.0) + max(0.0, min(power.low, parabola.low, late.low))
    return low, level + middle, level + error + max(power.high, parabola.high, late.high)


def _power(steps: Curve, at: float, confidence: float) -> _Further:
    sizes = steps.sizes
    last = steps.increments[:, -1]
    # Of the last two doublings together.
    fitted = exponent(steps, len(sizes) - 4, len(sizes) - 2, confidence)
    grown = float(last.mean())
    error = float(half_width(last, confidence)) + steps.floor
    powers = np.clip((fitted.low, fitted.value, fitted.high), POWERS[0], POWERS[-1])
    low, middle, high = ratio((*sizes[-2:], sizes[-1], at), powers)
    between = grown / float(ratio(sizes[-3:-1] + sizes[-2:], powers[1:2])[0])
    return _Further(
        max(grown - error, 0.0) * float(low),
        grown * float(middle),
        (grown + error) * float(high) if math.isfinite(fitted.high) else math.inf,
        abs(between - float(steps.increments[:, -2].mean())),
    )


def _parabola(steps: Curve, at: float, position: int, confidence: float) -> _Further:
    """Return the parabola with the slopes of the increments at this position and of the last
    one."""
    sizes = steps.sizes
    increments = steps.increments
    (a, b), (c, d) = sizes[position - 1 : position + 1], sizes[-2:]
    first = increments[:, position] / (b - a)
    last = increments[:, -1] / (d - c)
    # The slope of a chord is that of the parabola in its middle; these are twice the distances.
    apart = c + d - a - b
    beyond = at - c
    inside = sizes[-3] + c - a - b
    further = (at - d) * (last + (last - first) * beyond / apart)
    between = (c - sizes[-3]) * (first + (last - first) * inside / apart)
    floor = steps.floor * (at - d) * ((1 + beyond / apart) / (d - c) + beyond / apart / (b - a))
    error = float(half_width(further, confidence)) + floor
    middle = float(further.mean())
    misfit = abs(float(between.mean()) - float(increments[:, -2].mean()))
    return _Further(middle - error, middle, middle + error, misfit)
