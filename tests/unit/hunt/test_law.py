"""What a find costs beyond the sizes that were measured."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kteardown.hunt.curve import Curve, spaced
from kteardown.hunt.law import CostLaw, law

SIZES = spaced(5000, 6)


def of(
    cost: list[float], sizes: tuple[int, ...] = SIZES, floor: float = 2e4, seeds: int = 1
) -> CostLaw | None:
    return law(Curve(sizes, np.array([cost] * seeds), floor))


def test_a_square_is_predicted_far_beyond_the_sizes() -> None:
    found = of([5.0 * n * n for n in SIZES])
    assert found is not None
    low, middle, high = found.predict(500_000)
    assert middle == pytest.approx(5.0 * 500_000**2, rel=0.02)
    assert low < middle < high < 1.3 * low


def test_a_cost_that_becomes_a_square_is_a_parabola_and_not_a_power() -> None:
    found = of([5e3 * n + 2.0 * n * n for n in SIZES])
    assert found is not None
    low, middle, high = found.predict(100_000)
    assert middle == pytest.approx(5e8 + 2e10, rel=0.01)
    assert low < 0.7 * middle
    assert middle <= high


def test_at_the_largest_size_it_is_what_was_measured() -> None:
    found = of([5.0 * n * n for n in SIZES])
    assert found is not None
    low, middle, high = found.predict(SIZES[-1])
    assert middle == 5.0 * SIZES[-1] ** 2
    assert (low, high) == (middle - 2e4, middle + 2e4)


def test_costs_for_one_object() -> None:
    found = of([1e6 + 5.0 * n * n for n in SIZES])
    assert found is not None
    assert found.exponent.value == pytest.approx(2, abs=0.01)
    small, large = SIZES[0], SIZES[-1]
    assert found.per_object == pytest.approx((1e6 / small + 5 * small, 1e6 / large + 5 * large))
    assert found.one_more == pytest.approx((15 * small, 7.5 * large))


def test_seeds_that_differ_widen_the_prediction() -> None:
    rng = np.random.default_rng(1)
    rows = 5.0 * np.square(SIZES) * np.exp(rng.normal(0, 0.03, (3, len(SIZES))))
    found, exact = law(Curve(SIZES, rows, 2e4)), of([5.0 * n * n for n in SIZES], seeds=3)
    assert found is not None
    assert exact is not None
    (low, _, high), (lower, _, higher) = found.predict(50_000), exact.predict(50_000)
    assert high / low > 1.1 * higher / lower


def test_growth_that_began_at_the_last_doubling_has_no_high_end() -> None:
    found = of([1e6, 1e6, 1e6, 5e6], SIZES[-4:])
    assert found is not None
    assert found.predict(50_000)[2] == math.inf


def test_too_few_sizes_or_no_growth_have_no_law() -> None:
    assert of([5.0 * n * n for n in SIZES[-3:]], SIZES[-3:]) is None
    assert of([1e7] * 6) is None
    assert law(Curve(SIZES, np.full((3, 6), math.nan), 2e4)) is None


def test_fewer_objects_than_measured_are_refused() -> None:
    found = of([5.0 * n * n for n in SIZES])
    assert found is not None
    with pytest.raises(ValueError, match="fewer than the 4,992"):
        found.predict(1000)
