"""Estimates by Student's t: over all points of a metric, over the nodes of a cluster, from
published means.

Over the points, each boot has one figure, the weighted mean over points of log(changed / base), and
Student's t is over boots. If a value is zero or below, it is the weighted mean of (changed - base)
divided by the mean size of both at that point, which has a p-value and a direction, but no
interval. Only blocks that have every used point on both sides count; a point that fewer than half
of the blocks have is left out.

Over the nodes, the node is a random effect. The interval of a result is the smallest that contains
this one and that of the blocks; there is no second interval if each block has a node of its own.
Published means are judged by the rules of ``verdict``, without an A/A twin. METHODOLOGY.md has the
reasons, the figures of the simulations and the sources.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import special

from kteardown.analysis.estimate.bootstrap import (
    Array,
    Boots,
    Resampler,
    bounded_exp,
    calibration,
    power_quantile,
    student,
)
from kteardown.analysis.estimate.verdict import (
    MEDIAN,
    Estimate,
    Rules,
    SupportingResults,
    both_exact,
    exact_estimate,
    holm,
    judge,
)
from kteardown.model.clock import Clock
from kteardown.model.judged import Verdict
from kteardown.model.workload import Better

_ROUNDING = 1e-12
"""Logarithms with a smaller difference differ by rounding only."""
_NO_RATIO = "tested by differences, without an interval: not all values are above zero"


@dataclass(frozen=True)
class PointBoots:
    """The boots of both sides at one point, and the weight of the point."""

    base: Boots
    changed: Boots
    weight: float = 1.0

    @property
    def blocks(self) -> set[int]:
        """Return the blocks that have both sides."""
        return self.base.samples.keys() & self.changed.samples.keys()


@dataclass(frozen=True)
class OverPoints:
    """The estimate of a metric over ``points`` points from ``boots`` pairs of boots.

    ``figures`` are the logarithms of the boots, by block; empty without a ratio or an interval.
    ``spread`` is their standard deviation; ``point_spread`` the median over points of that of the
    single points. None without a ratio.
    """

    estimate: Estimate
    used: tuple[int, ...]
    """The indices of the points that count."""
    boots: int
    spread: float | None = None
    point_spread: float | None = None
    figures: Mapping[int, float] = field(default_factory=dict)


def estimate_over_points(
    points: Sequence[PointBoots],
    clock: Clock,
    rules: Rules,
    resampler: Resampler,
    *,
    quantile: float = MEDIAN,
) -> OverPoints:
    """Compare both sides over all ``points`` of a metric. ``quantile`` is taken inside each
    boot."""
    used, blocks = _complete(points)
    if not used:
        none = Estimate(
            None, None, None, None, reason="no boot has data of both kernels at all points"
        )
        return OverPoints(none, (), 0)
    chosen = [
        PointBoots(points[n].base.only(blocks), points[n].changed.only(blocks), points[n].weight)
        for n in used
    ]
    weights = np.array([point.weight for point in chosen])
    weights = (
        weights / weights.sum() if weights.sum() > 0 else np.full(len(chosen), 1 / len(chosen))
    )
    base, changed = (
        np.array([list(side.quantiles(quantile).values()) for side in sides], dtype=np.float64)
        for sides in ([p.base for p in chosen], [p.changed for p in chosen])
    )
    exact = clock != "wall" and all(both_exact(p.base, p.changed) for p in chosen)
    equal = base == changed
    if not np.all(equal | ((base > 0) & (changed > 0))):
        estimate = _by_differences(base, changed, weights, exact=exact)
        return OverPoints(estimate, used, len(blocks))
    logs = np.log(np.where(equal, 1.0, changed)) - np.log(np.where(equal, 1.0, base))
    figures = weights @ logs
    if exact:
        centre = float(figures[0])
        identical = bool(equal.all())
        ratio = 1.0 if identical else math.exp(centre)
        zero = abs(centre) < _ROUNDING
        estimate = exact_estimate(ratio, rules, higher=centre > 0, zero=zero, identical=identical)
        return OverPoints(estimate, used, len(blocks), 0.0, 0.0)
    if len(blocks) < 2:
        unit = "seed" if clock != "wall" else "boot"
        estimate = Estimate(
            math.exp(figures[0]), None, None, None, reason=f"one {unit} gives no interval"
        )
        return OverPoints(estimate, used, 1)
    se = float(np.std(figures, ddof=1)) / math.sqrt(len(figures))
    if clock == "wall" and np.ptp(figures) < _ROUNDING:
        se = _error_inside(chosen, weights, resampler, quantile)
    centre = float(np.mean(figures))
    if se < _ROUNDING:
        estimate = _without_spread(centre, rules)
    else:
        estimate = _student(centre, se, len(figures) - 1, rules, twin=clock == "wall")
    spread = float(np.std(figures, ddof=1))
    inside = float(np.median(np.std(logs, axis=1, ddof=1)))
    by_block = dict(zip(blocks, figures.tolist(), strict=True))
    return OverPoints(estimate, used, len(blocks), spread, inside, by_block)


def _without_spread(centre: float, rules: Rules) -> Estimate:
    """The estimate of blocks that all have the logarithm ``centre``."""
    still = abs(centre) <= _ROUNDING
    near = abs(centre) <= math.log1p(rules.same_within)
    ratio = math.exp(centre)
    return Estimate(
        ratio, (ratio, ratio), float(still), 0.0, higher=centre > 0, p_same=float(not near)
    )


def _complete(points: Sequence[PointBoots]) -> tuple[tuple[int, ...], list[int]]:
    """Return the points that count, and the blocks that have all of them on both sides."""
    all_blocks: set[int] = set().union(*(point.blocks for point in points))
    used = tuple(
        n for n, p in enumerate(points) if p.blocks and 2 * len(p.blocks) >= len(all_blocks)
    )
    if not used:
        return (), []
    blocks = sorted(set.intersection(*(points[n].blocks for n in used)))
    return (used, blocks) if blocks else ((), [])


def _student(centre: float, se: float, df: float, rules: Rules, *, twin: bool) -> Estimate:
    half = student(df, rules.confidence) * se
    edge = math.log1p(rules.same_within)
    return Estimate(
        math.exp(centre),
        (bounded_exp(centre - half), bounded_exp(centre + half)),
        float(2 * special.stdtr(df, -abs(centre) / se)),
        bounded_exp(half + power_quantile(df, twin=twin) * se) - 1,
        higher=centre > 0,
        p_same=float(special.stdtr(df, (abs(centre) - edge) / se)),
    )


def _by_differences(base: Array, changed: Array, weights: Array, *, exact: bool) -> Estimate:
    """Estimate the direction where zeros allow no ratio: Student's t of differences scaled at each
    point."""
    sizes = (np.abs(base) + np.abs(changed)).mean(axis=1) / 2
    figures = weights @ ((changed - base) / np.where(sizes > 0, sizes, 1.0)[:, None])
    boots = len(figures)
    centre = float(np.mean(figures))
    if boots < 2:
        return Estimate(
            None, None, None, None, reason="one boot gives no interval", higher=centre > 0
        )
    if np.all(base == changed):
        return Estimate(None, None, 1.0, None, identical=True)
    se = float(np.std(figures, ddof=1)) / math.sqrt(boots)
    if exact:
        p = 0.0 if abs(centre) > _ROUNDING else 1.0
    elif se < _ROUNDING:
        # Equal differences can be those of a count with few values: then only their signs are
        # evidence.
        p = 2.0 ** (1 - boots)
    else:
        p = float(2 * special.stdtr(boots - 1, -abs(centre) / se))
    return Estimate(None, None, p, None, exact=exact, higher=centre > 0, reason=_NO_RATIO)


def _error_inside(
    points: Sequence[PointBoots], weights: Array, resampler: Resampler, quantile: float
) -> float:
    """Return the standard error from the repetitions inside boots, for boots whose figures do not
    differ."""
    draws: Array = np.zeros(resampler.draws)
    for number, (point, weight) in enumerate(zip(points, weights, strict=True)):
        for side, (boots, sign) in enumerate(((point.base, -1), (point.changed, 1))):
            groups = list(boots.ordered.values())
            drawn = resampler.medians_within(groups, quantile, side=2 * number + side)
            draws += sign * weight * np.log(np.maximum(drawn, 1e-300))
    spread = np.std(draws, ddof=1)
    return 0.0 if spread < _ROUNDING else float(spread) * calibration(len(points[0].base.samples))


def over_nodes(
    estimate: Estimate, figures: Mapping[int, float], nodes: Mapping[int, str], rules: Rules
) -> Estimate:
    """Return ``estimate`` with an interval that also holds for other nodes of this kind.

    ``figures`` are the logarithms of the change, by block; ``nodes`` has the node of each block,
    and is empty if the run was on one host. An estimate without an interval is returned as it is.
    """
    groups: dict[str, list[float]] = {}
    for block, figure in figures.items():
        groups.setdefault(nodes.get(block, ""), []).append(figure)
    mean = _mean(list(groups.values()))
    if mean is None or estimate.ci is None or estimate.exact:
        return estimate
    alone = _student(*mean, rules, twin=True)
    assert alone.ci is not None
    return replace(
        estimate,
        ci=(min(estimate.ci[0], alone.ci[0]), max(estimate.ci[1], alone.ci[1])),
        p=max(estimate.p or 0.0, (alone.p or 0.0) if alone.higher == estimate.higher else 1.0),
        p_same=max(estimate.p_same or 0.0, alone.p_same or 0.0),
        mde=max(estimate.mde or 0.0, alone.mde or 0.0),
    )


def log_ratios(base: Mapping[int, float], changed: Mapping[int, float]) -> dict[int, float]:
    """Return the logarithm of changed / base of each block that has both, which must be above
    zero."""
    return {block: math.log(changed[block] / base[block]) for block in base if block in changed}


def _mean(groups: Sequence[Sequence[float]]) -> tuple[float, float, int] | None:
    """Return the mean of the log ratios over nodes, its standard error, and the degrees of
    freedom."""
    # None with one node, or if no node has two blocks that differ.
    count = len(groups)
    blocks = sum(map(len, groups))
    if count < 2 or blocks == count:
        return None
    sizes = np.array([len(group) for group in groups])
    means = np.array([np.mean(group) for group in groups])
    inside = sum(float(np.var(group)) * len(group) for group in groups) / (blocks - count)
    if inside <= 0:
        return None
    distance = float(sizes @ (means - (sizes @ means) / blocks) ** 2) - (count - 1) * inside
    between = max(0.0, distance / (blocks - float(sizes @ sizes) / blocks))
    weights = 1 / (between + inside / sizes)
    centre = float(weights @ means / weights.sum())
    variance = float(weights @ (means - centre) ** 2) / ((count - 1) * float(weights.sum()))
    return (centre, math.sqrt(variance), count - 1) if variance > 0 else None


@dataclass(frozen=True)
class Mean:
    value: float
    sd: float
    n: int

    @property
    def variance(self) -> float:
        return (self.sd / self.value) ** 2 / self.n


def judge_means(
    pairs: Sequence[tuple[Mean, Mean, Better]], rules: Rules
) -> list[tuple[Verdict, str]]:
    """Return verdict and reason of each pair (base, changed, better), with Holm's correction over
    all."""
    estimates = [estimate_means(base, changed, rules) for base, changed, _ in pairs]
    return [
        judge(estimate, SupportingResults(), p, better, rules)
        for estimate, p, (*_, better) in zip(
            estimates, holm([estimate.p for estimate in estimates]), pairs, strict=True
        )
    ]


def estimate_means(base: Mean, changed: Mean, rules: Rules) -> Estimate:
    """Return the ratio of the means, its interval and its p-values.

    Nothing can be tested with fewer than two runs on a side, or if a mean is not above zero.
    Without any spread, the only possible test is whether the means are equal within the margin.
    """
    if min(base.value, changed.value) <= 0:
        return Estimate(None, None, None, None, reason="a mean that is not above zero has no ratio")
    ratio = changed.value / base.value
    higher = ratio > 1
    if min(base.n, changed.n) < 2:
        return Estimate(ratio, None, None, None, higher=higher, reason="one run gives no interval")
    centre = math.log(ratio)
    edge = math.log1p(rules.same_within)
    se = math.sqrt(base.variance + changed.variance)
    if se == 0:
        if abs(centre) > edge:
            return Estimate(
                ratio, None, None, None, higher=higher, reason="no spread: nothing to test"
            )
        return Estimate(ratio, (ratio, ratio), 1.0, None, higher=higher, p_same=0.0)
    df = se**4 / sum(mean.variance**2 / (mean.n - 1) for mean in (base, changed))
    return replace(_student(centre, se, df, rules, twin=False), ratio=ratio, mde=None)
