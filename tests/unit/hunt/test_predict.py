"""What a find costs beyond the sizes that were measured."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kteardown_hunt.growth import Curve, spaced
from kteardown_hunt.predict import predict

SIZES = spaced(5000, 6)
SQUARE = [5.0 * n * n for n in SIZES]


def predicted(
    cost: list[float], at: float, sizes: tuple[int, ...] = SIZES, seeds: int = 1
) -> tuple[float, float, float]:
    found = predict(Curve(sizes, np.array([cost] * seeds), 2e4), at)
    assert found is not None
    return found


def test_a_square_is_predicted_far_beyond_the_sizes() -> None:
    low, middle, high = predicted(SQUARE, 500_000)
    assert middle == pytest.approx(5.0 * 500_000**2, rel=0.02)
    assert low < middle < high < 1.3 * low


def test_a_cost_that_becomes_a_square_is_a_parabola_and_not_a_power() -> None:
    low, middle, high = predicted([5e3 * n + 2.0 * n * n for n in SIZES], 100_000)
    assert middle == pytest.approx(5e8 + 2e10, rel=0.01)
    assert low < 0.7 * middle
    assert middle <= high


def test_at_the_largest_size_it_is_what_was_measured() -> None:
    low, middle, high = predicted(SQUARE, SIZES[-1])
    assert middle == 5.0 * SIZES[-1] ** 2
    assert (low, high) == (middle - 2e4, middle + 2e4)


def test_seeds_that_differ_widen_the_prediction() -> None:
    rng = np.random.default_rng(1)
    rows = 5.0 * np.square(SIZES) * np.exp(rng.normal(0, 0.03, (3, len(SIZES))))
    found = predict(Curve(SIZES, rows, 2e4), 50_000)
    assert found is not None
    (low, _, high), (lower, _, higher) = found, predicted(SQUARE, 50_000, seeds=3)
    assert high / low > 1.1 * higher / lower


def test_growth_that_began_at_the_last_doubling_has_no_high_end() -> None:
    assert predicted([1e6, 1e6, 1e6, 5e6], 50_000, SIZES[-4:])[2] == math.inf


def test_too_few_sizes_or_no_growth_have_no_law() -> None:
    assert predict(Curve(SIZES[-3:], np.array([SQUARE[-3:]]), 2e4), 50_000) is None
    assert predict(Curve(SIZES, np.array([[1e7] * 6]), 2e4), 50_000) is None
    assert predict(Curve(SIZES, np.full((3, 6), math.nan), 2e4), 50_000) is None


def test_fewer_objects_than_measured_are_refused() -> None:
    with pytest.raises(ValueError, match="fewer than the 4,992"):
        predicted(SQUARE, 1000)
