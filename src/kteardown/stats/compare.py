"""Two kernels at one point: from their boots to a ratio, an interval and a verdict.

``estimate`` looks at one pair; ``holm`` at all pairs of a report; ``judge`` gives the verdict.
The rules, in the order in which they are asked:

1. same: the whole interval lies within the margin. This is equivalence by two one-sided tests
   (D. Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15, 1987), at half the usual error
   since the reported interval is used; failing to see a difference is not enough.
2. better or worse: the interval excludes no change, it still does after Holm's correction over the
   report (S. Holm, Scandinavian Journal of Statistics 6, 1979), and the ratio lies outside of what base
   shows against itself (the A/A twin's interval, widened to contain 1).
3. inconclusive: everything else, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import mannwhitneyu

from kteardown.spec.model import Better, Clock
from kteardown.stats.bootstrap import Boots, Resampler, ratio_interval
from kteardown.stats.results import Summary, Verdict


@dataclass(frozen=True)
class Estimate:
    """What two kernels show. ``p`` is of no change, two-sided; None where nothing can be tested."""

    ratio: float | None
    ci: tuple[float, float] | None
    p: float | None
    mde: float | None
    exact: bool = False
    identical: bool = False
    """No sample differs from the one that it is compared with."""
    higher: bool = False
    """Changed is above base; what decides where there is no ratio."""
    reason: str = ""
    """Why there is no interval, where there is none."""


@dataclass(frozen=True)
class Rules:
    """What a verdict is held against. ``same_within``: 0.02 is two percent, on the log scale."""

    confidence: float
    same_within: float


def summary(boots: Boots) -> Summary:
    """The median over boots of the medians inside them; mean, sd and n over all samples."""
    flat = boots.flat
    sd = float(np.std(flat, ddof=1)) if len(flat) > 1 else 0.0
    return Summary(
        median=boots.median, mean=float(np.mean(flat)), sd=sd, n=len(flat), boots=len(boots.samples)
    )


def estimate(base: Boots, changed: Boots, clock: Clock, confidence: float, resampler: Resampler) -> Estimate:
    """Compare ``changed`` with ``base``; blocks (seeds, on the instruction clock) that both have are paired.

    On the instruction clock a boot is exact and the seeds are the population, so only seeds are
    resampled; on the wall clock boots and the samples inside them are.
    """
    common = sorted(base.samples.keys() & changed.samples.keys())
    if len(common) >= 2:
        base, changed = base.only(common), changed.only(common)
    higher = changed.median > base.median
    ratio = changed.median / base.median if base.median > 0 and changed.median >= 0 else None
    exact = clock == "instructions" and _exact(base, changed)
    if exact:
        ci = (ratio, ratio) if ratio is not None else None
        same = base.median == changed.median
        return Estimate(ratio, ci, 1.0 if same else 0.0, 0.0, exact=True, identical=same, higher=higher)
    if min(base.flat.min(), changed.flat.min()) <= 0:
        return _by_rank(base, changed, ratio, higher)
    found = ratio_interval(base, changed, resampler, confidence=confidence, within=clock == "wall")
    if found is None:
        unit = "seed" if clock == "instructions" else "boot"
        return Estimate(ratio, None, None, None, reason=f"one {unit}: no interval", higher=higher)
    return Estimate(ratio, (found.low, found.high), found.p, found.mde, higher=higher)


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment, in the order given; None stays None and counts for nothing."""
    tested = sorted((p, index) for index, p in enumerate(ps) if p is not None)
    adjusted: list[float | None] = [None] * len(ps)
    highest = 0.0
    for rank, (p, index) in enumerate(tested):
        highest = max(highest, min(1.0, p * (len(tested) - rank)))
        adjusted[index] = highest
    return adjusted


def judge(
    found: Estimate, null: Estimate | None, p_adjusted: float | None, better: Better, rules: Rules
) -> tuple[Verdict, str]:
    """The verdict and, in a few words, why. ``null`` is base's A/A twin against base."""
    alpha = 1 - rules.confidence
    if found.p is None:
        return "inconclusive", found.reason
    if _within(found, rules.same_within):
        return "same", "identical" if found.identical else f"within {rules.same_within * 100:g}%"
    if found.p >= alpha:
        return "inconclusive", found.reason or "no change lies within the interval"
    if p_adjusted is None or p_adjusted >= alpha:
        return "inconclusive", "not after Holm's correction for all comparisons"
    if null is not None and _shown_by(null, found, alpha):
        return "inconclusive", "base differs as much from itself (A/A)"
    verdict: Verdict = "better" if found.higher == (better == "higher") else "worse"
    return verdict, "exact" if found.exact else found.reason


def _exact(base: Boots, changed: Boots) -> bool:
    """At least two seeds, and either one number on each side, or the same samples seed by seed."""
    if min(len(base.samples), len(changed.samples)) < 2:
        return False
    constant = np.ptp(base.flat) == 0 and np.ptp(changed.flat) == 0
    return bool(constant) or {b: list(v) for b, v in base.samples.items()} == {
        b: list(v) for b, v in changed.samples.items()
    }


def _by_rank(base: Boots, changed: Boots, ratio: float | None, higher: bool) -> Estimate:
    """Where zeros leave no ratio to resample: the rank test of the boots' medians.

    H. Mann, D. Whitney, Annals of Mathematical Statistics 18, 1947.
    """
    below, above = list(base.medians.values()), list(changed.medians.values())
    reason = "rank test: zeros leave no interval"
    if min(len(below), len(above)) < 2:
        return Estimate(ratio, None, None, None, reason="one boot: no interval", higher=higher)
    if np.ptp([*below, *above]) == 0:
        return Estimate(ratio, None, 1.0, None, identical=True, higher=higher)
    p = float(mannwhitneyu(above, below, alternative="two-sided").pvalue)
    return Estimate(ratio, None, p, None, reason=reason, higher=higher)


def _within(found: Estimate, margin: float) -> bool:
    if found.identical or found.ci is None:
        return found.identical
    return 1 / (1 + margin) <= found.ci[0] and found.ci[1] <= 1 + margin


def _shown_by(null: Estimate, found: Estimate, alpha: float) -> bool:
    """The A/A pair shows as large a difference."""
    if found.ci is not None and found.ratio is not None and null.ci is not None:
        return min(null.ci[0], 1.0) <= found.ratio <= max(null.ci[1], 1.0)
    return null.p is not None and null.p < alpha and null.higher == found.higher
