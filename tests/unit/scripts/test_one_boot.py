"""How far one more boot may be from published ones: it is farther away as often as is stated."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from one_boot import RATE, Spread, moderated, spread_of

Draw = Callable[[np.random.Generator, int], np.ndarray]


def alike(_: np.random.Generator, number: int) -> np.ndarray:
    return np.ones(number)


def scattered(rng: np.random.Generator, number: int) -> np.ndarray:
    return np.exp(rng.normal(size=number))


def some_large(rng: np.random.Generator, number: int) -> np.ndarray:
    return np.where(rng.random(number) < 0.2, 1.0, 0.03)


@pytest.mark.parametrize("spreads", [alike, scattered, some_large])
@pytest.mark.parametrize(("figures", "boots"), [(1, 3), (4, 3), (24, 3), (12, 5)])
@pytest.mark.parametrize("reference", [False, True])
def test_a_boot_of_the_same_is_outside_as_often_as_is_stated(
    spreads: Draw, figures: int, boots: int, reference: bool
) -> None:
    rng, outside, times = np.random.default_rng(7), 0, 1000
    for _ in range(times):
        sds = spreads(rng, figures) * 0.01
        published = 1 + rng.normal(size=(figures, boots)) * sds[:, None]
        known = moderated([Spread(float(sd), boots - 1) for sd in published.std(axis=1, ddof=1)])
        expected = 1 + rng.normal(size=figures) * sds if reference else np.median(published, axis=1)
        allowed = [each.allowed(RATE / figures, None if reference else boots) for each in known]
        outside += bool((np.abs(1 + rng.normal(size=figures) * sds - expected) > allowed).any())
    # Three standard errors of 1,000 draws. Moderated spreads of two sorts are 2% worse than stated.
    assert outside / times < RATE + 0.021 + 0.02 * (spreads is some_large)
    if figures == 1:
        assert outside / times > RATE - 0.025


@pytest.mark.parametrize("inside", [0, 0.5, 3])
def test_samples_of_a_boot_make_no_boot_outside_more_often(inside: float) -> None:
    """The spread is made from all samples; the boots, or the samples of each, may differ more."""
    rng, outside, times = np.random.default_rng(8), 0, 2000
    for _ in range(times):
        samples = rng.normal(size=(3, 1)) + inside * rng.normal(size=(3, 7))
        spread = spread_of(float(samples.std(ddof=1)), samples.size, len(samples))
        new = rng.normal() + np.median(inside * rng.normal(size=3))
        middle = np.median(np.median(samples, axis=1))
        outside += bool(abs(new - middle) > spread.allowed(RATE, 3))
    assert outside / times < RATE + 0.015


@given(st.lists(st.floats(0, 1), min_size=12, max_size=40), st.integers(2, 9))
def test_a_moderated_spread_is_between_the_least_and_the_largest(
    sds: list[float], boots: int
) -> None:
    found = moderated([Spread(sd, boots - 1) for sd in sds])
    assert all(math.isfinite(each.sd) and each.df >= boots - 1 for each in found)
    assert all(min(sds) * 0.99 <= each.sd <= 3 * max(*sds, 5e-4) for each in found)


def test_what_nothing_is_known_of_stays_unknown() -> None:
    assert spread_of(0.3, 5, 1) == Spread(0, 0)
    assert spread_of(0.3, 5, 1).allowed(0.05, 1) == 0
    known = [Spread(0.1 + n / 100, 2) for n in range(12)]
    assert moderated([*known, Spread(0, 0)])[-1] == Spread(0, 0)
    few = known[:11]
    assert moderated(few) == few, "so few do not show how far they agree"
