"""Times of predictions, in words."""

from __future__ import annotations

from kteardown.hunt.result import CostPrediction, Rate

_TIMES = (("days", 86_400), ("h", 3_600), ("min", 60))


def predicted_time(found: CostPrediction, rate: Rate) -> str:
    """Return the predicted time with its upper bound: ``3.4 h (up to 4.2 days)``."""
    _, middle, high = found.instructions
    time = rough_time(middle * rate.ns / 1e9)
    highest = time if high is None else rough_time(high * rate.ns / 1e9)
    return f"{time}{f' (up to {highest})' if highest != time else ''}"


def rough_time(seconds: float) -> str:
    """Return a time with no more digits than an extrapolation has: ``66 s``, ``9.3 h``, ``19 days``."""
    unit, size = next(((unit, size) for unit, size in _TIMES if seconds >= 2 * size), ("s", 1))
    value = seconds / size
    if value < 0.001:
        return "<0.001 s"
    return f"{value:,.0f} {unit}" if value >= 10 else f"{value:.2g} {unit}"
