"""Boots that lie far from the others of their kernel: named, counted, and kept.

A boot is far out beyond the outer fences of its kernel's boots at that point: three interquartile ranges
below the lower or above the upper quartile (J. Tukey, "Exploratory Data Analysis", 1977, section 2D), on the
log scale, since noise multiplies a cost. Of normal noise that names a boot in 13% of groups of five
boots, 4.5% of ten, 2% of twenty; with fewer than five boots nothing can lie outside
(D. Hoaglin, B. Iglewicz, J. Tukey, J. American Statistical Association 81, 1986). What differs from
the median by less than the margin of "same" is not named: it decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

FENCE = 3.0
MIN_BOOTS = 5


@dataclass(frozen=True)
class FarOut:
    """One boot: its figure, the median of all, and how many interquartile ranges lie between it and
    the nearer quartile (None where the quartiles are one)."""

    block: int
    value: float
    median: float
    ranges: float | None


def far_out(groups: Sequence[Mapping[int, float]], within: float) -> list[tuple[FarOut, ...]]:
    """The far boots of each group of figures by block; ``within``: 0.02 is two percent.

    Groups with fewer than five boots, or with a figure at or below zero, have none.
    """
    found: list[tuple[FarOut, ...]] = [()] * len(groups)
    by_size: dict[int, list[int]] = {}
    for index, group in enumerate(groups):
        if len(group) >= MIN_BOOTS and min(group.values()) > 0:
            by_size.setdefault(len(group), []).append(index)
    for indices in by_size.values():
        logs = np.log([list(groups[index].values()) for index in indices])
        low, middle, high = np.quantile(logs, (0.25, 0.5, 0.75), axis=1)[:, :, None]
        outside = np.maximum(low - logs, logs - high)
        far = (outside > FENCE * (high - low)) & (np.abs(logs - middle) > np.log1p(within))
        for row in np.flatnonzero(far.any(axis=1)):
            found[indices[row]] = _named(
                groups[indices[row]], far[row], outside[row], float(high[row, 0] - low[row, 0])
            )
    return found


def _named(
    group: Mapping[int, float], far: Sequence[bool], outside: Sequence[float], spread: float
) -> tuple[FarOut, ...]:
    median = float(np.median(list(group.values())))
    return tuple(
        FarOut(block, value, median, float(distance / spread) if spread > 0 else None)
        for (block, value), is_far, distance in zip(group.items(), far, outside, strict=True)
        if is_far
    )
