"""Rank tests over boots, which do not depend on the distribution of the noise.

If both sides have the same blocks, the logarithms of their values are paired by block and Wilcoxon's
signed-rank test is used: a drift of the machine affects a whole block and cancels (F. Wilcoxon, Biometrics
Bulletin 1, 1945; M. Hollander, D. Wolfe, E. Chicken, "Nonparametric Statistical Methods", 2014, chapter 3).
Without common blocks, or if a value is zero and has no logarithm, it is the rank-sum test (H. Mann, D.
Whitney, Annals of Mathematical Statistics 18, 1947).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu, wilcoxon

Figures = Mapping[int, float]
"""The value of each boot, by block."""


@dataclass(frozen=True)
class RankTest:
    """``p`` is the two-sided p-value of no change; ``least`` is the smallest p for this many boots."""

    p: float
    least: float

    def contradicts(self, alpha: float) -> bool:
        """Return whether the test could have found a change at this level, and does not."""
        return self.least < alpha <= self.p


def rank_sum(base: Figures, changed: Figures) -> float:
    """Return the two-sided p-value of no change without pairing. Each side needs at least two boots."""
    return float(mannwhitneyu(list(changed.values()), list(base.values()), alternative="two-sided").pvalue)


def rank_tests(pairs: Sequence[tuple[Figures, Figures]]) -> list[RankTest | None]:
    """Return a test for each pair (base, changed); pairs with equally many blocks are tested together.

    The test is None with fewer than two boots on a side.
    """
    found: list[RankTest | None] = [None] * len(pairs)
    by_size: dict[int, list[int]] = {}
    for index, (base, changed) in enumerate(pairs):
        if min(len(base), len(changed)) < 2:
            continue
        common = len(base.keys() & changed.keys())
        if common >= 2 and min(*base.values(), *changed.values()) > 0:
            by_size.setdefault(common, []).append(index)
        else:
            least = 2 / math.comb(len(base) + len(changed), len(base))
            found[index] = RankTest(rank_sum(base, changed), least)
    for size, indices in by_size.items():
        ratios = np.array([_log_ratios(*pairs[index]) for index in indices])
        for index, p in zip(indices, _signed_rank(ratios), strict=True):
            found[index] = RankTest(float(p), 2.0 ** (1 - size))
    return found


def _log_ratios(base: Figures, changed: Figures) -> NDArray[np.float64]:
    common = sorted(base.keys() & changed.keys())
    ratios: NDArray[np.float64] = np.log([changed[b] for b in common]) - np.log([base[b] for b in common])
    # Equal values can differ by rounding errors, which must not count as differences.
    return np.round(ratios, 12)


def _signed_rank(ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p for each row: exact without ties and zeros, else by the normal approximation."""
    ps = np.ones(len(ratios))
    sizes = np.sort(np.abs(ratios), axis=1)
    tied = (sizes[:, 0] == 0) | np.any(np.diff(sizes, axis=1) == 0, axis=1)
    moved = np.any(ratios != 0, axis=1)
    if np.any(~tied):
        ps[~tied] = wilcoxon(ratios[~tied], axis=1, method="exact").pvalue
    if np.any(tied & moved):
        ps[tied & moved] = wilcoxon(
            ratios[tied & moved], axis=1, method="asymptotic", correction=True, zero_method="zsplit"
        ).pvalue
    return ps
