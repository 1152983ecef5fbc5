"""Changes of level: real changes are found, and others rarely."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kteardown_history.change_points import FEWEST_WALL, change_points, segment

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]

_LEAST = 0.02
_SERIES = 100


def _changes_in(logs: NDArray[np.float64], *, exact: bool = False) -> tuple[int, ...]:
    return change_points([[float(np.exp(log))] for log in logs], exact=exact, least=_LEAST)[0]


@pytest.mark.parametrize(
    ("name", "draw", "most"),
    [
        ("bell-shaped", lambda rng, n: rng.normal(0, 0.05, n), 0.05),
        ("heavy tails", lambda rng, n: 0.03 * rng.standard_t(3, n), 0.08),
        ("skewed", lambda rng, n: rng.exponential(0.05, n), 0.10),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("runs", [5, 10, 25])
def test_noise_alone_rarely_has_a_change(name: str, draw: Draw, most: float, runs: int) -> None:
    rng = np.random.default_rng(1)
    seen = sum(bool(_changes_in(draw(rng, runs))) for _ in range(_SERIES))
    assert seen / _SERIES <= most


@pytest.mark.parametrize(("runs", "at"), [(6, 4), (12, 8), (25, 12)])
def test_a_change_of_ten_times_the_noise_is_found_at_its_place(runs: int, at: int) -> None:
    rng = np.random.default_rng(2)
    hits = 0
    for _ in range(_SERIES):
        logs = rng.normal(0, 0.02, runs)
        logs[at:] += 0.2
        hits += _changes_in(logs) == (at,)
    assert hits / _SERIES >= 0.9


def test_a_single_outlier_in_real_time_is_not_a_change() -> None:
    logs = np.random.default_rng(3).normal(0, 0.01, 20)
    logs[7] += 0.3
    assert _changes_in(logs) == ()


def test_a_single_exact_figure_can_be_a_level() -> None:
    figures = [[1000.0, 1001.0], [1000.0, 1001.0], [1500.0, 1501.0]]
    assert change_points(figures, exact=True, least=_LEAST) == ((2,), "")


def test_exact_figures_that_differ_by_less_than_the_margin_are_one_level() -> None:
    figures = [[1000.0], [1001.0], [1005.0], [1018.0]]
    assert change_points(figures, exact=True, least=_LEAST) == ((), "")
    assert change_points(figures, exact=True, least=0.001)[0] == (2, 3)


def test_seeds_that_differ_more_than_the_runs_hide_no_change_and_make_none() -> None:
    spread = [900.0, 1000.0, 1100.0, 1200.0]
    moved = [[value * 1.03 for value in spread]]
    doubled = [[value * 2 for value in spread]]
    assert change_points([spread, spread, *moved], exact=True, least=_LEAST)[0] == ()
    assert change_points([spread, spread, *doubled], exact=True, least=_LEAST)[0] == (2,)


def test_figures_with_zeros_are_compared_without_logarithms() -> None:
    figures = [[0.0], [0.0], [4.0], [4.0]]
    assert change_points(figures, exact=True, least=_LEAST)[0] == (2,)
    assert change_points([[0.0], [0.0]], exact=True, least=_LEAST) == ((), "")


def test_too_few_figures_are_reported() -> None:
    assert "only one figure" in change_points([[1.0]], exact=True, least=_LEAST)[1]
    few = [[float(n + 1)] for n in range(FEWEST_WALL - 1)]
    found, why = change_points(few, exact=False, least=_LEAST)
    assert found == () and f"fewer than {FEWEST_WALL}" in why


def _cost(levels: NDArray[np.float64], changes: tuple[int, ...], *, exact: bool) -> float:
    """Return the cost of a segmentation, without penalties; infinite if a segment is too short."""
    parts = [levels[start:end] for start, end in pairwise((0, *changes, len(levels)))]
    if min(map(len, parts)) < (1 if exact else 2):
        return np.inf
    if exact:
        return float(sum(np.var(part) * len(part) for part in parts))
    return float(sum(np.abs(part - np.median(part)).sum() for part in parts))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.floats(-3, 3) | st.sampled_from([0.0, 1.0, 1.01]), min_size=2, max_size=9),
    st.floats(1e-6, 4),
    st.booleans(),
)
def test_no_segmentation_costs_less(figures: list[float], penalty: float, exact: bool) -> None:
    levels = np.array(figures)
    every = [
        (_cost(levels, changes, exact=exact) + penalty * len(changes), changes)
        for count in range(len(levels))
        for changes in combinations(range(1, len(levels)), count)
    ]
    found = tuple(segment(levels, penalty, exact=exact))
    assert _cost(levels, found, exact=exact) + penalty * len(found) == pytest.approx(
        min(every)[0], abs=1e-9
    )
