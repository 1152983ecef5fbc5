"""Round figures of a result to the digits that are equal on every host."""

_DIGITS = 10
"""Significant digits of values computed with logarithms and roots, whose last digits depend on the host."""


def tidy(value: float | None) -> float | None:
    """Return ``value`` with ten significant digits; None is kept."""
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def tidy_pair(pair: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return both ends of an interval with ten significant digits; None is kept."""
    return None if pair is None else (float(f"{pair[0]:.{_DIGITS}g}"), float(f"{pair[1]:.{_DIGITS}g}"))
