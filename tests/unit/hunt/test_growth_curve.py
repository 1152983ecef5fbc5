"""Curves: what is refused, missing costs, and sizes a doubling apart."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown_hunt.growth import Curve, spaced

NAN = math.nan


def curve(*rows: list[float], sizes: tuple[int, ...] = (100, 200, 400, 800)) -> Curve:
    return Curve(sizes, np.array(rows, dtype=np.float64), 0.0)


@pytest.mark.parametrize(
    ("sizes", "rows", "floor", "message"),
    [
        ((1, 2, 3), np.zeros((2, 2)), 0.0, "shape"),
        ((1, 2), np.zeros(2), 0.0, "shape"),
        ((2, 1), np.zeros((1, 2)), 0.0, "ascend"),
        ((1, 1), np.zeros((1, 2)), 0.0, "ascend"),
        ((0, 1), np.zeros((1, 2)), 0.0, "positive"),
        ((1, 2), np.zeros((1, 2)), -1.0, "floor"),
        ((1, 2), np.zeros((1, 2)), NAN, "floor"),
    ],
)
def test_what_is_no_curve_is_refused(
    sizes: tuple[int, ...],
    rows: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    floor: float,
    message: str,
) -> None:
    with pytest.raises(ValueError, match=message):
        Curve(sizes, rows, floor)


def test_a_size_that_hangs_is_left_out() -> None:
    whole = curve([1, 2, 3, NAN], [1, 2, 3, NAN], [1, 2, 3, 4]).complete()
    assert whole.sizes == (100, 200, 400)
    assert whole.rows.shape == (3, 3)


def test_one_missing_cost_of_three_seeds_loses_its_seed_and_not_its_size() -> None:
    whole = curve([1, 2, 3, NAN], [1, 2, 3, 4], [5, 6, 7, 8]).complete()
    assert whole.sizes == (100, 200, 400, 800)
    assert whole.rows.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]


def test_of_two_seeds_both_are_kept_and_the_size_is_lost() -> None:
    whole = curve([1, NAN, 3, 4], [5, 6, 7, 8]).complete()
    assert whole.sizes == (100, 400, 800)
    assert whole.rows.shape == (2, 3)


def test_a_boot_without_any_cost_is_left_out() -> None:
    whole = curve([NAN] * 4, [1, 2, 3, 4]).complete()
    assert whole.rows.tolist() == [[1, 2, 3, 4]]
    assert curve([NAN] * 4).complete().sizes == ()
    assert Curve((1, 2), np.empty((0, 2)), 0.0).complete().sizes == ()


def test_sizes_too_close_are_skipped_from_the_largest_down() -> None:
    sizes = (100, 150, 210, 400, 500, 1000)
    assert curve([0.0] * 6, sizes=sizes).ladder().sizes == (100, 210, 500, 1000)
    assert curve([0.0] * 4, sizes=(10, 40, 160, 640)).ladder().sizes == (10, 40, 160, 640)


@given(st.integers(500, 10**6), st.integers(3, 6), st.sampled_from([2, 3, 4]))
def test_sizes_are_exact_multiples_off_powers_of_two(largest: int, count: int, factor: int) -> None:
    if largest < 5 * factor ** (count - 1):
        with pytest.raises(ValueError, match="too small"):
            spaced(largest, count, factor)
        return
    sizes = spaced(largest, count, factor)
    assert len(sizes) == count
    assert all(b == factor * a for a, b in pairwise(sizes))
    assert 0.6 * largest <= sizes[-1] <= largest
    if factor != 3:
        assert all(0.1 < math.log2(size) % 1 < 0.9 for size in sizes)
