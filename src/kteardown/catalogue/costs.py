"""What a release of many objects costs, from what the hunt measured for few.

The hunt has measured a kind with up to six numbers of objects. Between them the cost is
interpolated as a power law; the straight line between two of them is the high end. Beyond them, the
straight line through the last two goes on if the growth is linear. If it is superlinear, it is the
parabola through the last three: the share that is linear becomes smaller with more objects, so the
exponent rises towards 2. The low end is then the power law with the smallest exponent of the last
doubling.

How wide the range is beyond them comes from the measured costs themselves: of each, the last number
was left out and predicted from the others (``tests/unit/catalogue/test_costs.py`` does it again).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, log2
from typing import Literal

_SPREAD = 0.03
"""Of a cost at a number that was measured: how much it changes between boots and layouts."""
_LINEAR_SPREAD = 0.06
_CURVE_SPREAD = 0.1
"""How much wider the range becomes with each doubling beyond the last number."""
_STEEP = 1.05
"""A cost with a larger exponent is not surely linear, whatever the verdict on all of it is."""


@dataclass(frozen=True)
class MeasuredCost:
    """What the release of a kind costs on one kernel (``work``, in instructions), or what memory
    its objects keep (``held``, in kB).

    ``costs`` are those of ``sizes``. ``is_whole``: whether they are all instructions; if not, a
    part is left out whose growth is not known. ``sleeps_in``: the function in which the release of
    each object sleeps, or empty.
    ``result`` is the published result.
    """

    kind: str
    way: str
    cost: Literal["work", "held"]
    release: str
    series: str
    verdict: str
    sizes: Sequence[int]
    costs: Sequence[float]
    exponent_ci: Sequence[float]
    is_whole: bool
    sleeps_in: str
    result: str

    @property
    def is_linear(self) -> bool:
        return self.verdict == "linear"

    def at(self, number: float) -> tuple[float, float, float]:
        """Return the low end, the middle and the high end of the cost of ``number`` objects."""
        if number <= self.sizes[-1]:
            value, chord = self._between(number)
            return value / (1 + _SPREAD), value, chord * (1 + _SPREAD)
        low, value, high = self._line(number) if self.is_linear else self._curve(number)
        doublings = log2(number / self.sizes[-1])
        wider = 1 + _SPREAD + doublings * (_LINEAR_SPREAD if self.is_linear else _CURVE_SPREAD)
        return low / wider, value, high * wider

    def _between(self, number: float) -> tuple[float, float]:
        """Return the power law between two numbers, and the straight line, which is higher."""
        points = [(0, self._constant()), *zip(self.sizes, self.costs, strict=True)]
        for (start, first), (end, last) in pairwise(points):
            if number <= end:
                chord = first + (last - first) * (number - start) / (end - start)
                if start == 0 or first <= 0 or last <= first:
                    return chord, chord
                power = first * (number / start) ** _exponent((start, end), (first, last))
                return min(power, chord), max(power, chord)
        raise AssertionError(number)

    def _constant(self) -> float:
        """Return the cost of a release of nothing, by the first two numbers."""
        first = _slope(self.sizes[:2], self.costs[:2])
        return max(0.0, self.costs[0] - first * self.sizes[0])

    def _line(self, number: float) -> tuple[float, float, float]:
        beyond = number - self.sizes[-1]
        starts = range(max(0, len(self.sizes) - 3), len(self.sizes) - 1)
        slopes = [_slope(self.sizes[at : at + 2], self.costs[at : at + 2]) for at in starts]
        ends = [self.costs[-1] + slope * beyond for slope in slopes]
        high = max(ends)
        if self.exponent_ci[0] > _STEEP:
            high = max(high, self._power(number, self.exponent_ci[1]))
        return min(ends), ends[-1], high

    def _curve(self, number: float) -> tuple[float, float, float]:
        low, high = (self._power(number, exponent) for exponent in self.exponent_ci)
        middle = self._power(number, _exponent(self.sizes[-2:], self.costs[-2:]))
        value = max(middle, self._parabola(number))
        return min(low, value), value, max(high, value)

    def _power(self, number: float, exponent: float) -> float:
        """Return the power law through the last number."""
        return self.costs[-1] * float((number / self.sizes[-1]) ** exponent)

    def _parabola(self, number: float) -> float:
        """Return the value at ``number`` of the parabola through the last three points, by Newton's
        form; without three points, the power law of 2."""
        if len(self.sizes) < 3:
            return self._power(number, 2)
        x0, x1, x2 = self.sizes[-3:]
        y0, y1, y2 = self.costs[-3:]
        first = (y1 - y0) / (x1 - x0)
        second = ((y2 - y1) / (x2 - x1) - first) / (x2 - x0)
        return y0 + first * (number - x0) + second * (number - x0) * (number - x1)


def _slope(sizes: Sequence[int], costs: Sequence[float]) -> float:
    return (costs[1] - costs[0]) / (sizes[1] - sizes[0])


def _exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """Return the exponent between two points."""
    return log(costs[1] / costs[0]) / log(sizes[1] / sizes[0])
