"""The fits of growth laws applied to known laws: how often their intervals have the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kteardown.analysis.growth.fit import fit, predict


@dataclass(frozen=True)
class LawCovered:
    """Shares of fits whose interval contains the truth; ``exponents`` is of fits that have one."""

    per_unit: float
    exponents: float


SIZES = tuple(float(n) for n in range(0, 30001, 3000))


def straight(n: float) -> float:
    """Return the cost of the linear law that is used in simulations."""
    return 20_000 + 205 * n


def costs(
    cost: Callable[[float], float],
    boots: int,
    boot: float,
    trial: float,
    rng: np.random.Generator,
    sizes: Sequence[float] = SIZES,
) -> list[list[float]]:
    """Return a row of costs for each boot: the true costs with noise for each boot and each
    trial."""
    true = np.array([cost(n) for n in sizes])
    noise = rng.normal(0, boot, (boots, 1)) + rng.normal(0, trial, (boots, len(sizes)))
    rows: list[list[float]] = (true * np.exp(noise)).tolist()
    return rows


def law_coverage(boots: int, boot: float, trial: float, runs: int, *, seed: int = 1) -> LawCovered:
    """Return the coverage of the slope and the exponent of a linear law."""
    rng = np.random.default_rng([seed, boots])
    slopes, exponents = 0, []
    for _ in range(runs):
        found = fit(SIZES, costs(straight, boots, boot, trial, rng), 0.95)
        assert found is not None
        slopes += found.per_unit_ci[0] <= 205 <= found.per_unit_ci[1]
        if found.exponent_ci:
            exponents.append(found.exponent_ci[0] <= 1 <= found.exponent_ci[1])
    return LawCovered(slopes / runs, float(np.mean(exponents)))


@dataclass(frozen=True)
class Predicted:
    """Properties of predictions.

    ``given`` is the share that is not refused. Of those, ``inside`` is the share whose interval
    contains the true cost, and ``again`` the share whose interval contains the median of as many
    new boots. ``width`` is the median of high / low - 1.
    """

    given: float
    inside: float
    again: float
    width: float


def predictions(
    cost: Callable[[float], float],
    times: float,
    boots: int,
    boot: float,
    trial: float,
    runs: int,
    *,
    seed: int = 1,
) -> Predicted:
    """Extrapolate a law over ``SIZES`` to ``times`` the largest size."""
    rng = np.random.default_rng([seed, boots])
    at = times * SIZES[-1]
    inside, again, widths = [], [], []
    for _ in range(runs):
        found = fit(SIZES, costs(cost, boots, boot, trial, rng), 0.95)
        assert found is not None
        prediction = predict(found, at, 0.95)
        if prediction.low is not None and prediction.high is not None:
            inside.append(prediction.low <= cost(at) <= prediction.high)
            new = float(np.median(costs(cost, boots, boot, trial, rng, [at])))
            again.append(prediction.low <= new <= prediction.high)
            widths.append(prediction.high / prediction.low - 1)
    if not inside:
        return Predicted(0.0, float("nan"), float("nan"), float("nan"))
    return Predicted(
        len(inside) / runs, float(np.mean(inside)), float(np.mean(again)), float(np.median(widths))
    )
