"""What many objects cost, from what few were measured to cost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.catalogue.costs import MeasuredCost
from kteardown.catalogue.laws import measured_costs

SIZES = (36, 72, 144, 288, 576, 1152)


def cost(
    verdict: str, *, linear: float, square: float = 0.0, constant: float = 0.0
) -> MeasuredCost:
    """Return what was measured of a release that takes exactly so many instructions."""
    return MeasuredCost(
        kind="flocks",
        way="exit",
        cost="work",
        release="6.12",
        series="",
        verdict=verdict,
        sizes=SIZES,
        costs=[constant + linear * size + square * size * size for size in SIZES],
        exponent_ci=(1.8, 1.95) if verdict == "superlinear" else (0.98, 1.02),
        is_whole=True,
        sleeps_in="",
        result="hunt",
    )


def test_a_linear_cost_goes_on_as_a_line() -> None:
    low, value, high = cost("linear", linear=1000, constant=50_000).at(100_000)
    assert value == pytest.approx(50_000 + 1000 * 100_000)
    assert low < value < high


def test_a_quadratic_cost_goes_on_as_a_parabola() -> None:
    measured = cost("superlinear", linear=1000, square=10, constant=50_000)
    low, value, high = measured.at(10_000)
    true = 50_000 + 1000 * 10_000 + 10 * 10_000**2
    assert value == pytest.approx(true)
    assert low <= true <= high


@pytest.mark.parametrize("size", SIZES)
def test_what_was_measured_is_itself(size: int) -> None:
    measured = cost("superlinear", linear=100, square=3)
    assert measured.at(size)[1] == pytest.approx(measured.costs[SIZES.index(size)])


def test_between_two_numbers_the_cost_lies_between_theirs() -> None:
    measured = cost("superlinear", linear=100, square=3)
    assert measured.costs[2] < measured.at(200)[1] < measured.costs[3]


def test_the_constant_of_no_objects_is_not_negative() -> None:
    assert cost("superlinear", linear=0, square=10).at(0)[1] >= 0


def outside(left_out: int) -> tuple[int, int]:
    """Return how many costs were predicted without their last sizes, and how many are outside."""
    predicted = [
        (replace(measured, sizes=sizes, costs=measured.costs[:-left_out]), measured)
        for measured in measured_costs()
        if len(sizes := measured.sizes[:-left_out]) >= 3
    ]
    ranges = [(shorter.at(whole.sizes[-1]), whole.costs[-1]) for shorter, whole in predicted]
    return len(ranges), sum(not low <= cost <= high for (low, _, high), cost in ranges)


@pytest.mark.parametrize("left_out", [1, 2])
def test_nineteen_of_twenty_costs_are_inside_if_they_are_left_out(left_out: int) -> None:
    predicted, misses = outside(left_out)
    assert predicted > 50
    assert misses <= 0.05 * predicted


@given(
    linear=st.floats(1, 1e6),
    square=st.floats(0, 1e3),
    constant=st.floats(0, 1e6),
    number=st.floats(1, 1e7),
    more=st.floats(1, 100),
)
def test_more_objects_never_cost_less(
    linear: float, square: float, constant: float, number: float, more: float
) -> None:
    measured = cost("superlinear", linear=linear, square=square, constant=constant)
    low, value, high = measured.at(number)
    assert 0 <= low <= value <= high
    assert measured.at(number * more)[1] >= value * (1 - 1e-9)
