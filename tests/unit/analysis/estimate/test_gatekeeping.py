"""The correction over headline metrics and their points: its order, its gate and its error rate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.analysis.estimate.gatekeeping import METRIC_PART, PASSED_ON, Family, adjust, parts
from kteardown.analysis.estimate.verdict import holm

PS = st.one_of(st.none(), st.floats(0, 1), st.floats(0, 0.01))
FAMILIES = st.lists(st.builds(Family, PS, st.lists(PS, max_size=5).map(tuple)), max_size=6)


def rejected(families: list[Family], alpha: float) -> set[tuple[int, int | None]]:
    """Return what is rejected at ``alpha``."""
    found: set[tuple[int, int | None]] = set()
    for number, family in enumerate(adjust(families)):
        if family.metric is not None and family.metric < alpha:
            found.add((number, None))
        found |= {(number, at) for at, p in enumerate(family.points) if p is not None and p < alpha}
    return found


def test_one_metric_with_one_point_needs_no_correction() -> None:
    assert adjust([Family(0.04)]) == [Family(0.04)]
    assert adjust([]) == []


def test_the_points_of_a_metric_that_is_not_rejected_have_a_tenth_of_its_part() -> None:
    (found,) = adjust([Family(0.9, (0.001, 0.5))])
    assert found.points[0] == pytest.approx(0.001 * 2 / (1 - METRIC_PART))
    assert found.points[1] == 1


def test_a_rejected_metric_opens_the_gate_to_its_points() -> None:
    (found,) = adjust([Family(0.001, (0.02, 0.04))])
    assert found.metric == pytest.approx(0.001 / METRIC_PART)
    # Holm's procedure with the whole alpha.
    assert list(found.points) == pytest.approx([0.04, 0.04])


def test_a_rejected_metric_passes_half_of_its_part_to_the_others() -> None:
    first, second = adjust([Family(0.001, (1.0, 1.0)), Family(0.03, (1.0, 1.0))])
    assert first.metric == pytest.approx(0.001 / (METRIC_PART / 2))
    assert second.metric == pytest.approx(0.03 / (METRIC_PART / 2 * (1 + PASSED_ON)))


def test_metrics_with_one_point_alone_have_holms_correction() -> None:
    ps = [0.01, 0.02, 0.04, 0.5]
    assert [f.metric for f in adjust([Family(p) for p in ps])] == pytest.approx(holm(ps))


def test_the_number_of_points_does_not_weaken_a_metric() -> None:
    few, many = (adjust([Family(0.004, (0.5,) * n), Family(0.3, (0.5,) * n)])[0] for n in (2, 200))
    assert few.metric == many.metric


def test_what_cannot_be_tested_stays_so_and_takes_no_part() -> None:
    found = adjust([Family(None, (None,)), Family(0.04), Family(None)])
    assert found == [Family(None, (None,)), Family(0.04), Family(None)]
    # Without a test of the metric, its points have its part.
    assert adjust([Family(None, (0.01, None))])[0].points == (0.01, None)


@given(FAMILIES)
def test_an_adjusted_p_is_never_below_its_p_and_keeps_the_order_in_a_family(
    families: list[Family],
) -> None:
    for before, after in zip(families, adjust(families), strict=True):
        assert [p is None for p in (before.metric, *before.points)] == [
            p is None for p in (after.metric, *after.points)
        ]
        both = [
            (p, q)
            for p, q in zip(
                (before.metric, *before.points), (after.metric, *after.points), strict=True
            )
            if p is not None and q is not None
        ]
        assert all(p - 1e-12 <= q <= 1 for p, q in both)
        points = sorted(
            (p, q)
            for p, q in zip(before.points, after.points, strict=True)
            if p is not None and q is not None
        )
        assert [q for _, q in points] == sorted(q for _, q in points)


@given(FAMILIES, st.floats(0.001, 0.2), st.floats(0, 1))
def test_a_smaller_p_never_makes_another_one_larger(
    families: list[Family], alpha: float, by: float
) -> None:
    before = rejected(families, alpha)
    less = [
        Family(None if f.metric is None else f.metric * by, tuple(p and p * by for p in f.points))
        for f in families
    ]
    assert before <= rejected(less, alpha)


@pytest.mark.parametrize("correlation", [0.0, 0.9])
@pytest.mark.parametrize(
    "changed", ["nothing", "half of the points", "one metric", "cancelling points"]
)
def test_the_probability_of_any_false_rejection_is_at_most_alpha(
    changed: str, correlation: float
) -> None:
    """Normal tests of 3 metrics with 4 points each; what is changed is rejected with certainty."""
    rng = np.random.default_rng(1)
    runs, alpha, wrong = 2000, 0.05, 0
    for _ in range(runs):
        shared = rng.normal(size=(3, 1)) * np.sqrt(correlation)
        z = shared + rng.normal(size=(3, 4)) * np.sqrt(1 - correlation)
        means = z.sum(axis=1) / np.sqrt(4 * (1 - correlation) + 16 * correlation)
        points, metrics = 2 * normal_tail(np.abs(z)), 2 * normal_tail(np.abs(means))
        true_metrics, true_points = np.ones(3, bool), np.ones((3, 4), bool)
        if changed == "half of the points":
            true_points[:, :2] = true_metrics[:] = False
        elif changed == "one metric":
            true_points[0] = true_metrics[0] = False
        elif changed == "cancelling points":
            true_points[:, :2] = False
        points[~true_points] = 0
        metrics[~true_metrics] = 0
        families = [
            Family(float(m), tuple(map(float, ps))) for m, ps in zip(metrics, points, strict=True)
        ]
        wrong += any(
            true_metrics[n] if at is None else true_points[n, at]
            for n, at in rejected(families, alpha)
        )
    assert wrong / runs <= alpha + 3 * np.sqrt(alpha * (1 - alpha) / runs)


def normal_tail(z: np.ndarray) -> np.ndarray:
    """Return the probability above ``z``."""
    from scipy.special import ndtr

    tail: np.ndarray = ndtr(-z)
    return tail


def test_parts_are_those_of_the_procedure() -> None:
    metric, point = parts(3, 4)
    families = [Family(metric * 0.05, (1.0,) * 4), *[Family(1.0, (1.0,) * 4)] * 2]
    assert adjust(families)[0].metric == pytest.approx(0.05)
    opened = [Family(0.0, (point * 0.05, 1.0, 1.0, 1.0)), *[Family(1.0, (1.0,) * 4)] * 2]
    assert adjust(opened)[0].points[0] == pytest.approx(0.05)
    assert parts(1, 1) == (1, 1)
    assert parts(3, 1) == parts(3, 0) == (1 / 3, 1 / 3)
