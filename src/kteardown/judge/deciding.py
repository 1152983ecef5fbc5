"""How many boots would decide what is inconclusive although its interval is far from no change.

The power of the paired t-test by the noncentral t distribution (Chow, Shao and Wang, "Sample Size
Calculations in Clinical Research", 2nd ed., section 3.1), with the correction for the number of
tests that the p-value had, as if the change and its spread were those that were measured.
"""

import math

from kteardown.model.judged import Judged, MetricVerdict

POWER = 0.8
MOST_BOOTS = 200
"""No design with more boots is proposed."""


def is_far_from_no_change(judged: Judged) -> bool:
    """Return whether a verdict is inconclusive although its interval excludes that nothing
    changed."""
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
    if metric.p_corrected is not None and metric.p_corrected >= 1:
        return None  # The correction is cut off there, and its size is not known.
    # Imported here: it takes longer than most commands, which need no figure of it.
    from scipy.stats import nct, t

    effect = abs(math.log(metric.ratio)) / metric.spread
    tests = metric.p_corrected / metric.p if metric.p_corrected and metric.p else 1.0
    level = (1 - metric.confidence) / max(tests, 1.0)
    for boots in range(metric.boots + 1, MOST_BOOTS + 1):
        limit = t.ppf(1 - level / 2, boots - 1)
        if nct.sf(limit, boots - 1, effect * math.sqrt(boots)) >= POWER:
            return boots
    return None
