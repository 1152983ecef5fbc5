"""Where the level of a line of figures shifts."""

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
    centre, power = (np.mean, 2) if exact else (np.median, 1)
    best = np.full(count + 1, math.inf)
    before = [0] * (count + 1)
    best[0] = 0.0
    useless_from: dict[int, int] = {}
    """By start of a last segment, from which end on a change between the two is always better."""
    for end in range(shortest, count + 1):
        totals = {
            start: best[start] + (np.abs(part - centre(part)) ** power).sum()
            for start in range(end - shortest + 1)
            if best[start] < math.inf and end < useless_from.get(start, count + 1)
            for part in [levels[start:end]]
        }
        before[end] = min(totals, key=totals.__getitem__)
        best[end] = totals[before[end]] + penalty
        for start, total in totals.items():
            if total > best[end]:
                useless_from.setdefault(start, end + shortest)
    starts = [before[count]]
    while starts[-1]:
        starts.append(before[starts[-1]])
    return starts[-2::-1]


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
