"""Boots whose value is far from those of the others of their kernel."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kteardown.analysis.dataset import Data
from kteardown.analysis.pairs import Quantity
from kteardown.model.judged import tidy
from kteardown.model.record import BASE, TWIN
from kteardown.model.result import Outlier

FENCE = 3.0
MIN_BOOTS = 5
Outliers = Mapping[tuple[str, Quantity], tuple[Outlier, ...]]


def outliers(data: Data, figures: Sequence[Quantity]) -> Outliers:
    """Return the outlier boots by kernel and quantity, only where there are any."""
    result = {}
    for figure in figures:
        for kernel in (BASE, TWIN, *data.variants):
            boots = data.collected.boots(kernel, figure.point, figure.metric)
            if boots is not None:
                about = {
                    "kernel": kernel,
                    "workload": figure.point.workload,
                    "metric": figure.metric,
                    "statistic": figure.statistic,
                    "point": figure.point.shown,
                }
                group = boots.quantiles(figure.quantile)
                if far_boots := find_outliers(about, group, data.rules.same_within):
                    result[kernel, figure] = far_boots
    return result


def find_outliers(
    about: Mapping[str, Any], group: Mapping[int, float], within: float
) -> tuple[Outlier, ...]:
    """Return the outliers of a group of boots, which are reported and not removed.

    ``about`` has the other fields of ``Outlier``, ``group`` the values by block.

    An outlier is beyond the outer fences of its group: three interquartile ranges below the lower
    or above the upper quartile (J. Tukey, "Exploratory Data Analysis", 1977, section 2D). The log
    scale is used, because noise multiplies a cost. With normal noise this finds an outlier in 13%
    of groups of five boots, 4.5% of ten, 2% of twenty; with fewer than five boots no value can be
    outside (D. Hoaglin, B. Iglewicz, J. Tukey, J. American Statistical Association 81, 1986).
    Differences from the median below ``within`` (0.02 is two percent) do not matter for a verdict.
    A group with a value at or below zero has no outliers.
    """
    if len(group) < MIN_BOOTS or min(group.values()) <= 0:
        return ()
    logs = np.log([*group.values()])
    low, middle, high = np.quantile(logs, (0.25, 0.5, 0.75))
    outside = np.maximum(low - logs, logs - high)
    spread = float(high - low)
    is_outlier = (outside > FENCE * spread) & (np.abs(logs - middle) > np.log1p(within))
    return tuple(
        Outlier(
            **about,
            block=block,
            value=value,
            median=float(np.median([*group.values()])),
            ranges=tidy(float(distance / spread)) if spread > 0 else None,
        )
        for (block, value), beyond, distance in zip(group.items(), is_outlier, outside, strict=True)
        if beyond
    )
