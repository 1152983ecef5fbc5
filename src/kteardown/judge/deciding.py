"""How many boots would decide what is inconclusive although its interval is far from no change.

The normal approximation of the sample size for a power of 80% (Chow, Shao and Wang, "Sample Size
Calculations in Clinical Research", 2nd ed., section 3.1), with the correction for the number of tests that
the p-value had. Two more boots stand for the spread being estimated.
"""

import math
from statistics import NormalDist

from kteardown.model.result import Judged, MetricVerdict

POWER = 0.8
MOST_BOOTS = 200
"""No design with more boots is proposed."""


def is_far_from_no_change(judged: Judged) -> bool:
    """Return whether a verdict is inconclusive although its interval excludes that nothing changed."""
    if judged.verdict != "inconclusive" or judged.ci is None or judged.outside == "contradicts":
        return False
    low, high = judged.ci
    return low > 1 or high < 1


def boots_to_decide(metric: MetricVerdict) -> int | None:
    """Return how many pairs of boots would probably decide a metric; None if that is not known.

    A pair is a seed on the instruction clock, and a block on the wall clock.
    """
    if not is_far_from_no_change(metric) or not metric.ratio or not metric.spread:
        return None
    size = abs(math.log(metric.ratio))
    tests = metric.p_corrected / metric.p if metric.p_corrected and metric.p else 1.0
    level = (1 - metric.confidence) / max(tests, 1.0)
    quantiles = NormalDist().inv_cdf(1 - level / 2) + NormalDist().inv_cdf(POWER)
    boots = math.ceil((quantiles * metric.spread / size) ** 2) + 2
    return max(boots, metric.boots + 1) if boots <= MOST_BOOTS else None
