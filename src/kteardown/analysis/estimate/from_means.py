"""Verdicts from means and standard deviations alone, for published figures.

The rules are those of ``analysis.estimate.verdict``, without an A/A twin. The interval is that of the ratio
of the two means on the log scale. The error of each logarithm is the standard error of the mean divided by
the mean (the delta method), with the degrees of freedom of B. Welch, "The generalization of 'Student's'
problem when several different population variances are involved", Biometrika 34, 1947.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import special

from kteardown.analysis.estimate.bootstrap import student
from kteardown.analysis.estimate.verdict import Estimate, Rules, SupportingResults, holm, judge
from kteardown.model.result import Verdict
from kteardown.model.workload import Better


@dataclass(frozen=True)
class Mean:
    """The mean of ``n`` runs and their standard deviation."""

    value: float
    sd: float
    n: int

    @property
    def variance(self) -> float:
        """Return the variance of the logarithm of the mean."""
        return (self.sd / self.value) ** 2 / self.n


@dataclass(frozen=True)
class MeanVerdict:
    """The estimate from two means, and its verdict."""

    found: Estimate
    verdict: Verdict
    reason: str


def judge_means(pairs: Sequence[tuple[Mean, Mean, Better]], rules: Rules) -> list[MeanVerdict]:
    """Return the verdict on each pair (base, changed, better), with Holm's correction over all pairs."""
    found = [estimate_means(base, changed, rules) for base, changed, _ in pairs]
    adjusted = holm([one.p for one in found])
    verdicts = [
        judge(one, SupportingResults(), p, better, rules)
        for one, p, (*_, better) in zip(found, adjusted, pairs, strict=True)
    ]
    return [MeanVerdict(one, verdict, reason) for one, (verdict, reason) in zip(found, verdicts, strict=True)]


def estimate_means(base: Mean, changed: Mean, rules: Rules) -> Estimate:
    """Return the ratio of the means, its interval and its p-values.

    Nothing can be tested with fewer than two runs on a side, or if a mean is not above zero. Without any
    spread, the only possible test is whether the means are equal within the margin.
    """
    if min(base.value, changed.value) <= 0:
        return Estimate(None, None, None, None, reason="a mean that is not above zero has no ratio")
    ratio = changed.value / base.value
    higher = ratio > 1
    if min(base.n, changed.n) < 2:
        return Estimate(ratio, None, None, None, higher=higher, reason="one run gives no interval")
    centre, edge = math.log(ratio), math.log1p(rules.same_within)
    se = math.sqrt(base.variance + changed.variance)
    if se == 0:
        if abs(centre) > edge:
            return Estimate(ratio, None, None, None, higher=higher, reason="no spread: nothing to test")
        return Estimate(ratio, (ratio, ratio), 1.0, None, higher=higher, p_same=0.0)
    df = se**4 / sum(mean.variance**2 / (mean.n - 1) for mean in (base, changed))
    half_width = student(df, rules.confidence) * se
    return Estimate(
        ratio,
        (math.exp(centre - half_width), math.exp(centre + half_width)),
        2 * _upper_tail(df, abs(centre) / se),
        None,
        higher=higher,
        p_same=_upper_tail(df, (edge - abs(centre)) / se),
    )


def _upper_tail(df: float, t: float) -> float:
    return float(special.stdtr(df, -t))
