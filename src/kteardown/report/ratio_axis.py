"""The axis of ratios to base, on which all changes of a report are drawn."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kteardown.model.judged import Comparison
from kteardown.report.formatting import percent

_FURTHER = 1 / 3
_LEAST_REACH = 1.1
_TICKS = (
    *(
        0.001,
        0.01,
        0.02,
        0.05,
        0.1,
        0.2,
        0.3,
        0.4,
        0.5,
        0.6,
        0.7,
        0.8,
        0.9,
        0.95,
        0.98,
        0.99,
        0.995,
    ),
    *(
        1.005,
        1.01,
        1.02,
        1.05,
        1.1,
        1.2,
        1.3,
        1.5,
        2,
        3,
        4,
        5,
        10,
        20,
        50,
        100,
        1000,
        10_000,
        100_000,
    ),
)


@dataclass(frozen=True)
class RatioAxis:
    """The axis from ``low`` to ``high``."""

    low: float
    high: float

    @classmethod
    def of(cls, comparisons: Iterable[Comparison]) -> "RatioAxis":
        """Return one axis for the ratios of all ``comparisons``, so that pictures of them can be
        compared.

        A very wide interval does not decide it: what lies further out than a third of the span of
        the ratios that have a verdict is outside, and is drawn with an arrow.
        """
        every = [c for c in comparisons if c.ratio is not None and c.ratio > 0]
        firm = [c for c in every if c.verdict != "inconclusive"] or every
        ratios = [math.log(c.ratio or 1.0) for c in firm]
        low = min([*ratios, 0.0])
        high = max([*ratios, 0.0])
        reach = max(_FURTHER * (high - low), math.log(_LEAST_REACH))
        ends = [end for c in every for end in (c.ratio or 1.0, *(c.ci or ())) if end > 0]
        least = math.exp(low - reach)
        most = math.exp(high + reach)
        return cls(*ratio_range([min(max(end, least), most) for end in ends]))

    def at(self, ratio: float) -> float:
        """Return the position of a ratio, in percent of the width."""
        inside = min(max(ratio, self.low), self.high)
        return round(100 * math.log(inside / self.low) / math.log(self.high / self.low), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return the ticks with their labels."""
        return ratio_ticks(self.low, self.high)


def ratio_range(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the range of an axis of ratios: all of them and 1, with a margin; at least 1% to
    either side."""
    positive = [ratio for ratio in ratios if ratio > 0 and math.isfinite(ratio)]
    low = min([*positive, 0.99])
    high = max([*positive, 1.01])
    room = (high / low) ** 0.04
    return low / room, high * room


def ratio_ticks(low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
    """Return ticks of a logarithmic axis of ratios with their labels: ``-50%``, ``0``, ``2x``."""
    apart = math.log(high / low) / most
    chosen = [1.0]
    for step in sorted(_TICKS, key=lambda step: (abs(math.log(step)), step)):
        if low <= step <= high and all(
            abs(math.log(step / other)) >= apart * 0.8 for other in chosen
        ):
            chosen.append(step)
    ticks = []
    for step in sorted(chosen):
        change = percent(step, 0 if abs(round(step * 100) - step * 100) < 1e-6 else 1)
        ticks.append((step, "0" if step == 1 else f"{step:,.0f}x" if step >= 3 else change))
    return ticks
