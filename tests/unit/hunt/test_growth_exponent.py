"""Exponents from increments: exact for a power law, with bounds from the seeds and the floor."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown_hunt.growth import Curve, exponent, ratio


def curve(
    rows: list[list[float]], floor: float = 0.0, sizes: tuple[int, ...] = (100, 200, 400)
) -> Curve:
    return Curve(sizes, np.array(rows, dtype=np.float64), floor)


@given(
    p=st.floats(0.1, 4),
    setup=st.floats(0, 1e6),
    sizes=st.lists(st.integers(10, 5000), min_size=3, max_size=3, unique=True).map(sorted),
)
def test_of_a_power_law_it_is_the_power_at_any_sizes(
    p: float, setup: float, sizes: list[int]
) -> None:
    rows = [[setup + 1e6 * n**p for n in sizes]]
    found = exponent(curve(rows, sizes=tuple(sizes)), 0, 1, 0.95)
    assert found.value == pytest.approx(p, abs=0.01)
    assert found.low - 1e-6 <= p <= found.high + 1e-6
    assert found.high - found.low <= 0.05


@pytest.mark.parametrize(("p", "times"), [(0, 1), (1, 2), (2, 4), (3, 8)])
def test_for_doublings_the_increments_grow_by_two_to_the_power(p: float, times: float) -> None:
    assert ratio((100, 200, 200, 400), np.array([p]))[0] == pytest.approx(times)


def test_zero_and_the_powers_beside_it_agree() -> None:
    found = ratio((100, 250, 400, 900), np.array([-1e-6, 0, 1e-6]))
    assert found == pytest.approx([math.log(9 / 4) / math.log(2.5)] * 3, rel=1e-5)


def test_one_seed_is_as_certain_as_the_floor_allows() -> None:
    rows = [[1e6, 2e6, 4e6]]
    tight, loose = (exponent(curve(rows, floor), 0, 1, 0.95) for floor in (1e3, 1e5))
    assert tight.low == pytest.approx(0.99, abs=0.02)
    assert tight.high == pytest.approx(1.01, abs=0.02)
    # Wrong by the floor each, the increments are 0.9 and 2.1 or 1.1 and 1.9 million.
    assert loose.low == pytest.approx(math.log2(1.9 / 1.1), abs=0.02)
    assert loose.high == pytest.approx(math.log2(2.1 / 0.9), abs=0.02)


def test_seeds_that_agree_to_the_last_digit_are_no_more_certain_than_one() -> None:
    row = [1e6, 2e6, 4e6]
    assert exponent(curve([row] * 3, 1e5), 0, 1, 0.95) == exponent(curve([row], 1e5), 0, 1, 0.95)


def test_seeds_that_differ_widen_the_interval() -> None:
    row = np.array([1e6, 2e6, 4e6])
    rows = [row.tolist(), (row * [1, 1.02, 1]).tolist(), (row * [1, 0.98, 1]).tolist()]
    found = exponent(curve(rows, 1e3), 0, 1, 0.95)
    assert found.low < 0.95
    assert found.high > 1.05


def test_a_factor_of_a_whole_boot_is_no_difference() -> None:
    row = np.array([1e6, 2e6, 4e6])
    found = exponent(curve([(row * f).tolist() for f in (0.9, 1, 1.2)]), 0, 1, 0.95)
    assert found.high - found.low < 0.05


def test_growth_that_begins_at_the_second_increment_has_no_upper_bound() -> None:
    found = exponent(curve([[1e6, 1e6, 2e6]], 1e3), 0, 1, 0.95)
    assert found.value == found.high == math.inf
    assert found.low == 5.0


def test_without_growth_there_is_no_exponent() -> None:
    found = exponent(curve([[3.0, 2.0, 1.0]], 10.0), 0, 1, 0.95)
    assert math.isnan(found.value)
    assert (found.low, found.high) == (-math.inf, math.inf)
