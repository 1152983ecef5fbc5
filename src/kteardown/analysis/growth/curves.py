"""The candidate growth laws, each fitted by weighted least squares: cost = a + b * g(n).

g(n) is absent, n, n log n, n squared, or n to a fitted power. ``curved``, a + b * n + c * n squared, is not a
candidate: it bounds the curvature that the costs allow. Residuals are relative to the cost, because the error
of a cost grows with the cost; the scale has a floor at a tenth of the median cost, below which the constant
parts dominate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kteardown.analysis.estimate.bootstrap import Array, student
from kteardown.model.result import LawModel

PARSIMONY = 1e-3
"""A law whose relative error is below one thousandth is not rejected for a law with more parameters."""
_EXPONENTS = np.linspace(0.1, 4.0, 1561)
_Terms = Callable[[Array], tuple[Array, ...]]
"""A function that returns the regressors at each n, without the constant."""
_SHAPES: dict[LawModel, _Terms] = {
    "linear": lambda n: (n,),
    "nlogn": lambda n: (n * np.log(np.maximum(n, 1.0)),),
    "quadratic": lambda n: (n**2,),
}


@dataclass(frozen=True)
class Costs:
    """Costs ``y`` at the values ``x`` of a parameter: medians over boots, which are the rows of ``rows``.

    ``x`` and ``y`` have the shape (points,), ``rows`` (boots, points). Costs are in the unit of the metric.
    """

    x: Array
    y: Array
    rows: Array

    @staticmethod
    def of(x: Array, rows: Array) -> Costs:
        """Return the costs from ``rows``, which has a row per boot and a column per value of ``x``."""
        return Costs(x, np.median(rows, axis=0), rows)

    def weights(self, costs: Array) -> Array:
        """Return the factors that scale residuals at such costs."""
        sizes = np.abs(self.y)
        floor = max(float(np.median(sizes)), float(np.max(sizes)) / 10) / 10
        weights: Array = 1 / np.maximum(np.abs(costs), floor)
        return weights


@dataclass(frozen=True)
class FittedLaw:
    """One fitted law.

    The constant is the first coefficient; ``rss`` is the weighted residual sum of squares.
    """

    model: LawModel
    terms: _Terms
    coefficients: Array
    rss: float
    exponent: float | None = None
    exponent_ci: tuple[float, float] | None = None

    @property
    def parameters(self) -> int:
        """Return the number of fitted parameters, including the exponent but not the error variance."""
        return len(self.coefficients) + (self.exponent is not None)

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
        k = self.parameters + 1
        return points * math.log(self.variance(points)) + 2 * k + 2 * k * (k + 1) / (points - k - 1)

    def variance(self, points: int, spent: int = 0) -> float:
        """Return the mean square of the weighted residuals, at least ``PARSIMONY`` squared.

        ``spent`` is the number of degrees of freedom that the fit used.
        """
        return max(self.rss, points * PARSIMONY**2) / (points - spent)


def candidates(costs: Costs) -> list[FittedLaw]:
    """Return the constant, linear, n log n and quadratic laws."""
    flat = _fit(costs, "constant", lambda n: ())
    return [flat, *(_fit(costs, model, terms) for model, terms in _SHAPES.items())]


def curved(costs: Costs) -> FittedLaw:
    """Return a + b * n + c * n squared: a quadratic law with a linear part."""
    return _fit(costs, "quadratic", lambda n: (n, n**2))


def power(costs: Costs, confidence: float) -> FittedLaw:
    """Return a + b * n**p: for each p the rest is linear, so only p is searched.

    The interval of p is that of the profile likelihood (D. Bates, D. Watts, "Nonlinear Regression Analysis",
    1988, section 6.1); None if the data does not bound it.
    """
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
    low, high = int(inside[0]), int(inside[-1])
    bounded = low > 0 and high < len(_EXPONENTS) - 1
    exponent = float(_EXPONENTS[best])
    ci = (float(_EXPONENTS[low]), float(_EXPONENTS[high])) if bounded else None
    return replace(_fit(costs, "power", lambda n: (n**exponent,)), exponent=exponent, exponent_ci=ci)


def slope(x: Array, y: Array, weights: Array) -> Array:
    """Return the weighted least squares slope of each row of ``y`` (rows, points) over ``x`` (points,)."""
    w2 = weights**2
    off = x - np.average(x, weights=w2)
    slopes: Array = y @ (w2 * off) / float(np.sum(w2 * off**2))
    return slopes


def slope_error(line: FittedLaw, costs: Costs) -> float:
    """Return the standard error of the slope of the straight line, from the residuals."""
    w2 = costs.weights(costs.y) ** 2
    off = costs.x - np.average(costs.x, weights=w2)
    return math.sqrt(line.rss / max(1, len(costs.x) - 2) / float(np.sum(w2 * off**2)))


def _fit(costs: Costs, model: LawModel, terms: _Terms) -> FittedLaw:
    weights = costs.weights(costs.y)
    design = weights[:, None] * _design(terms, costs.x)
    scales = np.linalg.norm(design, axis=0)
    coefficients = np.linalg.lstsq(design / scales, weights * costs.y, rcond=None)[0] / scales
    rss = float(np.sum(np.square(weights * costs.y - design @ coefficients)))
    return FittedLaw(model, terms, coefficients, rss)


def _design(terms: _Terms, n: Array) -> Array:
    return np.column_stack((np.ones(len(n)), *terms(n)))
