"""How a cost grows with a parameter: which law, how much for one more, which exponent, how much at more.

The candidates are in ``curves``. The law is the simplest one within 2 of the best corrected Akaike criterion
(K. Burnham, D. Anderson, "Model Selection and Multimodel Inference", 2002, section 2.6). What it says beyond
the largest value measured depends more on which law it is than on its coefficients, so a prediction
covers what every plausible law says (the same, chapter 4), and there is none where these disagree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from kteardown.analysis.estimate.bootstrap import Array, Resampler, calibration
from kteardown.analysis.growth.curves import Costs, Curve, candidates, curved, power, slope, slope_error
from kteardown.model.result import LawModel, Prediction

MIN_POINTS = 3
FARTHEST = 4.0
"""Times the largest value measured: beyond, a term that the data cannot show can rule the cost."""
WIDEST = 2.0
"""The ratio of the ends of a prediction beyond which it is no answer."""
_MIN_POINTS_FOR_AICC = 5
_MIN_POINTS_FOR_EXPONENT = 6
_TIE = 2.0
_PLAUSIBLE = 6.0
"""Laws within this of the best: their evidence is at least a twentieth of its."""


@dataclass(frozen=True)
class Fit:
    """The law of one metric of one kernel. Units are the metric's; None where it cannot be told.

    ``costs`` and ``curves``, the candidates that were fitted, are what ``predict`` needs.
    """

    model: LawModel
    per_unit: float
    per_unit_ci: tuple[float, float]
    intercept: float
    exponent: float | None
    exponent_ci: tuple[float, float] | None
    r2: float | None
    points: int
    costs: Costs
    curves: tuple[Curve, ...]


def fit(n: Sequence[float], costs: Sequence[Sequence[float]], confidence: float) -> Fit | None:
    """Fit the laws to ``costs``: a row per boot, a column per value of ``n`` (at or above zero).

    The fit is to the medians over boots. The interval of ``per_unit`` is the wider one of what the
    scatter around the line and what the spread of the boots' own slopes say; one boot has the first alone,
    which knows nothing of other boots. None with fewer than three different ``n``, or where every cost
    is zero.
    """
    data = Costs.of(np.asarray(n, dtype=np.float64), np.asarray(costs, dtype=np.float64))
    points = len(data.x)
    if len(np.unique(data.x)) < MIN_POINTS or not np.any(data.y):
        return None
    curves = candidates(data)
    flat, line = curves[:2]
    steepness = _student(points - 2, confidence) * slope_error(line, data)
    half = max(steepness, _between(slope(data.x, data.rows, data.weights(data.y)), confidence))
    per_unit_ci = (float(line.coefficients[1]) - half, float(line.coefficients[1]) + half)
    if points < _MIN_POINTS_FOR_AICC:
        # Too few points to tell shapes apart: does it grow at all?
        grows = not per_unit_ci[0] <= 0 <= per_unit_ci[1]
        chosen = line if grows else flat
    else:
        if points >= _MIN_POINTS_FOR_EXPONENT:
            curves.append(power(data, confidence))
        best = min(curve.aicc(points) for curve in curves)
        chosen = next(curve for curve in curves if curve.aicc(points) <= best + _TIE)
    exponent_ci = curves[-1].exponent_ci if chosen is not flat else None
    return Fit(
        model=chosen.model,
        per_unit=float(line.coefficients[1]),
        per_unit_ci=per_unit_ci,
        intercept=float(line.coefficients[0]),
        exponent=curves[-1].exponent if exponent_ci else None,
        exponent_ci=exponent_ci,
        r2=1 - chosen.rss / flat.rss if flat.rss > 0 and chosen is not flat else None,
        points=points,
        costs=data,
        curves=tuple(curves),
    )


def predict(found: Fit, at: float, confidence: float) -> Prediction:
    """The cost at ``at``, as the median over as many boots would show it, by the law chosen.

    The interval holds those of all plausible laws: each the law's value give or take Student's t times the
    scatter of one more point and the larger error of the law itself, by the scatter around it or by the
    spread of what each boot alone predicts. Refused, with the reason: with fewer than five points or two
    boots; beyond ``FARTHEST`` times the largest value measured, up to which intervals held in simulation even
    where the truth was none of the laws (METHODOLOGY.md); and where the ends differ by more than ``WIDEST``.
    """
    largest = float(np.max(found.costs.x))
    if found.points < _MIN_POINTS_FOR_AICC:
        reason = f"{found.points} points do not tell a law: {_MIN_POINTS_FOR_AICC} are needed"
        return Prediction(at=at, refused=reason)
    if len(found.costs.rows) < 2:
        return Prediction(at=at, refused="one boot says nothing about the next")
    if at > FARTHEST * largest:
        reason = f"more than {FARTHEST:g} times {largest:g}, the largest value measured"
        return Prediction(at=at, refused=reason)
    plausible = _plausible(found)
    ends = [_ends(curve, found.costs, at, confidence) for curve in plausible]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    if low <= 0 or high > WIDEST * low:
        names = ", ".join(dict.fromkeys(curve.model for curve in plausible))
        reason = f"anything from {low:.4g} to {high:.4g} fits what was measured ({names})"
        return Prediction(at=at, refused=reason)
    law = next(curve for curve in found.curves if curve.model == found.model)
    return Prediction(at=at, value=float(law.values(np.array([at]))[0]), low=low, high=high)


def _plausible(found: Fit) -> list[Curve]:
    """The laws that the criterion leaves, and what bounds a bend, unless that fits worse than all of them.

    The criterion would seldom keep the bend: it prices parameters, and what a bend too small to pay its
    price does beyond the data is the very question.
    """
    scores = [curve.aicc(found.points) for curve in found.curves]
    kept = [c for c, score in zip(found.curves, scores, strict=True) if score <= min(scores) + _PLAUSIBLE]
    bent = curved(found.costs)
    worse = bent.variance(found.points) / min(curve.variance(found.points) for curve in found.curves)
    return [*kept, bent] if found.points * math.log(worse) <= _PLAUSIBLE else kept


def _ends(curve: Curve, costs: Costs, at: float, confidence: float) -> tuple[float, float]:
    """The prediction interval of one law (D. Bates, D. Watts, "Nonlinear Regression Analysis", 1988, 2.3)."""
    points = len(costs.x)
    value = float(curve.values(np.array([at]))[0])
    weights = costs.weights(costs.y)
    gradient = weights[:, None] * curve.gradient(costs.x)
    scales = np.linalg.norm(gradient, axis=0)
    there = curve.gradient(np.array([at]))[0] / scales
    inverse = np.linalg.pinv(gradient / scales)
    df = points - gradient.shape[1]
    noise = curve.variance(points, gradient.shape[1])
    t = _student(df, confidence)
    one_more = t * math.sqrt(noise) / float(costs.weights(np.array([value]))[0])
    scatter = t * math.sqrt(noise) * float(np.linalg.norm(there @ inverse))
    residuals = weights * (costs.rows - curve.values(costs.x))
    between = _between(residuals @ inverse.T @ there, confidence)
    half = math.hypot(one_more, max(scatter, between))
    return value - half, value + half


def _between(figures: Array, confidence: float) -> float:
    """Half the interval of the median of the boots' own ``figures``."""
    boots = len(figures)
    if boots < 2 or np.ptp(figures) == 0:
        return 0.0
    draws = Resampler(seed=1).medians(figures, stream=0)
    bell = _student(boots - 1, confidence) * float(np.std(draws, ddof=1)) * calibration(boots)
    ends = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return max(bell, float(np.max(np.abs(ends - np.median(figures)))))


def _student(df: int, confidence: float) -> float:
    return float(special.stdtrit(df, (1 + confidence) / 2))
