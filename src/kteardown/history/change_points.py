"""Where a series of figures changes its level.

The segmentation is optimal: PELT (Killick, Fearnhead & Eckley, "Optimal detection of changepoints with a
linear computational cost", JASA 107, 2012), by the library ruptures (Truong, Oudre & Vayatis, "Selective
review of offline change point detection methods", Signal Processing 167, 2020), on the logarithms of the
figures. What a change has to gain depends on the noise ``s`` and the number ``n`` of figures:

- In real time absolute deviations from a level's median count (Bai, "Least absolute deviation estimation of
  a shift", Econometric Theory 11, 1995), so that a lone outlier is no level, and a change has to gain
  ``2.5 s log n``. The factor is set by simulation: the unit tests say how often a change is then seen where
  there is none.
- Counts of instructions have no outliers, and one figure can be a level: squared deviations from its mean,
  and ``2 (2 s)^2 log n``, Schwarz's criterion (Yao, "Estimating the number of change-points via Schwarz'
  criterion", Statistics & Probability Letters 6, 1988) with twice the noise.

The noise is that inside the runs, by the spread of their boots, and in real time at least that from one run
to the next: the median of the successive differences, which a few true changes do not touch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FEWEST_WALL = 5
"""Runs in real time with fewer figures than these have no noise that could be told."""
_REAL_GAIN = 2.5
_EXACT_NOISE = 2.0
_TO_SD = 1.4826 / math.sqrt(2)
"""The median of absolute differences of two normal figures as the standard deviation of one."""
_MEDIAN_ERROR = 1.2533
"""The standard error of a median over that of a mean, for normal figures."""
_TINY = 1e-9
"""Relative: below any difference of two exact figures."""


def change_points(
    figures: Sequence[Sequence[float]], *, exact: bool, least: float
) -> tuple[tuple[int, ...], str]:
    """The indexes of the first figure after each change of level; and why none was looked for, else empty.

    ``figures`` has for every run, in order, the figures of its boots; a run stands for their median.
    ``exact``: a count of instructions, which another run of the same kernel would give again; one figure is
    then enough for a level, in real time it takes two. A change by less than ``least`` (0.02 is two percent)
    is none.
    """
    if len(figures) < 2:
        return (), "one figure has nothing before it"
    if not exact and len(figures) < FEWEST_WALL:
        return (), f"fewer than {FEWEST_WALL} figures in real time have no noise that could be told"
    levels = _levels(figures)
    noise = _inside(figures)
    if not exact:
        noise = max(noise, _TO_SD * float(np.median(np.abs(np.diff(levels)))))
    found = _segment(levels, max(noise, _TINY), exact=exact)
    return tuple(_large_enough(levels, found, least)), ""


def _levels(figures: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """One number a run: the logarithm, or where something is not positive, the share of the typical size."""
    medians = np.array([np.median(boots) for boots in figures], dtype=np.float64)
    if (medians > 0).all():
        return np.log(medians)
    return medians / (float(np.max(np.abs(medians))) or 1.0)


def _inside(figures: Sequence[Sequence[float]]) -> float:
    """The standard error of a run's median by its own boots, relative: root mean square over runs."""
    errors = [
        _MEDIAN_ERROR * float(np.std(np.log(boots), ddof=1)) / math.sqrt(len(boots))
        for boots in figures
        if len(boots) > 1 and min(boots) > 0
    ]
    return float(np.sqrt(np.mean(np.square(errors)))) if errors else 0.0


def _segment(levels: NDArray[np.float64], noise: float, *, exact: bool) -> list[int]:
    # Here, not above: it takes longer to import than most verbs run.
    import ruptures

    gain = math.log(len(levels))
    if exact:
        search = ruptures.Pelt(model="l2", min_size=1, jump=1)
        gain *= 2 * (_EXACT_NOISE * noise) ** 2
    else:
        search = ruptures.Pelt(model="l1", min_size=2, jump=1)
        gain *= _REAL_GAIN * noise
    found = search.fit_predict(levels.reshape(-1, 1), pen=gain)
    return [int(index) for index in found[:-1]]


def _large_enough(levels: NDArray[np.float64], found: list[int], least: float) -> list[int]:
    """Without the changes that are too small to matter, the smallest first: its sides become one level."""
    kept = list(found)
    while kept:
        medians = [float(np.median(part)) for part in np.split(levels, kept)]
        steps = [abs(after - before) for before, after in itertools.pairwise(medians)]
        smallest = int(np.argmin(steps))
        if steps[smallest] >= least:
            break
        del kept[smallest]
    return kept
