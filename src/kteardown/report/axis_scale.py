"""Where the ticks of an axis stand, and what they say."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

_ROOM = 0.04
"""Free space at each end, as a part of the axis."""
_MOST_TICKS = 7
_SUFFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_LONG = 1e5
"""An axis to this value or beyond has suffixes; a shorter one has labels as in tables:
``15,000``."""
_MOST_PLACES = 2
"""A label with more decimals is not shorter with a suffix than without."""
_NOTHING = 1e-12
"""Numbers this near to each other are one number on an axis, and so near to 0 they are 0."""


@dataclass(frozen=True)
class AxisScale:
    """``share`` returns the place of a value, from 0 to 1; ``ticks`` are places with their
    labels."""

    share: Callable[[float], float]
    ticks: tuple[tuple[float, str], ...]


def numeric(values: Sequence[float], *, log: bool = False, zero: bool = False) -> AxisScale:
    """Return an axis of numbers that has all ``values``, and 0 too with ``zero``."""
    finite = [float(value) for value in values if math.isfinite(value) and (value > 0 or not log)]
    low = min(finite, default=0.0)
    high = max(finite, default=1.0)
    if zero and not log:
        low = min(low, 0.0)
        high = max(high, 0.0)
    if log:
        low = math.log10(low)
        high = math.log10(high)
    if math.isclose(low, high, rel_tol=1e-9, abs_tol=_NOTHING):
        half = 0.5 * abs(low) if abs(low) > _NOTHING else 0.5
        low = low - half
        high = high + half
    room = _ROOM * (high - low)
    start = low if zero and low == 0 else low - room
    end = high + room

    def share(value: float) -> float:
        place = (math.log10(value) if value > 0 else start) if log else float(value)
        return min(1.0, max(0.0, (place - start) / (end - start)))

    decades = _decades(start, end) if log else []
    marks = decades
    if not decades:
        # Round values at equal distances: steps of 1, 2 or 5 of a power of ten.
        least, most = (10**start, 10**end) if log else (start, end)
        rough = (most - least) / _MOST_TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(times * power for times in (1, 2, 5, 10) if times * power >= rough)
        marks = [
            n * step
            for n in range(math.ceil(least / step - 1e-9), math.floor(most / step + 1e-9) + 1)
        ]
    # Those of a logarithmic axis have all sizes, so each has a suffix of its own: ``0.5``, ``5k``,
    # ``1M``.
    texts = (
        [text for mark in marks for text in _labels([mark], long=0)] if decades else _labels(marks)
    )
    return AxisScale(share, tuple(zip(map(share, marks), texts, strict=True)))


def _decades(low: float, high: float) -> list[float]:
    """Return powers of ten between two exponents, with twice and five times them where there is
    room.

    Empty if there are fewer than two.
    """
    times = (1,) if high - low > 3 else (1, 2, 5)
    marks = [
        by * 10.0**power
        for power in range(math.floor(low), math.ceil(high) + 1)
        for by in times
        if low <= math.log10(by) + power <= high
    ]
    return marks[:: 1 + len(marks) // (_MOST_TICKS + 2)] if len(marks) > 1 else []


def _labels(marks: Sequence[float], long: float = _LONG) -> list[str]:
    """Return labels in one style: as in tables, or from ``long`` all with the suffix of the
    largest."""
    largest = max(map(abs, marks), default=0.0)
    fitting = [entry for entry in _SUFFIXES if largest >= max(entry[0], long)]
    by, suffix = fitting[0] if fitting else (1.0, "")
    step = min((after - before for before, after in pairwise(marks)), default=largest)
    if _places(step / by) > _MOST_PLACES:
        by = 1.0
        suffix = ""
    places = _places(step / by)
    texts = [f"{mark / by:,.{places}f}" for mark in marks]
    short = [text.rstrip("0").rstrip(".") if places else text for text in texts]
    return [text + suffix if mark else "0" for text, mark in zip(short, marks, strict=True)]


def _places(step: float) -> int:
    """Return how many decimals a multiple of a round step has."""
    return max(0, -math.floor(math.log10(step) + 1e-9)) if step else 0
