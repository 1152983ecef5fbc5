"""Compare two kernels at one point: from their boots to a ratio, an interval and a verdict.

``estimate`` compares one pair; ``judge`` gives the verdict, from a p-value that is corrected for
the number of tests by ``gatekeeping`` (headline metrics and their points) or ``holm`` (all others).
The rules are applied in this order:

1. inconclusive: nothing can be tested, such as with a single boot on a side, or with printed values
   whose step is above the margin and that differ by one step at most.
2. same: the whole interval is within the margin. Without an interval, both sides have to be
  identical.
3. better or worse: the p-value of no change is below 1 - confidence, also after the correction, and
   the ratio is outside the intervals of the A/A twin and of the layout twin compared with base,
   each widened to contain 1, where they were booted.
4. inconclusive: everything else, with the reason.

An estimate is exact (instruction clock, at least two seeds: each side is one number, or both sides
are equal seed by seed), or by the bootstrap, or by the rank-sum test over boots, without an
interval, if not all samples are above zero. ``SupportingResults.rank`` is another rank test (wall
clock) and changes no verdict; the reason says if it disagrees. METHODOLOGY.md has the reasons and
sources.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kteardown.analysis.estimate.bootstrap import Boots, Resampler, ratio_interval
from kteardown.model.clock import Clock
from kteardown.model.judged import Summary, Verdict
from kteardown.model.workload import Better

Figures = Mapping[int, float]
"""The value of each boot, by block."""
MEDIAN = 0.5
_NO_RANK = "the rank test does not find a change"
_NOT_AFTER_CORRECTION = "not significant after the correction for the number of tests"
_ONE_STEP = "no more than one step of what is printed"
_RANK_ALONE = "only the rank test finds a change"


@dataclass(frozen=True)
class RankTest:
    """``p`` is the two-sided p-value of no change; ``least`` is the smallest p for this many
    boots."""

    p: float
    least: float


def rank_sum(base: Figures, changed: Figures) -> float:
    """Return the two-sided p-value of no change without pairing. Each side needs at least two
    boots."""
    before = list(base.values())
    after = list(changed.values())
    if len({*before, *after}) == 1:  # Versions of scipy since 1.18 return NaN for these.
        return 1.0
    from scipy.stats import (
        mannwhitneyu,
    )  # It loads for a second, and nearly every verb imports this module.

    return float(mannwhitneyu(after, before, alternative="two-sided").pvalue)


def rank_tests(pairs: Sequence[tuple[Figures, Figures]]) -> list[RankTest | None]:
    """Return a test for each pair (base, changed); None with fewer than two boots on a side."""
    # Pairs with equally many blocks are tested together, which is faster.
    result: list[RankTest | None] = [None] * len(pairs)
    by_size: dict[int, dict[int, NDArray[np.float64]]] = {}
    for index, (base, changed) in enumerate(pairs):
        if min(len(base), len(changed)) < 2:
            continue
        common = sorted(base.keys() & changed.keys())
        if len(common) >= 2 and min(*base.values(), *changed.values()) > 0:
            before, after = np.log([[side[block] for block in common] for side in (base, changed)])
            # Equal values can differ by rounding errors, which must not count as differences.
            by_size.setdefault(len(common), {})[index] = np.round(after - before, 12)
        else:
            least = 2 / math.comb(len(base) + len(changed), len(base))
            result[index] = RankTest(rank_sum(base, changed), least)
    for size, ratios in by_size.items():
        for index, p in zip(ratios, _signed_rank(np.array([*ratios.values()])), strict=True):
            result[index] = RankTest(float(p), 2.0 ** (1 - size))
    return result


def _signed_rank(ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p for each row: exact without ties and zeros, else by the normal approximation."""
    from scipy.stats import wilcoxon

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


@dataclass(frozen=True)
class Estimate:
    """The comparison of two kernels.

    ``ratio`` is changed / base, None if base is not above zero or changed is below zero. ``ci`` is
    its interval at the confidence of the ``Rules``, None if there is none. ``p`` is the two-sided
    p-value of no change, None if it cannot be tested. ``mde`` is the smallest detectable change:
    0.02 is two percent.
    """

    ratio: float | None
    ci: tuple[float, float] | None
    p: float | None
    mde: float | None
    exact: bool = False
    identical: bool = False
    """Every sample equals the one that it is compared with."""
    higher: bool = False
    """Changed is above base; this gives the direction if there is no ratio."""
    p_same: float | None = None
    """The p-value of a change of the margin or more, by two one-sided tests; None without an
    interval."""
    reason: str = ""
    """Why there is no interval; empty if there is one, or if nothing differs."""


@dataclass(frozen=True)
class Rules:
    """The thresholds of a verdict.

    ``confidence`` is between 0 and 1, such as 0.95. ``same_within`` is the margin of the ratio:
    0.02 is from 1 / 1.02 to 1.02.
    """

    confidence: float
    same_within: float


@dataclass(frozen=True)
class SupportingResults:
    """The results that a verdict uses besides those of the pair; each is None if it was not
    measured."""

    twin: Estimate | None = None
    """The A/A twin compared with base."""
    layout: Estimate | None = None
    """The layout twin compared with base."""
    rank: RankTest | None = None
    coarse: bool = False
    """Whether the sides differ by no more than the step of printed values, which is above the
    margin."""


def summary(boots: Boots, quantile: float = MEDIAN) -> Summary:
    """Return the median over boots of the medians (and of the quantile) inside them.

    Mean, standard deviation and count are over all samples. ``quantile`` is between 0 and 1.
    ``boots`` must have at least one sample.
    """
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
    """Return both sides restricted to common blocks, if there are at least two; else both
    unchanged."""
    if base.samples.keys() == changed.samples.keys():
        return base, changed
    common = sorted(base.samples.keys() & changed.samples.keys())
    return (base.only(common), changed.only(common)) if len(common) >= 2 else (base, changed)


def estimate(
    base: Boots,
    changed: Boots,
    clock: Clock,
    rules: Rules,
    resampler: Resampler,
    *,
    quantile: float = MEDIAN,
) -> Estimate:
    """Compare ``changed`` with ``base``; common blocks (seeds, on the instruction clock) are
    paired.

    ``quantile`` (0 to 1) is the quantile that is taken inside each boot. Boots are resampled, on
    the instruction clock as draws of the seed. On the wall clock the samples inside them are
    resampled only if the values of the boots do not differ at all, as with a coarse clock.
    """
    base, changed = paired(base, changed)
    before = base.quantile(quantile)
    after = changed.quantile(quantile)
    higher = after > before
    ratio = after / before if before > 0 and after >= 0 else None
    if clock != "wall" and both_exact(base, changed):
        same = before == after
        return exact_estimate(ratio, rules, higher=higher, zero=same, identical=same)
    if min(base.flat.min(), changed.flat.min()) <= 0:
        return _by_rank(base.quantiles(quantile), changed.quantiles(quantile), ratio, higher)
    wall = clock == "wall"
    interval = ratio_interval(
        base,
        changed,
        resampler,
        confidence=rules.confidence,
        within=wall,
        quantile=quantile,
        twin=wall,
    )
    if interval is None:
        unit = "seed" if clock != "wall" else "boot"
        return Estimate(
            ratio, None, None, None, reason=f"one {unit} gives no interval", higher=higher
        )
    # TOST: the larger p-value of the tests at both ends of the margin.
    edge = math.log1p(rules.same_within)
    p_same = max(interval.p_below(-edge), interval.p_above(edge))
    return Estimate(
        ratio, (interval.low, interval.high), interval.p, interval.mde, higher=higher, p_same=p_same
    )


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Return Holm's step-down adjustment of ``ps``, in the given order; None is kept and is not
    counted."""
    # S. Holm, Scandinavian Journal of Statistics 6, 1979.
    tested = sorted((p, index) for index, p in enumerate(ps) if p is not None)
    adjusted: list[float | None] = [None] * len(ps)
    highest = 0.0
    for rank, (p, index) in enumerate(tested):
        highest = max(highest, min(1.0, p * (len(tested) - rank)))
        adjusted[index] = highest
    return adjusted


def judge(
    estimated: Estimate,
    supporting: SupportingResults,
    p_adjusted: float | None,
    better: Better,
    rules: Rules,
) -> tuple[Verdict, str]:
    """Return the verdict and its reason in a few words, which is empty if there is nothing to add.

    ``p_adjusted`` is ``estimated.p`` after ``holm``; None if nothing can be tested.
    """
    alpha = 1 - rules.confidence
    if supporting.coarse or estimated.p is None:
        return "inconclusive", _ONE_STEP if supporting.coarse else estimated.reason
    if estimated.identical or (
        estimated.ci and all(is_within(end, rules.same_within) for end in estimated.ci)
    ):
        return (
            "same",
            "identical" if estimated.identical else f"within {rules.same_within * 100:g}%",
        )
    if estimated.p >= alpha:
        reason = estimated.reason or "the interval includes 0%"
        by_rank = supporting.rank is not None and supporting.rank.p < alpha
        return "inconclusive", "; ".join(filter(None, (reason, _RANK_ALONE * by_rank)))
    if p_adjusted is None or p_adjusted >= alpha:
        return "inconclusive", _NOT_AFTER_CORRECTION
    if explained := explained_by_twin(estimated, supporting, alpha):
        return "inconclusive", explained
    verdict: Verdict = "better" if estimated.higher == (better == "higher") else "worse"
    # The rank test could have found a change at this level, and does not.
    doubted = supporting.rank is not None and supporting.rank.least < alpha <= supporting.rank.p
    return verdict, "exact" if estimated.exact else "; ".join(
        filter(None, (estimated.reason, _NO_RANK * doubted))
    )


def explained_by_twin(estimated: Estimate, supporting: SupportingResults, alpha: float) -> str:
    """Return that a twin, which has no change, differs from base by as much; empty if none does."""
    for null, name in ((supporting.twin, "A/A"), (supporting.layout, "layout")):
        if null is None:
            continue
        as_much = null.p is not None and null.p < alpha and null.higher == estimated.higher
        if estimated.ci is not None and estimated.ratio is not None and null.ci is not None:
            as_much = min(null.ci[0], 1.0) <= estimated.ratio <= max(null.ci[1], 1.0)
        if as_much:
            return f"the {name} twin differs from base by as much"
    return ""


def both_exact(base: Boots, changed: Boots) -> bool:
    """Return whether both sides have two seeds and are one number each, or equal seed by seed."""
    if min(len(base.samples), len(changed.samples)) < 2:
        return False
    constant = np.ptp(base.flat) == 0 and np.ptp(changed.flat) == 0
    return bool(constant) or {b: list(v) for b, v in base.samples.items()} == {
        b: list(v) for b, v in changed.samples.items()
    }


def exact_estimate(
    ratio: float | None, rules: Rules, *, higher: bool, zero: bool, identical: bool
) -> Estimate:
    """Return the estimate of an exact ratio, whose interval is itself; ``zero``: there is no
    change."""
    near = zero or (ratio is not None and is_within(ratio, rules.same_within))
    return Estimate(
        ratio,
        None if ratio is None else (ratio, ratio),
        1.0 if zero else 0.0,
        0.0,
        exact=True,
        identical=identical,
        higher=higher,
        p_same=0.0 if near else 1.0,
    )


def is_within(ratio: float, margin: float) -> bool:
    """Return whether a ratio is inside the margin of ``same``."""
    return 1 / (1 + margin) <= ratio <= 1 + margin


def _by_rank(
    base: dict[int, float], changed: dict[int, float], ratio: float | None, higher: bool
) -> Estimate:
    """Estimate by the rank test of the values of the boots, because zeros allow no ratio to
    resample."""
    if min(len(base), len(changed)) < 2:
        return Estimate(ratio, None, None, None, reason="one boot gives no interval", higher=higher)
    if np.ptp([*base.values(), *changed.values()]) == 0:
        return Estimate(ratio, None, 1.0, None, identical=True, higher=higher)
    p = rank_sum(base, changed)
    reason = "rank test without an interval: not all samples are above zero"
    return Estimate(ratio, None, p, None, reason=reason, higher=higher)
