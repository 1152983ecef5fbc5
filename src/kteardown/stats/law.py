"""How a cost grows with a parameter: which law, how much for one more, which exponent.

Candidates are cost = a + b * g(n) with g one of nothing, n, n log n, n squared and n to a fitted power,
each by weighted least squares. The error of a cost grows with the cost, so weights are 1 / cost squared,
with a floor at a tenth of the median cost, below which the constant parts rule. The law is the
simplest one within 2 of the best corrected Akaike criterion (C. Hurvich, C. Tsai, Biometrika 76,
1989; the 2 after K. Burnham, D. Anderson, "Model Selection and Multimodel Inference", 2002, section
2.6). The exponent's interval is the profile likelihood's (D. Bates, D. Watts, "Nonlinear Regression
Analysis", 1988, section 6.1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from kteardown.stats.results import LawModel

Array = NDArray[np.float64]

MIN_POINTS = 3
_MIN_POINTS_FOR_AICC = 5
_MIN_POINTS_FOR_EXPONENT = 6
_AKAIKE_TIE = 2.0
_PARSIMONY = 1e-3
"""A law that misses by less than a thousandth of the cost is not beaten by a richer one."""
_EXPONENTS = np.linspace(0.1, 4.0, 1561)
_SHAPES: dict[LawModel, Callable[[Array], Array]] = {
    "linear": lambda n: n,
    "nlogn": lambda n: n * np.log(np.maximum(n, 1.0)),
    "quadratic": np.square,
}


@dataclass(frozen=True)
class Fit:
    """The law of one metric of one kernel. Units are the metric's; None where it cannot be told."""

    model: LawModel
    per_unit: float
    per_unit_ci: tuple[float, float]
    intercept: float
    exponent: float | None
    exponent_ci: tuple[float, float] | None
    r2: float | None
    points: int


@dataclass(frozen=True)
class _Line:
    intercept: float
    slope: float
    slope_se: float
    rss: float


def fit(n: Sequence[float], costs: Sequence[Sequence[float]], confidence: float) -> Fit | None:
    """Fit the laws to ``costs``: a row per boot, a column per value of ``n`` (at or above zero).

    The fit is to the medians over boots. The interval of ``per_unit`` is the wider one of what the
    scatter around the line and what the spread of the boots' own slopes say. None with fewer than three
    different ``n``, or where every cost is zero.
    """
    x = np.asarray(n, dtype=np.float64)
    rows = np.asarray(costs, dtype=np.float64)
    y = np.median(rows, axis=0)
    if len(np.unique(x)) < MIN_POINTS or not np.any(y):
        return None
    sizes = np.abs(y)
    weights = 1 / np.maximum(sizes, max(float(np.median(sizes)), float(np.max(sizes)) / 10) / 10)
    line = _line(x, y, weights)
    half = max(_scatter(line, len(x), confidence), _between(x, rows, weights, confidence))
    per_unit_ci = (line.slope - half, line.slope + half)
    constant = float(np.sum(np.square(weights * (y - np.average(y, weights=weights**2)))))
    power = _power(x, y, weights, confidence) if len(x) >= _MIN_POINTS_FOR_EXPONENT else None
    model, rss = _choose(x, y, weights, constant=constant, power=power, per_unit_ci=per_unit_ci)
    growing = power if model != "constant" else None
    return Fit(
        model=model,
        per_unit=line.slope,
        per_unit_ci=per_unit_ci,
        intercept=line.intercept,
        exponent=growing.exponent if growing and growing.ci else None,
        exponent_ci=growing.ci if growing else None,
        r2=1 - rss / constant if constant > 0 and model != "constant" else None,
        points=len(x),
    )


@dataclass(frozen=True)
class _Power:
    exponent: float
    ci: tuple[float, float] | None
    rss: float


def _line(x: Array, y: Array, weights: Array) -> _Line:
    """The weighted straight line through (x, y); ``weights`` multiply the residuals."""
    w2 = weights**2
    centre = np.average(x, weights=w2)
    sxx = float(np.sum(w2 * np.square(x - centre)))
    slope = float(np.sum(w2 * (x - centre) * y)) / sxx
    intercept = float(np.average(y, weights=w2)) - slope * float(centre)
    rss = float(np.sum(np.square(weights * (y - intercept - slope * x))))
    return _Line(intercept, slope, math.sqrt(rss / max(1, len(x) - 2) / sxx), rss)


def _scatter(line: _Line, points: int, confidence: float) -> float:
    return float(special.stdtrit(points - 2, (1 + confidence) / 2)) * line.slope_se


def _between(x: Array, rows: Array, weights: Array, confidence: float) -> float:
    """Half the interval of the mean slope, with the boot as the unit of replication."""
    if len(rows) < 2:
        return 0.0
    slopes = [_line(x, row, weights).slope for row in rows]
    t = float(special.stdtrit(len(rows) - 1, (1 + confidence) / 2))
    return t * float(np.std(slopes, ddof=1)) / math.sqrt(len(rows))


def _power(x: Array, y: Array, weights: Array, confidence: float) -> _Power:
    """a + b * n**p: for each p the rest is a straight line, so p alone is searched."""
    w2 = weights**2
    grown = (x / np.max(x)) ** _EXPONENTS[:, None]
    off = grown - np.average(grown, axis=1, weights=w2)[:, None]
    level = y - np.average(y, weights=w2)
    slopes = (off @ (w2 * level)) / (np.square(off) @ w2)
    rss = np.square(level - slopes[:, None] * off) @ w2
    best = int(np.argmin(rss))
    df = len(x) - 3
    floor = max(float(rss[best]), len(x) * _PARSIMONY**2)
    t = float(special.stdtrit(df, (1 + confidence) / 2))
    inside = np.flatnonzero(rss <= floor * (1 + t * t / df))
    low, high = int(inside[0]), int(inside[-1])
    # At an end of the range the data does not bound the exponent.
    bounded = low > 0 and high < len(_EXPONENTS) - 1
    ci = (float(_EXPONENTS[low]), float(_EXPONENTS[high])) if bounded else None
    return _Power(float(_EXPONENTS[best]), ci, float(rss[best]))


def _choose(
    x: Array,
    y: Array,
    weights: Array,
    *,
    constant: float,
    power: _Power | None,
    per_unit_ci: tuple[float, float],
) -> tuple[LawModel, float]:
    """The law and its weighted residual sum of squares, simplest first."""
    if len(x) < _MIN_POINTS_FOR_AICC:
        # Too few points to tell shapes apart: does it grow at all?
        grows = not per_unit_ci[0] <= 0 <= per_unit_ci[1]
        return ("linear", _line(x, y, weights).rss) if grows else ("constant", constant)
    fits: dict[LawModel, tuple[float, int]] = {"constant": (constant, 2)}
    for name, shape in _SHAPES.items():
        fits[name] = (_line(shape(x), y, weights).rss, 3)
    if power is not None:
        fits["power"] = (power.rss, 4)
    scores = {name: _aicc(rss, len(x), k) for name, (rss, k) in fits.items()}
    least = min(scores.values())
    chosen: LawModel = next(name for name, score in scores.items() if score <= least + _AKAIKE_TIE)
    return chosen, fits[chosen][0]


def _aicc(rss: float, points: int, k: int) -> float:
    """The corrected Akaike criterion; ``k`` counts the error's variance too."""
    floored = max(rss, points * _PARSIMONY**2)
    return points * math.log(floored / points) + 2 * k + 2 * k * (k + 1) / (points - k - 1)
