"""Two kernels at one point: from their boots to a ratio, an interval and a verdict.

``estimate`` looks at one pair; ``holm`` at all pairs of a report; ``judge`` gives the verdict.
The rules, in the order in which they are asked:

1. same: the whole interval lies within the margin. This is equivalence by two one-sided tests
   (D. Schuirmann, J. Pharmacokinetics and Biopharmaceutics 15, 1987), at half the usual error
   since the reported interval is used; failing to see a difference is not enough.
2. better or worse: the interval excludes no change, it still does after Holm's correction over the
   report (S. Holm, Scandinavian Journal of Statistics 6, 1979), and the ratio lies outside of what base
   shows against itself, and against itself with its code moved (the intervals of the A/A twin and of
   the layout twin, each widened to contain 1).
3. inconclusive: everything else, with the reason.

The rank test stands beside that: it changes no verdict, and the reason says where it disagrees.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kteardown.analysis.estimate.bootstrap import Boots, Interval, Resampler, ratio_interval
from kteardown.analysis.estimate.rank_test import RankTest, rank_sum
from kteardown.model.experiment import Clock
from kteardown.model.result import Summary, Verdict
from kteardown.model.workload import Better

MEDIAN = 0.5
_NO_RANK = "the rank test does not see it"
_RANK_ALONE = "only the rank test sees one"


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
    p_same: float | None = None
    """Of a change of the margin or more, by two one-sided tests; None where there is no interval."""
    reason: str = ""
    """Why there is no interval, where there is none."""


@dataclass(frozen=True)
class Rules:
    """What a verdict is held against. ``same_within``: 0.02 is two percent, on the log scale."""

    confidence: float
    same_within: float


@dataclass(frozen=True)
class Beside:
    """What a verdict looks at beside the pair itself: each None where it was not measured."""

    twin: Estimate | None = None
    """The A/A twin against base."""
    layout: Estimate | None = None
    """The layout twin against base."""
    rank: RankTest | None = None


def summary(boots: Boots, quantile: float = MEDIAN) -> Summary:
    """The median over boots of the medians (and of the quantile) inside them; the rest over all samples."""
    flat = boots.flat
    sd = float(np.std(flat, ddof=1)) if len(flat) > 1 else 0.0
    return Summary(
        median=boots.median,
        mean=float(np.mean(flat)),
        sd=sd,
        n=len(flat),
        boots=len(boots.samples),
        percentile=None if quantile == MEDIAN else boots.quantile(quantile),
    )


def paired(base: Boots, changed: Boots) -> tuple[Boots, Boots]:
    """Both with the blocks alone that both have, where those are at least two."""
    if base.samples.keys() == changed.samples.keys():
        return base, changed
    common = sorted(base.samples.keys() & changed.samples.keys())
    return (base.only(common), changed.only(common)) if len(common) >= 2 else (base, changed)


def estimate(
    base: Boots, changed: Boots, clock: Clock, rules: Rules, resampler: Resampler, *, quantile: float = MEDIAN
) -> Estimate:
    """Compare ``changed`` with ``base``; blocks (seeds, on the instruction clock) that both have are paired.

    ``quantile`` is what is taken inside each boot. On the instruction clock a boot is exact and the
    seeds are the population, so only seeds are resampled; on the wall clock boots and the samples inside
    them are.
    """
    base, changed = paired(base, changed)
    before, after = base.quantile(quantile), changed.quantile(quantile)
    higher = after > before
    ratio = after / before if before > 0 and after >= 0 else None
    if clock == "instructions" and _exact(base, changed):
        return _of_exact(ratio, higher=higher, same=before == after, within=rules.same_within)
    if min(base.flat.min(), changed.flat.min()) <= 0:
        return _by_rank(base.quantiles(quantile), changed.quantiles(quantile), ratio, higher)
    wall = clock == "wall"
    found = ratio_interval(
        base,
        changed,
        resampler,
        confidence=rules.confidence,
        within=wall,
        quantile=quantile,
        twin=wall,
    )
    if found is None:
        unit = "seed" if clock == "instructions" else "boot"
        return Estimate(ratio, None, None, None, reason=f"one {unit}: no interval", higher=higher)
    p_same = _two_one_sided(found, rules.same_within)
    return Estimate(ratio, (found.low, found.high), found.p, found.mde, higher=higher, p_same=p_same)


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
    found: Estimate, beside: Beside, p_adjusted: float | None, better: Better, rules: Rules
) -> tuple[Verdict, str]:
    """The verdict and, in a few words, why."""
    alpha = 1 - rules.confidence
    if found.p is None:
        return "inconclusive", found.reason
    if _within(found, rules.same_within):
        return "same", "identical" if found.identical else f"within {rules.same_within * 100:g}%"
    if found.p >= alpha:
        reason = found.reason or "no change lies within the interval"
        seen = beside.rank is not None and beside.rank.p < alpha
        return "inconclusive", _and(reason, _RANK_ALONE if seen else "")
    if p_adjusted is None or p_adjusted >= alpha:
        return "inconclusive", "not after Holm's correction for all comparisons"
    for null, reason in (
        (beside.twin, "base differs as much from itself (A/A)"),
        (beside.layout, "moving code alone does as much (layout twin)"),
    ):
        if null is not None and _shown_by(null, found, alpha):
            return "inconclusive", reason
    verdict: Verdict = "better" if found.higher == (better == "higher") else "worse"
    doubted = beside.rank is not None and beside.rank.contradicts(alpha)
    return verdict, "exact" if found.exact else _and(found.reason, _NO_RANK if doubted else "")


def _exact(base: Boots, changed: Boots) -> bool:
    """At least two seeds, and either one number on each side, or the same samples seed by seed."""
    if min(len(base.samples), len(changed.samples)) < 2:
        return False
    constant = np.ptp(base.flat) == 0 and np.ptp(changed.flat) == 0
    return bool(constant) or {b: list(v) for b, v in base.samples.items()} == {
        b: list(v) for b, v in changed.samples.items()
    }


def _of_exact(ratio: float | None, *, higher: bool, same: bool, within: float) -> Estimate:
    ci = (ratio, ratio) if ratio is not None else None
    near = same or (ratio is not None and 1 / (1 + within) <= ratio <= 1 + within)
    return Estimate(
        ratio,
        ci,
        1.0 if same else 0.0,
        0.0,
        exact=True,
        identical=same,
        higher=higher,
        p_same=0.0 if near else 1.0,
    )


def _by_rank(
    base: dict[int, float], changed: dict[int, float], ratio: float | None, higher: bool
) -> Estimate:
    """Where zeros leave no ratio to resample: the rank test of the boots' figures."""
    if min(len(base), len(changed)) < 2:
        return Estimate(ratio, None, None, None, reason="one boot: no interval", higher=higher)
    if np.ptp([*base.values(), *changed.values()]) == 0:
        return Estimate(ratio, None, 1.0, None, identical=True, higher=higher)
    p = rank_sum(base, changed)
    return Estimate(ratio, None, p, None, reason="rank test: zeros leave no interval", higher=higher)


def _two_one_sided(found: Interval, margin: float) -> float:
    """Schuirmann's: the larger p of "lower by the margin or more" and "higher by the margin or more"."""
    edge = math.log1p(margin)
    return max(found.p_below(-edge), found.p_above(edge))


def _within(found: Estimate, margin: float) -> bool:
    if found.identical or found.ci is None:
        return found.identical
    return 1 / (1 + margin) <= found.ci[0] and found.ci[1] <= 1 + margin


def _shown_by(null: Estimate, found: Estimate, alpha: float) -> bool:
    """A pair without a change shows as large a difference."""
    if found.ci is not None and found.ratio is not None and null.ci is not None:
        return min(null.ci[0], 1.0) <= found.ratio <= max(null.ci[1], 1.0)
    return null.p is not None and null.p < alpha and null.higher == found.higher


def _and(reason: str, more: str) -> str:
    return "; ".join(text for text in (reason, more) if text)
