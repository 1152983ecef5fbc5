"""The growth laws of a result: each metric of each kernel over the parameter of its workload.

How much one more object costs on the changed kernel, compared with base, is the ratio of two
slopes, each the mean of the slopes of the boots, with the weights of the growth law of their
kernel. Its interval is Fieller's: it contains every ratio r for which "changed - r * base" does not
differ significantly from zero by Student's t, boots - 1 degrees of freedom. It is finite only if
base grows significantly. METHODOLOGY.md has the sources.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from kteardown.analysis.dataset import Data, Dataset, compared, headlines
from kteardown.analysis.estimate.bootstrap import student
from kteardown.analysis.estimate.verdict import Estimate, Rules, SupportingResults, is_within
from kteardown.analysis.growth.fit import MIN_POINTS, Costs, fit, predict, slope
from kteardown.model.judged import Outside, Verdict, tidy, tidy_pair
from kteardown.model.laws import Law
from kteardown.model.point import Key, Point
from kteardown.model.record import BASE, LAYOUT, TWIN
from kteardown.model.workload import Better

_ROUNDING = 1e-9
"""Slopes with a smaller relative difference differ by rounding only."""
Rows = dict[int, list[float]]
"""By block, the medians of a boot at every size."""
_FURTHER = 2.0
"""Without requested values, predict at this multiple of the largest measured value."""


@dataclass(frozen=True, eq=False)
class SlopeRatio:
    """The slopes of a headline metric of a variant and of base; ``rest`` are the other
    parameters."""

    workload: str
    metric: str
    variant: str
    rest: Key
    better: Better
    estimate: Estimate
    supporting: SupportingResults


def slope_ratios(data: Data) -> list[SlopeRatio]:
    """Return the ratios of the headline metrics of the requested variants, for every growth law."""
    result = []
    for workload, metric, spec in headlines(data.experiment, data.workloads):
        param = data.workloads[workload].law
        for rest, family in families(data.expected, workload, param).items():
            ratio = partial(_ratio, family, param, metric, data.rules)
            twins = SupportingResults(ratio(TWIN, data.collected), ratio(LAYOUT, data.moved))
            for variant in data.asked_for:
                estimate = ratio(variant, data.collected)
                if estimate is not None:
                    result.append(
                        SlopeRatio(workload, metric, variant, rest, spec.better, estimate, twins)
                    )
    return result


def families(expected: Sequence[Point], workload: str, param: str) -> dict[Key, list[Point]]:
    """Return the points of a workload by all parameters except ``param``; empty if it has no
    law."""
    result: dict[Key, list[Point]] = {}
    for point in expected:
        if point.workload == workload and param in dict(point.full):
            rest = tuple(item for item in point.full if item[0] != param)
            result.setdefault(rest, []).append(point)
    return result


def estimate_slopes(sizes: Sequence[float], base: Rows, changed: Rows, rules: Rules) -> Estimate:
    """Return the ratio of the mean slopes over the blocks that both sides have."""
    blocks = sorted(base.keys() & changed.keys())
    if len(blocks) < 2:
        return Estimate(None, None, None, None, reason="one boot gives no interval")
    x = np.asarray(sizes, dtype=np.float64)
    rows = [np.array([side[block] for block in blocks]) for side in (base, changed)]
    base_slopes, changed_slopes = (
        slope(x, side, costs.weights(costs.y)) for side in rows for costs in [Costs(x, side)]
    )
    t = student(len(blocks) - 1, rules.confidence)
    covariance = np.cov(base_slopes, changed_slopes) / len(blocks)
    a = float(np.mean(base_slopes))
    b = float(np.mean(changed_slopes))
    scale = _ROUNDING * max(abs(a), abs(b))
    # Noise that is smaller than rounding is none.
    covariance = np.where(np.abs(covariance) < scale**2, 0.0, covariance)
    square = a * a - t * t * covariance[0, 0]
    if a == 0 or square <= 0:
        return Estimate(None, None, None, None, reason="base does not grow significantly")
    error = math.sqrt(max(0.0, covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]))
    if error == 0.0:
        p = 1.0 if abs(b - a) <= scale else 0.0
    else:
        p = float(2 * special.stdtr(len(blocks) - 1, -abs(b - a) / error))
    middle = a * b - t * t * covariance[0, 1]
    root = math.sqrt(max(0.0, middle**2 - square * (b * b - t * t * covariance[1, 1])))
    ends = ((middle - root) / square, (middle + root) / square)
    exact = not covariance.any()
    ratio = b / a
    same = is_within(ends[0], rules.same_within) and is_within(ends[1], rules.same_within)
    return Estimate(
        ratio,
        (ratio, ratio) if exact else ends,
        p,
        None,
        exact=exact,
        identical=exact and p == 1.0,
        higher=b > a,
        p_same=0.0 if exact and same else None,
    )


def _ratio(
    family: Sequence[Point], param: str, metric: str, rules: Rules, kernel: str, collected: Dataset
) -> Estimate | None:
    """Compare the lines of ``kernel`` and base over ``param``; None if fewer than three sizes have
    both."""
    sizes, (before, after) = _rows(collected, (BASE, kernel), family, param, metric)
    if len(set(sizes)) < MIN_POINTS or (before and not any(map(any, before.values()))):
        return None
    return estimate_slopes(sizes, before, after, rules)


def _rows(
    collected: Dataset, kernels: Sequence[str], family: Sequence[Point], param: str, metric: str
) -> tuple[list[float], list[Rows]]:
    """Return the sizes with samples of all ``kernels``, and of each the rows of boots that have
    them all."""
    sizes: list[float] = []
    medians: list[list[Mapping[int, float]]] = [[] for _ in kernels]
    for point in family:
        all_boots = [collected.boots(kernel, point, metric) for kernel in kernels]
        by_block = [boots.medians for boots in all_boots if boots is not None]
        size = point.params[param]
        if len(by_block) == len(all_boots) and isinstance(size, int):
            sizes.append(size)
            for of_kernel, at_size in zip(medians, by_block, strict=True):
                of_kernel.append(at_size)
    common = [sorted(set[int].intersection(*map(set, of))) if of else [] for of in medians]
    return sizes, [
        {block: [blocks[block] for blocks in of] for block in kept}
        for of, kept in zip(medians, common, strict=True)
    ]


def laws(
    data: Data,
    kernels: Sequence[str],
    predict_at: Mapping[str, Sequence[float]],
    slopes: Sequence[SlopeRatio],
    verdicts: Sequence[tuple[Verdict, str, Outside | None]],
) -> tuple[Law, ...]:
    """Return a law for each compared metric, each kernel, and each setting of the other parameters.

    ``predict_at`` has the values at which to predict, by parameter. ``verdicts`` are those of
    ``slopes``.
    """
    result: list[Law] = []
    ratios: dict[tuple[str, str, str, Key], dict[str, Any]] = {
        (s.workload, s.metric, s.variant, s.rest): {
            "ratio": tidy(s.estimate.ratio),
            "ratio_ci": tidy_pair(s.estimate.ci),
            "ratio_p": tidy(s.estimate.p),
            "verdict": verdict,
            "reason": reason,
            "outside": outside,
        }
        for s, (verdict, reason, outside) in zip(slopes, verdicts, strict=True)
    }
    for workload, metric, spec in compared(data.experiment, data.workloads):
        param = data.workloads[workload].law
        for rest, family in families(data.expected, workload, param).items():
            for kernel in kernels:
                sizes, (rows,) = _rows(data.collected, (kernel,), family, param, metric)
                fitted = fit(sizes, list(rows.values()), data.rules.confidence) if rows else None
                if fitted is None:
                    continue
                sizes_to_predict = predict_at.get(param) or (_FURTHER * max(sizes),)
                law = Law(
                    workload=workload,
                    kernel=kernel,
                    metric=metric,
                    unit=spec.unit,
                    param=param,
                    point={name: value for name, value in family[0].shown.items() if name != param},
                    predictions=tuple(
                        predict(fitted, at, data.rules.confidence) for at in sizes_to_predict
                    ),
                    model=fitted.model,
                    per_unit=tidy(fitted.per_unit),
                    per_unit_ci=tidy_pair(fitted.per_unit_ci),
                    intercept=tidy(fitted.intercept),
                    exponent=tidy(fitted.exponent),
                    exponent_ci=tidy_pair(fitted.exponent_ci),
                    r2=tidy(fitted.r2),
                    points=fitted.points,
                    **ratios.get((workload, metric, kernel, rest), {}),
                )
                result.append(law)
    return tuple(result)
