"""Fit growth laws to costs, and predict costs beyond the measured range.

The candidates are cost = a + b * g(n), where g(n) is absent, n, n log n, n squared, or n to a
fitted power, each fitted by weighted least squares. Residuals are relative to the cost, because the
error of a cost grows with the cost; the scale has a floor at a tenth of the median cost, below
which the constant parts dominate. The law a + b * n + c * n squared is not a candidate: it bounds
the curvature that the costs allow. A prediction covers all plausible laws, and is refused if they
disagree. METHODOLOGY.md has the rules and sources.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kteardown.analysis.estimate.bootstrap import Array, Resampler, calibration, student
from kteardown.model.judged import tidy
from kteardown.model.laws import LawModel, Prediction

PARSIMONY = 1e-3
"""A law whose relative error is below one thousandth is not rejected for a law with more
parameters."""
_EXPONENTS = np.linspace(0.1, 4.0, 1561)
_Terms = Callable[[Array], tuple[Array, ...]]
"""A function that returns the regressors at each n, without the constant."""
_SHAPES: dict[LawModel, _Terms] = {
    "constant": lambda n: (),
    "linear": lambda n: (n,),
    "nlogn": lambda n: (n * np.log(np.maximum(n, 1.0)),),
    "quadratic": lambda n: (n**2,),
}
MIN_POINTS = 3
CONSTANT_SHARE = 0.1
"""In a constant cost, the objects account for at most this share at the largest ``n``, error
included.

The slope times the largest ``n`` is what they cost. Of a cost that is proportional to ``n`` that is
all of it over any range, so none is called constant because its ``n`` are close together.
"""
FARTHEST = 4.0
"""Multiple of the largest measured value; beyond it, an undetected term can dominate the cost."""
WIDEST = 2.0
"""A prediction is refused if the ratio of its ends exceeds this."""
_MIN_POINTS_FOR_AICC = 5
_MIN_POINTS_FOR_EXPONENT = 6
_TIE = 2.0
_PLAUSIBLE = 6.0
"""Laws within this of the best criterion: their evidence is at least a twentieth of that of the
best law."""


@dataclass(frozen=True)
class Costs:
    """Costs ``y`` at the values ``x`` of a parameter: medians over boots, which are the rows of
    ``rows``.

    ``x`` and ``y`` have the shape (points,), ``rows`` (boots, points). Costs are in the unit of the
    metric.
    """

    x: Array
    rows: Array

    @cached_property
    def y(self) -> Array:
        return np.median(self.rows, axis=0)

    def weights(self, costs: Array) -> Array:
        """Return the factors that scale residuals at such costs."""
        sizes = np.abs(self.y)
        floor = max(float(np.median(sizes)), float(np.max(sizes)) / 10) / 10
        if floor == 0:
            return np.ones_like(costs)
        weights: Array = 1 / np.maximum(np.abs(costs), floor)
        return weights


@dataclass(frozen=True)
class FittedLaw:
    """One fitted law. The constant is the first coefficient; ``rss`` the weighted residual sum of
    squares."""

    model: LawModel
    terms: _Terms
    coefficients: Array
    rss: float
    exponent: float | None = None
    exponent_ci: tuple[float, float] | None = None

    def values(self, n: Array) -> Array:
        """Return the cost at each ``n``."""
        costs: Array = _design(self.terms, n) @ self.coefficients
        return costs

    def gradient(self, n: Array) -> Array:
        """Return the derivatives of the cost at each ``n``, of shape (points, parameters)."""
        design = _design(self.terms, n)
        if self.exponent is None:
            return design
        by_exponent = self.coefficients[1] * design[:, 1] * np.log(np.maximum(n, 1e-300))
        return np.column_stack((design, by_exponent))

    def aicc(self, points: int) -> float:
        """Return the corrected Akaike criterion (C. Hurvich, C. Tsai, Biometrika 76, 1989)."""
        # The coefficients, the exponent if it was fitted, and the error variance.
        k = len(self.coefficients) + (self.exponent is not None) + 1
        return points * math.log(self.variance(points)) + 2 * k + 2 * k * (k + 1) / (points - k - 1)

    def variance(self, points: int, spent: int = 0) -> float:
        """Return the mean square of the weighted residuals, at least ``PARSIMONY`` squared.

        ``spent`` is the number of degrees of freedom that the fit used.
        """
        return max(self.rss, points * PARSIMONY**2) / (points - spent)


def power(costs: Costs, confidence: float) -> FittedLaw:
    """Return a + b * n**p: for each p the rest is linear, so only p is searched."""
    # The interval of p is that of the profile likelihood (D. Bates, D. Watts, "Nonlinear Regression
    # Analysis", 1988, section 6.1); None if the data does not bound it.
    weights = costs.weights(costs.y)
    w2 = weights**2
    grown = (costs.x / np.max(costs.x)) ** _EXPONENTS[:, None]
    off = grown - np.average(grown, axis=1, weights=w2)[:, None]
    level = costs.y - np.average(costs.y, weights=w2)
    slopes = (off @ (w2 * level)) / (np.square(off) @ w2)
    rss = np.square(level - slopes[:, None] * off) @ w2
    best = int(np.argmin(rss))
    df = len(costs.x) - 3
    floor = max(float(rss[best]), len(costs.x) * PARSIMONY**2)
    t = student(df, confidence)
    inside = np.flatnonzero(rss <= floor * (1 + t * t / df))
    low = int(inside[0])
    high = int(inside[-1])
    bounded = low > 0 and high < len(_EXPONENTS) - 1
    exponent = float(_EXPONENTS[best])
    ci = (float(_EXPONENTS[low]), float(_EXPONENTS[high])) if bounded else None
    return replace(
        _fit(costs, "power", lambda n: (n**exponent,)), exponent=exponent, exponent_ci=ci
    )


def slope(x: Array, y: Array, weights: Array) -> Array:
    """Return the weighted least squares slope of each row of ``y`` (rows, points) over ``x``
    (points,)."""
    w2 = weights**2
    off = x - np.average(x, weights=w2)
    slopes: Array = y @ (w2 * off) / float(np.sum(w2 * off**2))
    return slopes


def _fit(costs: Costs, model: LawModel, terms: _Terms) -> FittedLaw:
    weights = costs.weights(costs.y)
    design = weights[:, None] * _design(terms, costs.x)
    scales = np.linalg.norm(design, axis=0)
    coefficients = np.linalg.lstsq(design / scales, weights * costs.y, rcond=None)[0] / scales
    rss = float(np.sum(np.square(weights * costs.y - design @ coefficients)))
    return FittedLaw(model, terms, coefficients, rss)


def _design(terms: _Terms, n: Array) -> Array:
    return np.column_stack((np.ones(len(n)), *terms(n)))


@dataclass(frozen=True)
class Fit:
    """The growth law of one metric of one kernel, in the metric's unit; None for what cannot be
    estimated.

    ``per_unit`` is the cost of one more object: the slope of the straight line, whichever law is
    chosen. The law is ``unknown`` if the costs show neither a law that grows nor that they are
    constant.

    ``costs`` and ``curves``, the fitted candidates, are the inputs of ``predict``.
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
    curves: tuple[FittedLaw, ...]


def fit(n: Sequence[float], costs: Sequence[Sequence[float]], confidence: float) -> Fit | None:
    """Fit the growth laws to ``costs``, which has a row for each boot and a column for each ``n``
    (>= 0).

    The fit is to the medians over boots. The interval of ``per_unit`` is the wider of two: from the
    residuals of the straight line, and from the spread of the slopes of the individual boots. With
    one boot only the first is known, which does not include the variation between boots. Returns
    None with fewer than three different ``n``, or if every cost is zero.
    """
    data = Costs(np.asarray(n, dtype=np.float64), np.asarray(costs, dtype=np.float64))
    points = len(data.x)
    if len(np.unique(data.x)) < MIN_POINTS or not np.any(data.y):
        return None
    curves = [_fit(data, model, terms) for model, terms in _SHAPES.items()]
    flat, line = curves[:2]
    weights = data.weights(data.y)
    off = data.x - np.average(data.x, weights=weights**2)
    error = math.sqrt(line.rss / max(1, points - 2) / float(np.sum(weights**2 * off**2)))
    steepness = student(points - 2, confidence) * error
    half = max(steepness, _between_boots(slope(data.x, data.rows, weights), confidence))
    per_unit_ci = (float(line.coefficients[1]) - half, float(line.coefficients[1]) + half)
    if points >= _MIN_POINTS_FOR_EXPONENT:
        curves.append(power(data, confidence))
    chosen = _choose(curves, data, per_unit_ci)
    grows = chosen is not None and chosen is not flat
    exponent_ci = curves[-1].exponent_ci if grows else None
    return Fit(
        model=chosen.model if chosen else "unknown",
        per_unit=float(line.coefficients[1]),
        per_unit_ci=per_unit_ci,
        intercept=float(line.coefficients[0]),
        exponent=curves[-1].exponent if exponent_ci else None,
        exponent_ci=exponent_ci,
        r2=1 - chosen.rss / flat.rss if chosen and grows and flat.rss > 0 else None,
        points=points,
        costs=data,
        curves=tuple(curves),
    )


def _choose(
    curves: Sequence[FittedLaw], data: Costs, per_unit_ci: tuple[float, float]
) -> FittedLaw | None:
    """Return the law that the costs show; None if they show neither a law that grows nor a
    constant."""
    flat, line = curves[:2]
    points = len(data.x)
    if points >= _MIN_POINTS_FOR_AICC:
        best = min(curve.aicc(points) for curve in curves)
        chosen = next(curve for curve in curves if curve.aicc(points) <= best + _TIE)
    else:
        # Too few points to distinguish shapes: decide only whether the cost grows. Equal costs have
        # a slope of rounding errors, which can all have the same sign.
        grows = not per_unit_ci[0] <= 0 <= per_unit_ci[1] and flat.rss > points * PARSIMONY**2
        chosen = line if grows else flat
    # That growth was not found is no proof: few points or large noise have the same effect. So that
    # a cost is constant is a test of equivalence.
    of_objects = max(abs(end) for end in per_unit_ci) * float(np.max(data.x))
    constant = of_objects <= CONSTANT_SHARE * abs(float(flat.coefficients[0]))
    return None if chosen is flat and not constant else chosen


def predict(fitted: Fit, at: float, confidence: float) -> Prediction:
    """Predict the cost at ``at`` by the chosen law, as the median over as many boots as were
    measured.

    The interval contains those of all plausible laws. Each of them is the value of the law plus or
    minus Student's t times the combined error of one more point and of the law itself. The error of
    the law is the larger of two: from the residuals, and from the spread of the predictions of
    individual boots.

    The prediction is refused, with the reason, in these cases: fewer than five points or two boots;
    an unknown law; ``at`` above ``FARTHEST`` times the largest measured value, up to which
    intervals had their coverage in simulation even if the truth was none of the laws
    (findings/results/simulations); or ends whose ratio exceeds ``WIDEST``.
    """
    largest = float(np.max(fitted.costs.x))
    if fitted.points < _MIN_POINTS_FOR_AICC:
        reason = (
            f"{fitted.points} points are too few for a growth law, "
            f"{_MIN_POINTS_FOR_AICC} are needed"
        )
        return Prediction(at=at, refused=reason)
    if len(fitted.costs.rows) < 2:
        return Prediction(at=at, refused="one boot does not show how boots differ")
    if fitted.model == "unknown":
        return Prediction(at=at, refused="the growth law is unknown")
    if at > FARTHEST * largest:
        reason = f"more than {FARTHEST:g} times the largest measured value, {largest:,.10g}"
        return Prediction(at=at, refused=reason)
    # The criterion alone would rarely keep the curved law, because it penalizes parameters. A
    # curvature that is too small to be significant can still matter beyond the data.
    scores = [curve.aicc(fitted.points) for curve in fitted.curves]
    kept = [
        c
        for c, score in zip(fitted.curves, scores, strict=True)
        if score <= min(scores) + _PLAUSIBLE
    ]
    bent = _fit(fitted.costs, "quadratic", lambda n: (n, n**2))
    worse = bent.variance(fitted.points) / min(
        curve.variance(fitted.points) for curve in fitted.curves
    )
    plausible = [*kept, bent] if fitted.points * math.log(worse) <= _PLAUSIBLE else kept
    ends = [_ends(curve, fitted.costs, at, confidence) for curve in plausible]
    low = min(end[0] for end in ends)
    high = max(end[1] for end in ends)
    if low <= 0 or high > WIDEST * low:
        names = ", ".join(dict.fromkeys(curve.model for curve in plausible)).replace(
            "nlogn", "n log n"
        )
        reason = f"models disagree ({_rounded(low)} to {_rounded(high)}; {names})"
        return Prediction(at=at, refused=reason)
    law = next(curve for curve in fitted.curves if curve.model == fitted.model)
    value = float(law.values(np.array([at]))[0])
    return Prediction(at=at, value=tidy(value), low=tidy(low), high=tidy(high))


def _rounded(value: float) -> str:
    """Return ``value`` with four significant digits and thousands separators."""
    return f"{float(f'{value:.4g}'):,.10g}"


def _ends(curve: FittedLaw, costs: Costs, at: float, confidence: float) -> tuple[float, float]:
    """Return the prediction interval of one law."""
    # D. Bates, D. Watts, "Nonlinear Regression Analysis", 1988, section 2.3.
    points = len(costs.x)
    value = float(curve.values(np.array([at]))[0])
    weights = costs.weights(costs.y)
    gradient = weights[:, None] * curve.gradient(costs.x)
    scales = np.linalg.norm(gradient, axis=0)
    gradient_at = curve.gradient(np.array([at]))[0] / scales
    inverse = np.linalg.pinv(gradient / scales)
    df = points - gradient.shape[1]
    noise = curve.variance(points, gradient.shape[1])
    t = student(df, confidence)
    one_more = t * math.sqrt(noise) / float(costs.weights(np.array([value]))[0])
    scatter = t * math.sqrt(noise) * float(np.linalg.norm(gradient_at @ inverse))
    residuals = weights * (costs.rows - curve.values(costs.x))
    between = _between_boots(residuals @ inverse.T @ gradient_at, confidence)
    half = math.hypot(one_more, max(scatter, between))
    return value - half, value + half


def _between_boots(figures: Array, confidence: float) -> float:
    """Return half the interval of the median of ``figures``, one for each boot."""
    boots = len(figures)
    if boots < 2 or np.ptp(figures) == 0:
        return 0.0
    draws = Resampler(seed=1).medians(figures, stream=0)
    bell = student(boots - 1, confidence) * float(np.std(draws, ddof=1)) * calibration(boots)
    ends = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return max(bell, float(np.max(np.abs(ends - np.median(figures)))))
