"""Costs with a known law, measured with noise: the controls of the hunt.

``tests/unit/hunt/test_controls.py`` asserts what ``bench/validate_hunt.py`` prints from more runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kteardown_hunt.growth import Array, Curve, judge, may_be_steep, screen, spaced
from kteardown_hunt.predict import predict

Cost = Callable[[Array], Array]
"""The cost of each number of objects, in instructions."""

TICK = 20_000.0
"""The floor: a repetition has one timer tick more or less."""
SIZES = spaced(5000, 6)
UNEVEN = (150, 310, 590, 1230, 2410, 4900)
"""Sizes that are doublings only about: between two of them, a table may double twice or not at
all."""
FEW = spaced(72, 4)
"""Of objects that are expensive: each costs as much as 64 of the others."""
SCREENED = spaced(5000, 4, 4)

LINEAR: dict[str, Cost] = {
    "constant": lambda n: np.full_like(n, 1e7),
    "linear": lambda n: 5e3 * n,
    "linear, setup of 100 ms": lambda n: 1e8 + 5e3 * n,
    "N log N": lambda n: 500 * n * np.log2(n),
    "linear, a table that doubles": lambda n: 3e3 * n + 2e3 * 2 ** np.ceil(np.log2(n)),
    "linear, one step of 5 ms at 1,000": lambda n: 5e3 * n + 5e6 * (n > 1000),
}
"""What must not be found."""

FINDS: dict[str, Cost] = {
    "N^1.5": lambda n: 100 * n**1.5,
    "N^2": lambda n: 5 * n**2,
    "linear and N^2": lambda n: 5e3 * n + 2 * n**2,
    "setup of 100 ms and N^2": lambda n: 1e8 + 5 * n**2,
    "N^2 of what is beyond 700": lambda n: 5e3 * n + 20 * np.maximum(n - 700, 0) ** 2,
    "N^2 of all beyond 1,000": lambda n: 5e3 * n + 5 * np.where(n > 1000, n, 0) ** 2,
}
"""What must be found: also where the cost of an object is the same up to some number of them."""


def measured(
    cost: Cost, sizes: tuple[int, ...], seeds: int, noise: float, rng: np.random.Generator
) -> Curve:
    """Return a curve: boots differ by ``noise``, trials by as much again, and a repetition by one
    tick."""
    n = np.array(sizes, dtype=np.float64)
    logs = rng.normal(0, noise, (seeds, 1)) + rng.normal(0, noise, (seeds, len(n)))
    return Curve(sizes, cost(n) * np.exp(logs) + rng.uniform(0, TICK, logs.shape), TICK)


def found(
    cost: Cost, seeds: int, noise: float, runs: int, sizes: tuple[int, ...] = SIZES, seed: int = 1
) -> float:
    """Return the share of runs in which the verdict is superlinear."""
    rng = np.random.default_rng(seed)
    verdicts = [judge(measured(cost, sizes, seeds, noise, rng)).verdict for _ in range(runs)]
    return verdicts.count("superlinear") / runs


def found_in_few(cost: Cost, noise: float, runs: int) -> float:
    """Return the share of runs with three seeds of few objects in which the verdict is
    superlinear."""
    return found(lambda n: cost(64 * n), 3, noise, runs, FEW)


def screened(cost: Cost, noise: float, runs: int, seed: int = 1) -> float:
    """Return the share of runs in which one seed of four sizes, a factor of four apart, asks for
    more."""
    rng = np.random.default_rng(seed)
    return sum(screen(measured(cost, SCREENED, 1, noise, rng)) for _ in range(runs)) / runs


def kept(cost: Cost, noise: float, runs: int, seed: int = 1) -> float:
    """Return the share of runs in which the first seed of a confirmation asks for the others."""
    rng = np.random.default_rng(seed)
    return sum(may_be_steep(measured(cost, SIZES, 1, noise, rng)) for _ in range(runs)) / runs


@dataclass(frozen=True)
class Predicted:
    """The share of runs in which the true cost was between the ends, and the medians over runs.

    ``width`` is the high end divided by the low one, ``middle`` the middle divided by the true
    cost.
    """

    inside: float
    width: float
    middle: float


def predicted(cost: Cost, noise: float, times: float, runs: int, seed: int = 1) -> Predicted:
    """Return how well three seeds predict the cost of ``times`` the largest size."""
    rng = np.random.default_rng(seed)
    at = times * SIZES[-1]
    true = float(cost(np.array([at]))[0])
    inside, widths, middles = 0, [], []
    for _ in range(runs):
        fitted = predict(measured(cost, SIZES, 3, noise, rng), at)
        assert fitted is not None
        low, middle, high = fitted
        inside += low <= true <= high
        widths.append(high / low)
        middles.append(middle / true)
    return Predicted(inside / runs, float(np.median(widths)), float(np.median(middles)))
