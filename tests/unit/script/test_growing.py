"""How a figure of a script grows between two sizes."""

from __future__ import annotations

import pytest

from kteardown.script.growing import SizeGrowth


@pytest.mark.parametrize(
    ("small", "large", "name"),
    [
        (100.0, 400.0, "linear"),
        (100.0, 1600.0, "quadratic"),
        (100.0, 6400.0, "faster than quadratic"),
        (100.0, 800.0, "faster than linear"),
        (100.0, 101.0, "nearly constant"),
        (400.0, 100.0, "falls"),
    ],
)
def test_a_growth_is_named_by_its_exponent(small: float, large: float, name: str) -> None:
    growth = SizeGrowth(1000, 4000, small, large)
    assert growth.name == name
    assert growth.for_one_more == pytest.approx((large - small) / 3000)


def test_a_constant_part_beside_linear_growth_is_not_called_linear() -> None:
    assert "constant part" in SizeGrowth(1000, 4000, 1100, 1400 + 700).name


@pytest.mark.parametrize(
    "growth", [SizeGrowth(0, 4, 1, 2), SizeGrowth(1, 4, 0, 2), SizeGrowth(1, 4, 2, -1)]
)
def test_without_positive_figures_there_is_only_a_cost(growth: SizeGrowth) -> None:
    assert growth.exponent is None and growth.name == ""
    assert growth.for_one_more == (growth.large - growth.small) / (growth.large_n - growth.small_n)
