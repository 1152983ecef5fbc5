"""Outlier boots: reported if they matter for a verdict, in any unit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.analysis import outliers
from kteardown.model.result import Outlier

QUIET = {n: 1000.0 + n for n in range(10)}
ABOUT = {
    "kernel": "base",
    "workload": "zombies",
    "metric": "freeze_ns",
    "statistic": "median",
    "point": {},
}
groups = st.lists(st.floats(1, 1e6), min_size=1, max_size=12).map(
    lambda values: dict(enumerate(values))
)


def find_outliers(groups: list[dict[int, float]], within: float) -> list[tuple[Outlier, ...]]:
    return [outliers.find_outliers(ABOUT, group, within) for group in groups]


def test_a_boot_with_twice_the_time_is_reported_with_its_distance() -> None:
    ((found,),) = find_outliers([{**QUIET, 3: 2000.0}], 0.02)
    assert (found.block, found.value, found.median) == (3, 2000.0, 1005.5)
    assert found.ranges is not None
    assert found.ranges > 3


def test_a_fast_boot_has_the_same_distance_as_a_slow_one() -> None:
    slow, fast = {**QUIET, 3: 2000.0}, {n: 1e6 / value for n, value in {**QUIET, 3: 2000.0}.items()}
    ((one,), (other,)) = find_outliers([slow, fast], 0.02)
    assert one.block == other.block
    assert one.ranges == pytest.approx(other.ranges)


@given(groups, st.floats(1e-3, 1e3))
def test_outliers_do_not_depend_on_the_unit(group: dict[int, float], scale: float) -> None:
    one, other = find_outliers(
        [group, {block: value * scale for block, value in group.items()}], 0.02
    )
    # A boot exactly at the fence can be on either side because of rounding.
    if all(boot.ranges is None or boot.ranges > 3 + 1e-6 for boot in (*one, *other)):
        assert [boot.block for boot in one] == [boot.block for boot in other]


def test_differences_within_the_margin_are_not_reported() -> None:
    near = {n: 1000.0 + n / 1000 for n in range(10)}
    assert find_outliers([{**near, 3: 1015.0}], 0.02) == [()]
    assert len(find_outliers([{**near, 3: 1025.0}], 0.02)[0]) == 1


def test_the_distance_is_unknown_if_all_other_boots_are_equal() -> None:
    ((found,),) = find_outliers([{**dict.fromkeys(range(9), 1000.0), 9: 1300.0}], 0.02)
    assert (found.block, found.ranges) == (9, None)


@pytest.mark.parametrize(
    "group", [{}, {0: 1.0}, {0: 1.0, 1: 1.0, 2: 1.0, 3: 9.0}, {**QUIET, 3: 0.0}]
)
def test_four_boots_or_zeros_have_no_outliers(group: dict[int, float]) -> None:
    assert find_outliers([group], 0.02) == [()]


@pytest.mark.parametrize(("boots", "most"), [(5, 0.15), (10, 0.06), (20, 0.03)])
def test_normal_noise_is_rarely_reported(boots: int, most: float) -> None:
    """Of 2,000 groups: 13%, 4.5% and 2%, as the docstring says."""
    rng = np.random.default_rng(1)
    found = find_outliers(
        [dict(enumerate(rng.lognormal(5, 0.1, boots))) for _ in range(2000)], 0.02
    )
    assert 0 < sum(map(bool, found)) / 2000 < most
