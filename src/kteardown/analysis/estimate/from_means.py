"""A verdict from means and standard deviations alone: for figures that somebody else posted.

The rules are those of ``analysis.estimate.verdict``, without an A/A twin. The interval is of the ratio of the
two means, on the log scale, where the error of each is its standard error over the mean (the delta method),
with the degrees of freedom of B. Welch, "The generalization of 'Student's' problem when several different
population variances are involved", Biometrika 34, 1947.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import special

from kteardown.analysis.estimate.verdict import Beside, Estimate, Rules, holm, judge
from kteardown.model.result import Verdict
from kteardown.model.workload import Better


@dataclass(frozen=True)
class Mean:
    """Of ``n`` runs, with their standard deviation."""

    value: float
    sd: float
    n: int

    @property
    def variance(self) -> float:
        """Of the logarithm of the mean."""
        return (self.sd / self.value) ** 2 / self.n


@dataclass(frozen=True)
class Judged:
    """What two means show, and the verdict. ``better`` is the direction."""

    found: Estimate
    verdict: Verdict
    reason: str


def judge_means(pairs: Sequence[tuple[Mean, Mean, Better]], rules: Rules) -> list[Judged]:
    """The verdict on each pair (base, changed), with Holm's correction over all of them."""
    found = [estimate_means(base, changed, rules) for base, changed, _ in pairs]
    adjusted = holm([one.p for one in found])
    verdicts = [
        judge(one, Beside(), p, better, rules)
        for one, p, (*_, better) in zip(found, adjusted, pairs, strict=True)
    ]
    return [Judged(one, verdict, reason) for one, (verdict, reason) in zip(found, verdicts, strict=True)]


def estimate_means(base: Mean, changed: Mean, rules: Rules) -> Estimate:
    """The ratio of the means, its interval and its chances.

    Nothing can be tested with fewer than two runs on a side or where a mean is not above zero; and without
    any spread only that the means are the same within the margin.
    """
    if min(base.value, changed.value) <= 0:
        return Estimate(None, None, None, None, reason="a mean that is not above zero has no ratio")
    ratio = changed.value / base.value
    higher = ratio > 1
    if min(base.n, changed.n) < 2:
        return Estimate(ratio, None, None, None, higher=higher, reason="one run: no interval")
    centre, edge = math.log(ratio), math.log1p(rules.same_within)
    se = math.sqrt(base.variance + changed.variance)
    if se == 0:
        if abs(centre) > edge:
            return Estimate(ratio, None, None, None, higher=higher, reason="no spread: nothing to test")
        return Estimate(ratio, (ratio, ratio), 1.0, None, higher=higher, p_same=0.0)
    df = se**4 / sum(mean.variance**2 / (mean.n - 1) for mean in (base, changed))
    beyond = float(special.stdtrit(df, (1 + rules.confidence) / 2)) * se
    return Estimate(
        ratio,
        (math.exp(centre - beyond), math.exp(centre + beyond)),
        2 * _above(df, abs(centre) / se),
        None,
        higher=higher,
        p_same=_above(df, (edge - abs(centre)) / se),
    )


def _above(df: float, t: float) -> float:
    return float(special.stdtr(df, -t))
