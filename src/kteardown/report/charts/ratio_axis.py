"""The logarithmic axis of ratios of the pictures in a page, and the place of a comparison on it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kteardown.model.result import Comparison
from kteardown.report.charts.figure import ratio_ticks


@dataclass(frozen=True)
class RatioMark:
    """A ratio and its interval, in percent of the width.

    ``less`` and ``more`` say that it goes on beyond the left and the right end, where an arrow is.
    """

    x: float
    low: float
    high: float
    less: bool
    more: bool


@dataclass(frozen=True)
class RatioAxis:
    """The axis from ``low`` to ``high``."""

    low: float
    high: float

    def at(self, ratio: float) -> float:
        """Return the position of a ratio, in percent of the width."""
        inside = min(max(ratio, self.low), self.high)
        return round(100 * math.log(inside / self.low) / math.log(self.high / self.low), 2)

    def mark(self, c: Comparison) -> RatioMark:
        """Return the place of a comparison that has a ratio."""
        ratio = c.ratio or 1.0
        low, high = c.ci or (ratio, ratio)
        return RatioMark(
            self.at(ratio),
            self.at(low),
            self.at(high),
            less=min(ratio, low) < self.low,
            more=max(ratio, high) > self.high,
        )

    def ticks(self, most: int = 5) -> tuple[tuple[float, str], ...]:
        """Return the positions of the ticks and their labels."""
        ticks, texts = ratio_ticks(self.low, self.high, most=most)
        return tuple((self.at(tick), text) for tick, text in zip(ticks, texts, strict=True))
