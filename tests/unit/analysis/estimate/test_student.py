"""One estimate of a metric over all its points: exact data, zeros, missing points, weights,
symmetry."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kteardown.analysis.estimate.bootstrap import Boots, Resampler
from kteardown.analysis.estimate.student import OverPoints, PointBoots, estimate_over_points
from kteardown.analysis.estimate.verdict import Rules
from kteardown.model.clock import Clock

RULES = Rules(0.95, 0.02)
VALUES = st.lists(st.lists(st.floats(1, 1e9), min_size=4, max_size=4), min_size=2, max_size=4)


def over(*points: PointBoots, clock: Clock = "instructions", rules: Rules = RULES) -> OverPoints:
    return estimate_over_points(points, clock, rules, Resampler(1))


def point(base: list[float], changed: list[float], weight: float = 1.0) -> PointBoots:
    """Return a point with one sample in each boot."""
    one, other = (Boots({n: [v] for n, v in enumerate(side)}) for side in (base, changed))
    return PointBoots(one, other, weight)


def test_the_interval_is_students_t_of_the_boots_own_means() -> None:
    found = over(point([100, 110, 90], [50, 60, 40]), point([10, 10, 10], [4, 4.1, 4.2]))
    figures = [
        (math.log(50 / 100) + math.log(4 / 10)) / 2,
        (math.log(60 / 110) + math.log(4.1 / 10)) / 2,
        (math.log(40 / 90) + math.log(4.2 / 10)) / 2,
    ]
    test = stats.ttest_1samp(figures, 0)
    ends = test.confidence_interval(0.95)
    assert found.estimate.ci == pytest.approx((math.exp(ends.low), math.exp(ends.high)))
    assert found.estimate.p == pytest.approx(test.pvalue)
    assert found.estimate.ratio == pytest.approx(math.exp(np.mean(figures)))
    assert (len(found.used), found.boots, found.estimate.higher) == (2, 3, False)
    assert found.spread == pytest.approx(np.std(figures, ddof=1))


def test_three_seeds_are_enough_for_a_large_effect() -> None:
    found = over(*(point([100, 103, 98], [10 * n, 12 * n, 11 * n]) for n in (1, 2, 3)))
    assert found.estimate.p is not None
    assert found.estimate.p < 0.05 / 6


def test_exact_points_give_an_exact_metric() -> None:
    whole = over(point([8, 8, 8], [4, 4, 4]), point([8, 8, 8], [16, 16, 16], weight=0.5))
    found = whole.estimate
    assert (found.mde, whole.spread, whole.point_spread) == (0.0, 0.0, 0.0)
    assert found.ratio == pytest.approx(2 ** (-1 + 2 / 3))
    assert (found.exact, found.p, found.ci) == (True, 0.0, (found.ratio, found.ratio))
    same = over(point([8, 9, 7], [8, 9, 7]), point([0, 0, 0], [0, 0, 0])).estimate
    assert (same.exact, same.identical, same.p, same.ratio) == (True, True, 1.0, 1.0)


def test_on_the_wall_clock_nothing_is_exact_and_equal_boots_use_their_repetitions() -> None:
    base, changed = ({n: [k * 10.0 for k in (9, 10, 11)] for n in range(4)} for _ in range(2))
    found = over(*[PointBoots(Boots(base), Boots(changed))] * 2, clock="wall").estimate
    assert not found.exact
    assert found.ci is not None
    assert found.ci[0] < 1 < found.ci[1]


def test_a_weight_of_zero_leaves_a_point_out_of_the_mean() -> None:
    first, second = point([100, 101, 99], [50, 51, 52]), point([10, 10, 11], [30, 31, 32], weight=0)
    assert over(first, second).estimate.ratio == pytest.approx(over(first).estimate.ratio)


def test_a_boot_that_lacks_a_point_does_not_count() -> None:
    """At the second point changes are much larger: its absence would look like a smaller change."""
    whole = point([100, 100, 101, 100], [50, 51, 52, 51])
    part = PointBoots(Boots({n: [100.0] for n in range(4)}), Boots({0: [5.0], 1: [5.1], 3: [5.2]}))
    found = over(whole, part)
    alone = over(point([100, 100, 100], [50, 51, 51]), point([100, 100, 100], [5, 5.1, 5.2]))
    assert (len(found.used), found.boots) == (2, 3)
    assert found.estimate.ratio == pytest.approx(alone.estimate.ratio)


def test_a_point_that_most_boots_lack_is_left_out_instead_of_the_boots() -> None:
    part = PointBoots(Boots({0: [100.0]}), Boots({0: [5.0]}))
    found = over(point([100, 100, 101], [50, 51, 52]), part)
    assert (found.used, found.boots) == ((0,), 3)


def test_without_common_boots_there_is_no_estimate() -> None:
    found = over(PointBoots(Boots({0: [1.0]}), Boots({1: [1.0]})))
    assert (len(found.used), found.estimate.p) == (0, None)
    one = over(PointBoots(Boots({0: [2.0]}), Boots({0: [1.0]})))
    assert (one.estimate.ratio, one.estimate.p, one.estimate.reason) == (
        0.5,
        None,
        "one seed gives no interval",
    )


def test_zeros_have_a_direction_and_no_ratio() -> None:
    found = over(point([5, 6, 5], [0, 0.1, 0]), point([90, 91, 92], [1, 0, 2])).estimate
    assert (found.ratio, found.ci, found.higher) == (None, None, False)
    assert found.p is not None
    assert found.p < 0.01
    assert "not all values are above zero" in found.reason


def test_a_few_equal_counts_are_evidence_by_their_signs_only() -> None:
    counts = over(*[point([0, 0, 0, 0], [1, 1, 1, 1])] * 2, clock="wall").estimate
    assert (counts.p, counts.higher) == (2.0**-3, True)
    assert over(*[point([0, 0, 0], [1, 1, 1])] * 2).estimate.p == 0.0


@given(VALUES, VALUES)
def test_exchanging_both_sides_inverts_the_estimate(
    base: list[list[float]], changed: list[list[float]]
) -> None:
    sides = list(zip(base, changed, strict=False))
    one = over(*(point(a, b) for a, b in sides)).estimate
    other = over(*(point(b, a) for a, b in sides)).estimate
    assert one.p == pytest.approx(other.p)
    assert one.ratio == pytest.approx(1 / (other.ratio or 1))
    if one.ci is not None and other.ci is not None and max(*one.ci, *other.ci) < 1e100:
        assert one.ci == pytest.approx((1 / other.ci[1], 1 / other.ci[0]), rel=1e-6)


@given(VALUES, st.floats(0.6, 0.99))
def test_p_is_below_alpha_where_the_interval_excludes_no_change(
    values: list[list[float]], level: float
) -> None:
    found = over(*(point([1e4] * 4, row) for row in values), rules=Rules(level, 0.02)).estimate
    assert found.ci is not None
    assert found.p is not None
    if abs(found.p - (1 - level)) > 1e-9:
        assert (found.p < 1 - level) == (not found.ci[0] <= 1 <= found.ci[1])


def test_the_margin_is_tested_from_both_sides() -> None:
    near = over(*[point([1000, 1001, 999], [1001, 1001, 1000])] * 2).estimate
    far = over(*[point([1000, 1001, 999], [1101, 1101, 1100])] * 2).estimate
    assert near.p_same is not None
    assert far.p_same is not None
    assert near.p_same < 0.025 < far.p_same
