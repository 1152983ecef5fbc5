"""Figures as they go into a result: cut to the digits that every host computes alike."""

from __future__ import annotations

_DIGITS = 10
"""Significant digits of what logarithms and roots went into: below their rounding on any host."""


def tidy(value: float | None) -> float | None:
    """A figure with ten significant digits; None stays None."""
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def tidy_pair(pair: tuple[float, float] | None) -> tuple[float, float] | None:
    """Both ends of an interval with ten significant digits; None stays None."""
    return None if pair is None else (float(f"{pair[0]:.{_DIGITS}g}"), float(f"{pair[1]:.{_DIGITS}g}"))
