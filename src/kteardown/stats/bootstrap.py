"""The interval of a ratio of medians, by a hierarchical bootstrap over boots and samples.

The boot is the unit of replication: repetitions inside one boot share its layout, its placement and
its luck, and say nothing about the next boot. So boots are resampled first and the samples inside
each drawn boot second (T. Kalibera, R. Jones, "Rigorous benchmarking in reasonable time", ISMM 2013,
section 6; A. Davison, D. Hinkley, "Bootstrap Methods and their Application", 1997, section 3.8).
Base and changed are drawn with the same blocks where blocks exist, so that a drift of the
machine, which falls on a whole block, cancels.

The interval is the log ratio plus and minus Student's t times the bootstrap's standard error, with
boots - 1 degrees of freedom (B. Efron, R. Tibshirani, "An Introduction to the Bootstrap", 1993,
section 12.2; T. Hesterberg, "What Teachers Should Know About the Bootstrap", The American
Statistician 69(4), 2015, on the t interval with a bootstrap standard error). Percentile intervals were
tried against it: they end at the extremes of the boots and cover 60% with two boots and 85% with three, where
this one stays at or above 94% for 2 to 20 boots of normal, skewed and two-peaked noise. BCa needs
a jackknife, which fails for medians.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]
_Indices = NDArray[np.intp]

_FARTHEST = 600.0
"""Logarithms beyond this would leave the range of a float; no interval that wide says anything."""

POWER = 0.8
"""The chance with which an effect as large as ``mde`` is found; the convention."""


@dataclass(frozen=True)
class Boots:
    """The samples of one metric of one kernel at one point: block -> samples of that boot."""

    samples: Mapping[int, Sequence[float]]

    @cached_property
    def medians(self) -> dict[int, float]:
        """The statistic inside a boot: the median of its repetitions, by block."""
        return {block: float(np.median(values)) for block, values in sorted(self.samples.items())}

    @cached_property
    def flat(self) -> Array:
        """Every sample, in the order of the blocks."""
        return np.array([v for block in sorted(self.samples) for v in self.samples[block]], dtype=np.float64)

    @property
    def median(self) -> float:
        """The median over boots of the medians inside them."""
        return float(np.median(list(self.medians.values())))

    def only(self, blocks: Sequence[int]) -> Boots:
        """These blocks alone."""
        return Boots({block: self.samples[block] for block in blocks})


@dataclass(frozen=True)
class Interval:
    """Of a ratio. ``se`` is the standard error of its logarithm, ``p`` that of no change, two-sided.

    ``mde`` is the smallest relative difference that would have been found four times in five.
    """

    low: float
    high: float
    p: float
    se: float
    mde: float


@dataclass
class Resampler:
    """Draws of blocks and of ranks, made once for each shape and shared by all comparisons.

    Sharing is what makes thousands of comparisons fast, and makes the result independent of
    their order. The median of a resample of k sorted values is the value at a rank whose distribution
    depends on k alone, so ranks are drawn, never values.
    """

    seed: int
    draws: int = 2000
    _drawn: dict[tuple[int, ...], _Indices] = field(default_factory=dict)

    def medians(self, boots: Boots, *, stream: int, side: int, within: bool) -> Array:
        """``draws`` resampled medians of ``boots``.

        The same ``stream`` draws the same blocks; each ``side`` draws ranks of its own.
        ``within``: samples inside a boot are resampled too.
        """
        groups = [np.sort(np.asarray(boots.samples[b], dtype=np.float64)) for b in sorted(boots.samples)]
        count = len(groups)
        picked = self._blocks(count, stream)
        if within:
            sizes = np.array([len(group) for group in groups])
            starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))[picked]
            low, high = self._ranks_of(sizes, picked, side)
            flat = np.concatenate(groups)
            inside = (flat[starts + low] + flat[starts + high]) / 2
        else:
            inside = np.array([float(np.median(group)) for group in groups])[picked]
        inside.sort(axis=1)
        middle: Array = (inside[:, (count - 1) // 2] + inside[:, count // 2]) / 2
        return middle

    def _blocks(self, count: int, stream: int) -> _Indices:
        key = (0, count, stream)
        if key not in self._drawn:
            rng = np.random.default_rng([self.seed, *key])
            self._drawn[key] = rng.integers(0, count, (self.draws, count))
        return self._drawn[key]

    def _ranks_of(self, sizes: _Indices, picked: _Indices, side: int) -> tuple[_Indices, _Indices]:
        unique = np.unique(sizes)
        low, high = self._ranks(int(unique[0]), picked.shape[1], side)
        if len(unique) > 1:
            drawn_sizes = sizes[picked]
            for size in unique[1:]:
                other_low, other_high = self._ranks(int(size), picked.shape[1], side)
                low = np.where(drawn_sizes == size, other_low, low)
                high = np.where(drawn_sizes == size, other_high, high)
        return low, high

    def _ranks(self, size: int, count: int, side: int) -> tuple[_Indices, _Indices]:
        key = (1, size, count, side)
        if key not in self._drawn:
            rng = np.random.default_rng([self.seed, *key])
            drawn = np.sort(rng.integers(0, size, (self.draws, count, size)), axis=2)
            self._drawn[key] = np.stack((drawn[:, :, (size - 1) // 2], drawn[:, :, size // 2]))
        low, high = self._drawn[key]
        return low, high


def ratio_interval(
    base: Boots, changed: Boots, resampler: Resampler, *, confidence: float, within: bool
) -> Interval | None:
    """The interval of changed.median / base.median; None with fewer than two boots on a side.

    Every sample must be above zero. Boots are paired where both sides have the same blocks.
    """
    boots = min(len(base.samples), len(changed.samples))
    if boots < 2:
        return None
    paired = base.medians.keys() == changed.medians.keys()
    # The two sides draw in an order of their own, so that swapping them inverts the interval exactly.
    first, second = sorted((base, changed), key=lambda side: (side.median, side.flat.tolist()))
    one = np.log(resampler.medians(first, stream=0, side=0, within=within))
    two = np.log(resampler.medians(second, stream=0 if paired else 1, side=1, within=within))
    spread = two - one
    # Equal draws differ by rounding alone; that is no spread.
    se = 0.0 if np.ptp(spread) < 1e-12 else float(np.std(spread, ddof=1))
    return _student(math.log(changed.median / base.median), se, boots - 1, confidence)


def _student(centre: float, se: float, df: int, confidence: float) -> Interval:
    if se == 0.0:
        ratio = math.exp(centre)
        return Interval(ratio, ratio, 1.0 if centre == 0.0 else 0.0, 0.0, 0.0)
    t = float(special.stdtrit(df, (1 + confidence) / 2))
    p = 2 * float(special.stdtr(df, -abs(centre) / se))
    mde = _exp((t + float(special.stdtrit(df, POWER))) * se) - 1
    return Interval(_exp(centre - t * se), _exp(centre + t * se), p, se, mde)


def _exp(x: float) -> float:
    return math.exp(max(-_FARTHEST, min(_FARTHEST, x)))
