"""Estimate the change of a metric over all its points: one figure for each boot, then Student's t over boots.

The figure of a boot is the weighted mean over points of log(changed / base): the logarithm of the weighted
geometric mean of its ratios. Base and changed of one block are a pair, so what a block adds to both cancels.
The interval and the p-value are those of Student's t of these figures, with boots - 1 degrees of freedom. It
assumes that blocks are independent of each other and that their figures scatter like a normal distribution;
under no change they are symmetric whatever the noise is, since base and changed are then exchangeable, and
the mean over points is closer to normal than the points are. Points of one boot may depend on each other in
any way.

Only blocks that have every used point on both sides count, because the mean over the points that a boot
happened to have is a mean of something else in each boot. A point that fewer than half of the blocks have is
left out, and the metric is then one of fewer points than planned.

If a value is zero or below, there is no ratio. The figure of a boot is then the weighted mean of (changed -
base) divided by the mean size of both at that point. It has a p-value and a direction, but no interval.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
from kteardown.analysis.estimate.verdict import MEDIAN, Estimate, Rules, both_exact, exact_estimate
from kteardown.model.clock import Clock

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

    ``figures`` are the logarithms of the boots, by block; empty without a ratio or an interval. ``spread`` is
    their standard deviation; ``point_spread`` the median over points of that of the single points. None
    without a ratio.
    """

    estimate: Estimate
    used: tuple[int, ...]
    """The indices of the points that count."""
    boots: int
    spread: float | None = None
    point_spread: float | None = None
    figures: Mapping[int, float] = field(default_factory=dict)

    @property
    def points(self) -> int:
        """Return how many points count."""
        return len(self.used)


def estimate_over_points(
    points: Sequence[PointBoots],
    clock: Clock,
    rules: Rules,
    resampler: Resampler,
    *,
    quantile: float = MEDIAN,
) -> OverPoints:
    """Compare both sides over all ``points`` of a metric. ``quantile`` is taken inside each boot."""
    used, blocks = _complete(points)
    if not used:
        none = Estimate(None, None, None, None, reason="no boot has data of both kernels at all points")
        return OverPoints(none, (), 0)
    chosen = [
        PointBoots(points[n].base.only(blocks), points[n].changed.only(blocks), points[n].weight)
        for n in used
    ]
    weights = np.array([point.weight for point in chosen])
    weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(chosen), 1 / len(chosen))
    base, changed = (
        np.array([list(side.quantiles(quantile).values()) for side in sides], dtype=np.float64)
        for sides in ([p.base for p in chosen], [p.changed for p in chosen])
    )
    exact = clock == "instructions" and all(both_exact(p.base, p.changed) for p in chosen)
    equal = base == changed
    if not np.all(equal | ((base > 0) & (changed > 0))):
        found = _by_differences(base, changed, weights, exact=exact)
        return OverPoints(found, used, len(blocks))
    logs = np.log(np.where(equal, 1.0, changed)) - np.log(np.where(equal, 1.0, base))
    figures = weights @ logs
    if exact:
        centre, identical = float(figures[0]), bool(equal.all())
        ratio, zero = 1.0 if identical else math.exp(centre), abs(centre) < _ROUNDING
        found = exact_estimate(ratio, rules, higher=centre > 0, zero=zero, identical=identical)
        return OverPoints(found, used, len(blocks), 0.0, 0.0)
    if len(blocks) < 2:
        unit = "seed" if clock == "instructions" else "boot"
        found = Estimate(math.exp(figures[0]), None, None, None, reason=f"one {unit} gives no interval")
        return OverPoints(found, used, 1)
    se = float(np.std(figures, ddof=1)) / math.sqrt(len(figures))
    if clock == "wall" and np.ptp(figures) < _ROUNDING:
        se = _error_inside(chosen, weights, resampler, quantile)
    found = _student(float(np.mean(figures)), se, len(figures), rules, twin=clock == "wall")
    spread = float(np.std(figures, ddof=1))
    inside = float(np.median(np.std(logs, axis=1, ddof=1)))
    by_block = dict(zip(blocks, figures.tolist(), strict=True))
    return OverPoints(found, used, len(blocks), spread, inside, by_block)


def _complete(points: Sequence[PointBoots]) -> tuple[tuple[int, ...], list[int]]:
    """Return the points that count, and the blocks that have all of them on both sides."""
    all_blocks: set[int] = set().union(*(point.blocks for point in points))
    used = tuple(n for n, p in enumerate(points) if p.blocks and 2 * len(p.blocks) >= len(all_blocks))
    if not used:
        return (), []
    blocks = sorted(set.intersection(*(points[n].blocks for n in used)))
    return (used, blocks) if blocks else ((), [])


def _student(centre: float, se: float, boots: int, rules: Rules, *, twin: bool) -> Estimate:
    df = boots - 1
    ratio, higher = math.exp(centre), centre > 0
    if se < _ROUNDING:
        near = abs(centre) <= math.log1p(rules.same_within)
        moved = abs(centre) > _ROUNDING
        return Estimate(ratio, (ratio, ratio), float(not moved), 0.0, higher=higher, p_same=float(not near))
    half = student(df, rules.confidence) * se
    farthest = half + power_quantile(df, twin=twin) * se
    limit = math.log1p(rules.same_within)
    outside = max(special.stdtr(df, (centre - limit) / se), special.stdtr(df, (-limit - centre) / se))
    return Estimate(
        ratio,
        (bounded_exp(centre - half), bounded_exp(centre + half)),
        float(2 * special.stdtr(df, -abs(centre) / se)),
        bounded_exp(farthest) - 1,
        higher=higher,
        p_same=float(outside),
    )


def _by_differences(base: Array, changed: Array, weights: Array, *, exact: bool) -> Estimate:
    """Estimate the direction where zeros allow no ratio: Student's t of differences scaled at each point."""
    sizes = (np.abs(base) + np.abs(changed)).mean(axis=1) / 2
    figures = weights @ ((changed - base) / np.where(sizes > 0, sizes, 1.0)[:, None])
    boots, centre = len(figures), float(np.mean(figures))
    if boots < 2:
        return Estimate(None, None, None, None, reason="one boot gives no interval", higher=centre > 0)
    if np.all(base == changed):
        return Estimate(None, None, 1.0, None, identical=True)
    se = float(np.std(figures, ddof=1)) / math.sqrt(boots)
    if exact:
        p = 0.0 if abs(centre) > _ROUNDING else 1.0
    elif se < _ROUNDING:
        # Equal differences can be those of a count with few values: then only their signs are evidence.
        p = 2.0 ** (1 - boots)
    else:
        p = float(2 * special.stdtr(boots - 1, -abs(centre) / se))
    return Estimate(None, None, p, None, exact=exact, higher=centre > 0, reason=_NO_RATIO)


def _error_inside(
    points: Sequence[PointBoots], weights: Array, resampler: Resampler, quantile: float
) -> float:
    """Return the standard error from the repetitions inside boots, for boots whose figures do not differ."""
    draws: Array = np.zeros(resampler.draws)
    for number, (point, weight) in enumerate(zip(points, weights, strict=True)):
        for side, (boots, sign) in enumerate(((point.base, -1), (point.changed, 1))):
            groups = list(boots.ordered.values())
            drawn = resampler.medians_within(groups, quantile, side=2 * number + side)
            draws += sign * weight * np.log(np.maximum(drawn, 1e-300))
    spread = np.std(draws, ddof=1)
    return 0.0 if spread < _ROUNDING else float(spread) * calibration(len(points[0].base.samples))
