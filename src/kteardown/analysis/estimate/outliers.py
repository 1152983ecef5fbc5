"""Find outlier boots, which are reported and counted but not removed.

An outlier is beyond the outer fences of its kernel's boots at that point: three interquartile ranges below
the lower or above the upper quartile (J. Tukey, "Exploratory Data Analysis", 1977, section 2D). The log scale
is used, because noise multiplies a cost. With normal noise this finds an outlier in 13% of groups of five
boots, 4.5% of ten, 2% of twenty; with fewer than five boots no value can be outside (D. Hoaglin, B. Iglewicz,
J. Tukey, J. American Statistical Association 81, 1986). Differences from the median below the margin of
"same" are not reported, because they do not matter for a verdict.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

FENCE = 3.0
MIN_BOOTS = 5


@dataclass(frozen=True)
class OutlierBoot:
    """One outlier boot: its value, the median of all boots, and its distance from the nearer quartile.

    ``ranges`` is the distance in interquartile ranges, None if the quartiles are equal.
    """

    block: int
    value: float
    median: float
    ranges: float | None


def find_outliers(groups: Sequence[Mapping[int, float]], within: float) -> list[tuple[OutlierBoot, ...]]:
    """Return the outliers of each group of values by block; ``within``: 0.02 is two percent.

    Groups with fewer than five boots, or with a value at or below zero, have no outliers.
    """
    found: list[tuple[OutlierBoot, ...]] = [()] * len(groups)
    by_size: dict[int, list[int]] = {}
    for index, group in enumerate(groups):
        if len(group) >= MIN_BOOTS and min(group.values()) > 0:
            by_size.setdefault(len(group), []).append(index)
    for indices in by_size.values():
        logs = np.log([list(groups[index].values()) for index in indices])
        low, middle, high = np.quantile(logs, (0.25, 0.5, 0.75), axis=1)[:, :, None]
        outside = np.maximum(low - logs, logs - high)
        is_outlier = (outside > FENCE * (high - low)) & (np.abs(logs - middle) > np.log1p(within))
        for row in np.flatnonzero(is_outlier.any(axis=1)):
            group, spread = groups[indices[row]], float(high[row, 0] - low[row, 0])
            median = float(np.median(list(group.values())))
            found[indices[row]] = tuple(
                OutlierBoot(block, value, median, float(distance / spread) if spread > 0 else None)
                for (block, value), beyond, distance in zip(
                    group.items(), is_outlier[row], outside[row], strict=True
                )
                if beyond
            )
    return found
