"""Intervals of a ratio of medians, by a hierarchical bootstrap over blocks and their boots.

The boot is the unit of replication. Whole blocks are drawn with replacement, each with its boot of
base and its boot of changed: a drift of the machine, which affects a whole block, cancels. Only if
the values of the boots do not differ at all, as with a coarse clock, are repetitions drawn instead.

The interval of the log ratio is the smallest that contains Student's t times a calibrated bootstrap
standard error, with boots - 1 degrees of freedom (``calibration`` corrects the part that depends on
the number of boots), and the percentile interval of the draws, whose error level grows with the
part of the differences between boots that blocks explain. METHODOLOGY.md has the reasons, the
sources and the coverage. BCa needs a jackknife, which fails for medians.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]
_Indices = NDArray[np.intp]

_FARTHEST = 600.0
"""Larger logarithms would exceed the range of a float; an interval that wide has no information."""
_ROUNDING = 1e-12
"""Logarithms with a smaller difference differ by rounding only."""
_DRIFT = 15.0
"""How much the error level of the percentile interval grows if blocks explain everything; from
simulation."""

_BEYOND = 0.9
_BEYOND_TWIN = 0.95
"""How farthest an effect must exceed half the interval to be found with 80% power, as a
probability.

It is a quantile of Student's t with boots - 2 degrees of freedom: for the interval alone, and for
the case that the ratio must also be outside the interval of the A/A twin. From simulation; 0.8
would be sufficient if the standard error were known.
"""


@dataclass(frozen=True)
class Boots:
    """The samples of one metric of one kernel at one point, by block, in the unit of the metric.

    Every block has at least one sample.
    """

    samples: Mapping[int, Sequence[float]]

    @cached_property
    def ordered(self) -> dict[int, list[float]]:
        """Return the samples of each boot in ascending order, by block."""
        return {block: sorted(map(float, values)) for block, values in sorted(self.samples.items())}

    @cached_property
    def medians(self) -> dict[int, float]:
        """Return the median of the repetitions of each boot, by block."""
        return {block: _quantile(values, 0.5) for block, values in self.ordered.items()}

    @cached_property
    def flat(self) -> Array:
        """Return every sample, in the order of the blocks."""
        return np.array(
            [v for block in sorted(self.samples) for v in self.samples[block]], dtype=np.float64
        )

    def quantiles(self, q: float) -> dict[int, float]:
        """Return the quantile ``q`` (0 to 1) of the repetitions of each boot, by block; 0.5 is the
        median."""
        if q == 0.5:
            return self.medians
        return {block: _quantile(values, q) for block, values in self.ordered.items()}

    @property
    def median(self) -> float:
        """Return the median over boots of the medians inside them."""
        return self.quantile(0.5)

    def quantile(self, q: float) -> float:
        """Return the median over boots of the quantiles inside them."""
        return _quantile(sorted(self.quantiles(q).values()), 0.5)

    def only(self, blocks: Sequence[int]) -> "Boots":
        return Boots({block: self.samples[block] for block in blocks})


@dataclass(frozen=True)
class Interval:
    """The interval of a ratio: from ``low`` to ``high``, where 1 is no change.

    ``p`` is the two-sided p-value of no change; it is below 1 - confidence if 1 is outside. ``se``
    is the calibrated standard error of the logarithm, ``centre`` the logarithm itself, ``df`` the
    degrees of freedom. ``mde`` is the smallest relative difference that is found with 80% power:
    0.02 is two percent. ``draws`` are the log ratios of the bootstrap in ascending order;
    ``weight`` divides the probabilities that are computed from them.
    """

    low: float
    high: float
    p: float
    se: float
    mde: float
    centre: float = 0.0
    df: int = 1
    draws: Array = field(default_factory=lambda: np.empty(0), compare=False, repr=False)
    weight: float = 1.0

    def p_below(self, x: float) -> float:
        """Return the one-sided p-value of a true log ratio of ``x`` or less."""
        below = int(np.searchsorted(self.draws, x, side="right"))
        return max(self._student(self.centre - x), self._share(below))

    def p_above(self, x: float) -> float:
        """Return the one-sided p-value of a true log ratio of ``x`` or more."""
        above = len(self.draws) - int(np.searchsorted(self.draws, x, side="left"))
        return max(self._student(x - self.centre), self._share(above))

    def _student(self, distance: float) -> float:
        if self.se == 0.0:
            return float(distance <= 0)
        return float(special.stdtr(self.df, -distance / self.se))

    def _share(self, count: int) -> float:
        return count / len(self.draws) / self.weight if len(self.draws) else 0.0


@dataclass
class Resampler:
    """Draws of blocks, made once for each number of blocks and shared by all comparisons.

    Sharing the draws makes thousands of comparisons fast, and makes the result independent of their
    order.
    """

    seed: int
    draws: int = 2000
    _drawn: dict[tuple[int, int], _Indices] = field(default_factory=dict)

    def medians(self, figures: Array, *, stream: int) -> Array:
        """Return ``draws`` medians of resampled boots; ``figures`` has the value of each boot."""
        # An equal ``stream`` draws the same blocks, if there are as many.
        key = (len(figures), stream)
        if key not in self._drawn:
            rng = np.random.default_rng([self.seed, 0, *key])
            self._drawn[key] = rng.integers(0, len(figures), (self.draws, len(figures)))
        return _medians(figures[self._drawn[key]])

    def medians_within(self, groups: Sequence[Sequence[float]], q: float, *, side: int) -> Array:
        """Return ``draws`` medians over all boots of the quantile ``q`` of resampled repetitions.

        ``groups`` are the samples of the boots in ascending order. Instead of a resample, the rank
        of its order statistic is drawn, from its beta distribution.
        """
        rng = np.random.default_rng([self.seed, 1, side])
        inside = np.empty((self.draws, len(groups)))
        for column, group in enumerate(groups):
            size = len(group)
            lower, fraction = divmod((size - 1) * q, 1)
            first = rng.beta(lower + 1, size - lower, self.draws)
            above = max(size - lower - 1, 1)
            second = first + (1 - first) * rng.beta(1, above, self.draws)
            values = np.asarray(group)
            low, high = (
                values[np.minimum((at * size).astype(np.intp), size - 1)] for at in (first, second)
            )
            inside[:, column] = low + (high - low) * fraction
        return _medians(inside)


def ratio_interval(
    base: Boots,
    changed: Boots,
    resampler: Resampler,
    *,
    confidence: float,
    within: bool,
    quantile: float = 0.5,
    twin: bool = False,
) -> Interval | None:
    """Return the interval of changed / base of the ``quantile``; None with fewer than two boots on
    a side.

    The ratio is that of the medians over boots of the ``quantile`` inside them. Every sample must
    be above zero. Boots are paired if both sides have the same blocks. ``within``: if the draws do
    not differ at all, resample the repetitions inside the boots; otherwise their spread is not
    used. ``twin``: the verdict also uses an A/A twin with as many boots, which ``mde`` then
    includes.
    """
    boots = min(len(base.samples), len(changed.samples))
    if boots < 2:
        return None
    # The order of the draws is independent of the arguments, so that swapping them inverts the
    # interval.
    first, second = sorted(
        (base, changed), key=lambda side: (side.quantile(quantile), side.flat.tolist())
    )
    first_figures, second_figures = (
        np.array(list(side.quantiles(quantile).values())) for side in (first, second)
    )
    paired = first.samples.keys() == second.samples.keys()
    spread = np.log(resampler.medians(second_figures, stream=0 if paired else 1))
    spread -= np.log(resampler.medians(first_figures, stream=0))
    if within and np.ptp(spread) < _ROUNDING:
        inside = [
            resampler.medians_within(list(side.ordered.values()), quantile, side=number)
            for number, side in enumerate((first, second))
        ]
        spread = np.log(inside[1]) - np.log(inside[0])
    if first is not base:
        spread = -spread
    weight = (
        1 + _DRIFT * _block_correlation(np.log(first_figures), np.log(second_figures)) ** 2
        if paired
        else 1.0
    )
    centre = math.log(changed.quantile(quantile) / base.quantile(quantile))
    df = boots - 1
    if np.ptp(spread) < _ROUNDING:
        ratio = math.exp(centre)
        return Interval(ratio, ratio, 1.0 if centre == 0.0 else 0.0, 0.0, 0.0, centre, df)
    se = float(np.std(spread, ddof=1)) * calibration(boots)
    draws = np.sort(np.where(np.abs(spread) < _ROUNDING, 0.0, spread))
    low, high = _ends(centre, student(df, confidence) * se, draws, (1 - confidence) / 2 * weight)
    farthest = max(centre - low, high - centre) + power_quantile(df, twin=twin) * se
    mde = bounded_exp(farthest) - 1
    whole = Interval(bounded_exp(low), bounded_exp(high), 1.0, se, mde, centre, df, draws, weight)
    return replace(whole, p=min(1.0, 2 * min(whole.p_below(0.0), whole.p_above(0.0))))


def level_interval(
    boots: Boots, resampler: Resampler, *, confidence: float, quantile: float = 0.5
) -> tuple[float, float] | None:
    """Return the interval of the level of one kernel: the median over boots of the ``quantile``
    inside them.

    It is in the unit of the metric, and None with fewer than two boots. It is computed like that of
    a ratio, but from the values themselves: the smallest interval that contains Student's and the
    percentile interval. Use ``ratio_interval`` and not two of these intervals to decide whether two
    kernels differ, because a drift of the machine affects both.
    """
    figures = np.array(list(boots.quantiles(quantile).values()))
    count = len(figures)
    if count < 2:
        return None
    centre = boots.quantile(quantile)
    if np.ptp(figures) == 0:
        return centre, centre
    draws = np.sort(resampler.medians(figures, stream=0))
    half = float(student(count - 1, confidence) * np.std(draws, ddof=1)) * calibration(count)
    low, high = _ends(centre, half, draws, (1 - confidence) / 2)
    return (max(low, 0.0) if float(figures.min()) >= 0 else low), high


def _ends(centre: float, half: float, draws: Array, share: float) -> tuple[float, float]:
    """Return the smallest interval with ``centre`` +- ``half`` and all draws but ``share`` on each
    side."""
    cut = max(0, math.ceil(min(0.5, share) * len(draws)) - 1)
    return min(centre - half, float(draws[cut])), max(centre + half, float(draws[-1 - cut]))


def student(df: float, confidence: float) -> float:
    """Return half the width of an interval by Student's t, in standard errors."""
    return float(special.stdtrit(df, (1 + confidence) / 2))


def power_quantile(df: float, *, twin: bool) -> float:
    """Return how far beyond half the interval an effect must be to be found with 80% power, in
    errors."""
    return float(special.stdtrit(max(df - 1, 0.5), _BEYOND_TWIN if twin else _BEYOND))


def calibration(boots: int) -> float:
    """Return the factor that corrects the bootstrap's standard error of a median of few boots."""
    # For two boots it is the usual n / (n - 1) of a variance. For more boots, it is the ratio of
    # the 95% point of |error| / standard error to that of Student's t, for normal boots
    # (``bench/validate_stats.py`` checks that it still holds): 0.81 to 0.85 for odd numbers from 3
    # to 11, 0.88 to 0.90 for even ones, and towards 1 for many boots.
    if boots == 2:
        return math.sqrt(2)
    return max(0.82 if boots % 2 else 0.9, 1 - 2.2 / boots)


def _block_correlation(first: Array, second: Array) -> float:
    """Return the correlation of both sides over blocks minus its standard error, at least 0."""
    # The standard error is that of Fisher's z (R. Fisher, Metron 1, 1921).
    if len(first) < 4 or np.ptp(first) < _ROUNDING or np.ptp(second) < _ROUNDING:
        return 0.0
    a = first - first.mean()
    b = second - second.mean()
    r = float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))
    return (
        max(0.0, math.tanh(math.atanh(min(r, 1 - 1e-9)) - 1 / math.sqrt(len(first) - 3)))
        if r > 0
        else 0.0
    )


def _quantile(ordered: Sequence[float], q: float) -> float:
    """Return the quantile of ascending values by linear interpolation."""
    lower, fraction = divmod((len(ordered) - 1) * q, 1)
    low = ordered[int(lower)]
    high = ordered[min(int(lower) + 1, len(ordered) - 1)]
    return (low + high) / 2 if fraction == 0.5 else low + (high - low) * fraction


def _medians(rows: Array) -> Array:
    """Return the median of each row; the rows are sorted in place."""
    rows.sort(axis=1)
    count = rows.shape[1]
    middle: Array = (rows[:, (count - 1) // 2] + rows[:, count // 2]) / 2
    return middle


def bounded_exp(x: float) -> float:
    """Return exp(``x``), with ``x`` in the range that a float can have."""
    return math.exp(max(-_FARTHEST, min(_FARTHEST, x)))
