"""Where the level of a line of figures shifts."""

import heapq
import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FEWEST_WALL = 5
"""With fewer figures in real time, the noise cannot be estimated."""
_REAL_GAIN = 2.5
_EXACT_NOISE = 2.0
_TO_SD = 1.4826 / math.sqrt(2)
"""Converts the median absolute difference of two normal values to the standard deviation of one."""
_MEDIAN_ERROR = 1.2533
"""The standard error of a median divided by that of a mean, for normal values."""
_TINY = 1e-9
"""Relative; smaller than any difference of two exact figures."""


def change_points(
    figures: Sequence[Sequence[float]], *, exact: bool, least: float
) -> tuple[tuple[int, ...], str]:
    """Return the indexes of the first figure after each change of level, and why there was no
    search, if so.

    ``figures`` has the values of the boots of every run, in order; a run is represented by their
    median. ``exact``: instruction counts, which another run of the same kernel would repeat; a
    single figure is then enough for a level, while in real time two are needed. A change smaller
    than ``least`` (0.02 is two percent) is ignored.
    """
    if len(figures) < 2:
        return (), "there is only one figure"
    if not exact and len(figures) < FEWEST_WALL:
        return (), f"the noise of fewer than {FEWEST_WALL} figures in real time cannot be estimated"
    medians = np.array([np.median(boots) for boots in figures], dtype=np.float64)
    largest = float(np.max(np.abs(medians))) or 1.0
    levels = np.log(medians) if (medians > 0).all() else medians / largest
    # The relative standard errors of the medians of runs, from their boots.
    errors = [
        _MEDIAN_ERROR * float(np.std(np.log(boots), ddof=1)) / math.sqrt(len(boots))
        for boots in figures
        if len(boots) > 1 and min(boots) > 0
    ]
    noise = float(np.sqrt(np.mean(np.square(errors)))) if errors else 0.0
    if not exact:
        noise = max(noise, _TO_SD * float(np.median(np.abs(np.diff(levels)))))
    noise = max(noise, _TINY)
    gain = 2 * (_EXACT_NOISE * noise) ** 2 if exact else _REAL_GAIN * noise
    indexes = segment(levels, gain * math.log(len(levels)), exact=exact)
    return tuple(_large_enough(levels, indexes, least)), ""


def segment(levels: NDArray[np.float64], penalty: float, *, exact: bool) -> list[int]:
    """Return the first index of every segment but the first, of the segmentation with the least
    cost.

    The cost is that of the segments (see the module), and ``penalty`` for each of them. A segment
    has at least one figure if ``exact``, else two.
    """
    shortest = 1 if exact else 2
    count = len(levels)
    costs_of = _squares if exact else _deviations
    best = np.full(count + 1, math.inf)
    before = [0] * (count + 1)
    best[0] = 0.0
    for end in range(shortest, count + 1):
        totals = best[: end - shortest + 1] + costs_of(levels[:end])[: end - shortest + 1]
        before[end] = int(np.argmin(totals))
        best[end] = totals[before[end]] + penalty
    starts = [before[count]]
    while starts[-1]:
        starts.append(before[starts[-1]])
    return starts[-2::-1]


def _squares(levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of squared deviations from the mean of each part that ends with the last
    level, by the start of the part."""
    # Distances from the last level: the cost of equal levels is then exactly 0.
    away = levels[::-1] - levels[-1]
    numbers = np.arange(1, len(levels) + 1)
    costs = np.cumsum(away**2) - np.cumsum(away) ** 2 / numbers
    return np.maximum(costs, 0)[::-1]


def _deviations(levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of absolute deviations from the median of each part that ends with the last
    level, by the start of the part."""
    away = levels - levels[-1]
    # Both halves of the part as heaps, the lower one negative. It has the middle if there is one.
    lower: list[float] = []
    upper: list[float] = []
    below = above = 0.0
    costs = np.empty(len(away))
    for start in range(len(away) - 1, -1, -1):
        # Through the lower half, so that its largest value is never above the upper half.
        value = -heapq.heappushpop(lower, -float(away[start]))
        below += float(away[start]) - value
        heapq.heappush(upper, value)
        above += value
        if len(upper) > len(lower):
            middle = heapq.heappop(upper)
            above -= middle
            heapq.heappush(lower, -middle)
            below += middle
        middle = -lower[0] if len(lower) > len(upper) else 0.0
        costs[start] = above - (below - middle)
    return costs


def _large_enough(levels: NDArray[np.float64], changes: list[int], least: float) -> list[int]:
    """Remove changes below ``least``, the smallest first; the two levels are then merged."""
    kept = list(changes)
    while kept:
        medians = [float(np.median(part)) for part in np.split(levels, kept)]
        steps = [abs(after - before) for before, after in itertools.pairwise(medians)]
        smallest = int(np.argmin(steps))
        if steps[smallest] >= least:
            break
        del kept[smallest]
    return kept
