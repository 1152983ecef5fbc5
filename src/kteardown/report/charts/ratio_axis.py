"""The logarithmic axis of ratios, and the picture of a comparison on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kteardown.model.result import Comparison
from kteardown.report.formatting import percent

_FURTHER, _LEAST_REACH = 1 / 3, 1.1
_TICKS = (
    *(0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995),
    *(1.005, 1.01, 1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 2, 3, 4, 5, 10, 20, 50, 100, 1000, 10_000, 100_000),
)
_EDGE = 4
"""A label this near to an end of the axis, in percent, is beside its tick."""


@dataclass(frozen=True)
class RatioAxis:
    """The axis from ``low`` to ``high``."""

    low: float
    high: float

    @classmethod
    def of(cls, comparisons: Iterable[Comparison]) -> RatioAxis:
        """Return one axis for the ratios of all ``comparisons``, so that pictures of them can be compared.

        A very wide interval does not decide it: what lies further out than a third of the span of the ratios
        that have a verdict is outside, and is drawn with an arrow.
        """
        every = [c for c in comparisons if c.ratio is not None and c.ratio > 0]
        firm = [c for c in every if c.verdict != "inconclusive"] or every
        ratios = [math.log(c.ratio or 1.0) for c in firm]
        low, high = min([*ratios, 0.0]), max([*ratios, 0.0])
        reach = max(_FURTHER * (high - low), math.log(_LEAST_REACH))
        ends = [end for c in every for end in (c.ratio or 1.0, *(c.ci or ())) if end > 0]
        least, most = math.exp(low - reach), math.exp(high + reach)
        return cls(*ratio_range([min(max(end, least), most) for end in ends]))

    def at(self, ratio: float) -> float:
        """Return the position of a ratio, in percent of the width."""
        inside = min(max(ratio, self.low), self.high)
        return round(100 * math.log(inside / self.low) / math.log(self.high / self.low), 2)

    def svg(self, c: Comparison, y: float) -> str:
        """Return the mark and the interval of a comparison that has a ratio, ``y`` pixels from the top.

        An arrow at an end says that the ratio or the interval goes on beyond it.
        """
        ratio = c.ratio or 1.0
        low, high = c.ci or (ratio, ratio)
        ends = (
            (min(ratio, low) < self.low, "0", "M-1 0 6-4.5V4.5z"),
            (max(ratio, high) > self.high, "100%", "M1 0-6-4.5V4.5z"),
        )
        arrows = "".join(
            f'<svg x="{x}" y="{y}" overflow="visible"><path d="{path}" class="fill {c.verdict}"/></svg>'
            for beyond, x, path in ends
            if beyond
        )
        place = f'x1="{self.at(low)}%" x2="{self.at(high)}%" y1="{y}" y2="{y}"'
        line = f'<line {place} class="interval {c.verdict}"/>' if low < high else ""
        mark = f'<use href="#mark-{c.verdict}" x="{self.at(ratio)}%" y="{y}"/>'
        return f"{line}{arrows}{mark if self.low < ratio < self.high else ''}"

    def lines(self) -> str:
        """Return a line from top to bottom for each tick, in SVG."""
        return "".join(
            f'<line x1="{x}%" x2="{x}%" y1="0" y2="100%" class="{"none" if text == "0" else "tick"}"/>'
            for x, text in self._ticks()
        )

    def labels(self) -> str:
        """Return the labels of the ticks, in SVG."""
        return "".join(
            f'<text x="{x}%" y="13" text-anchor="{_anchor(x)}">{text}</text>' for x, text in self._ticks()
        )

    def _ticks(self) -> list[tuple[float, str]]:
        return [(self.at(tick), text) for tick, text in ratio_ticks(self.low, self.high)]


def _anchor(x: float) -> str:
    return "start" if x < _EDGE else "end" if x > 100 - _EDGE else "middle"


def ratio_range(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the range of an axis of ratios: all of them and 1, with a margin; at least 1% to either side."""
    known = [ratio for ratio in ratios if ratio > 0 and math.isfinite(ratio)]
    low, high = min([*known, 0.99]), max([*known, 1.01])
    room = (high / low) ** 0.04
    return low / room, high * room


def ratio_ticks(low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
    """Return ticks of a logarithmic axis of ratios with their labels: ``-50%``, ``0``, ``2x``."""
    apart = math.log(high / low) / most
    chosen = [1.0]
    for step in sorted(_TICKS, key=lambda step: (abs(math.log(step)), step)):
        if low <= step <= high and all(abs(math.log(step / other)) >= apart * 0.8 for other in chosen):
            chosen.append(step)
    return [(step, _change(step)) for step in sorted(chosen)]


def _change(ratio: float) -> str:
    if ratio == 1:
        return "0"
    if ratio >= 3:
        return f"{ratio:,.0f}x"
    return percent(ratio, 0 if abs(round(ratio * 100) - ratio * 100) < 1e-6 else 1)
