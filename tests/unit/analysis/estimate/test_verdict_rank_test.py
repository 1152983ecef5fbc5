"""Rank tests: they do not depend on names, order or scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from kteardown.analysis.estimate.verdict import rank_tests


def numbered(values: list[float]) -> dict[int, float]:
    return dict(enumerate(values))


def p(base: dict[int, float], changed: dict[int, float]) -> float:
    (found,) = rank_tests([(base, changed)])
    assert found is not None
    return found.p


@given(
    st.lists(st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)), min_size=2, max_size=12), st.randoms()
)
def test_sides_and_blocks_can_be_swapped(
    rows: list[tuple[float, float]], random: np.random.Generator
) -> None:
    base, changed = numbered([row[0] for row in rows]), numbered([row[1] for row in rows])
    found = p(base, changed)
    assert 0 <= found <= 1
    assert p(changed, base) == pytest.approx(found)
    order = list(base)
    random.shuffle(order)
    assert (
        p({n: base[b] for n, b in enumerate(order)}, {n: changed[b] for n, b in enumerate(order)})
        == found
    )


def test_the_test_does_not_depend_on_the_unit() -> None:
    rng = np.random.default_rng(1)
    base, changed = (numbered(rng.lognormal(5, 0.2, 10).tolist()) for _ in range(2))
    scaled = [{block: 8 * value for block, value in side.items()} for side in (base, changed)]
    assert p(scaled[0], scaled[1]) == p(base, changed)


def test_many_pairs_at_once_give_the_same_as_one_by_one() -> None:
    rng = np.random.default_rng(2)
    todo = [
        tuple(numbered(rng.lognormal(5, 0.2, count).tolist()) for _ in range(2))
        for count in (4, 9, 4, 12, 9)
    ]
    found = rank_tests([(base, changed) for base, changed in todo])
    for (base, changed), test in zip(todo, found, strict=True):
        assert test is not None
        logs = np.log(list(changed.values())) - np.log(list(base.values()))
        assert test.p == wilcoxon(logs, method="exact").pvalue
        assert test.least == 2.0 ** (1 - len(base))


def test_the_smallest_p_is_reached_if_all_boots_agree() -> None:
    base = {n: 100.0 + n for n in range(7)}
    (found,) = rank_tests([(base, {n: value * (1.1 + n / 100) for n, value in base.items()})])
    assert found is not None
    assert found.p == found.least == 2**-6


def test_a_drift_of_whole_blocks_cancels() -> None:
    rng = np.random.default_rng(3)
    drift = np.exp(np.linspace(0, 2, 10))
    base = numbered((100 * drift * np.exp(rng.normal(0, 0.01, 10))).tolist())
    changed = numbered((90 * drift * np.exp(rng.normal(0, 0.01, 10))).tolist())
    assert p(base, changed) == 2**-9


def test_equal_figures_and_ties_have_a_p() -> None:
    base = numbered([100.0] * 8)
    assert p(base, base) == 1.0
    tied = numbered([100.0, 101.0, 101.0, 101.0, 101.0, 101.0, 101.0, 101.0])
    assert 0 < p(base, tied) < 0.05


def test_without_blocks_in_common_nothing_is_paired() -> None:
    (found,) = rank_tests([({0: 1.0, 1: 2.0, 2: 3.0}, {7: 11.0, 8: 12.0, 9: 13.0})])
    assert found is not None
    assert found.p == pytest.approx(0.1)
    assert found.least == found.p


def test_zeros_are_ranked_unpaired() -> None:
    (found,) = rank_tests([({0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0}, {0: 1.0, 1: 1.1, 2: 1.2, 3: 1.3})])
    assert found is not None
    assert found.p < 0.05
    (none,) = rank_tests([({0: 0.0, 1: 0.0}, {0: 0.0, 1: 0.0})])
    assert none is not None
    assert none.p == 1.0


@pytest.mark.parametrize(
    ("base", "changed"), [({0: 1.0}, {0: 2.0}), ({0: 1.0, 1: 1.0}, {0: 1.0}), ({}, {})]
)
def test_one_boot_has_no_rank_test(base: dict[int, float], changed: dict[int, float]) -> None:
    assert rank_tests([(base, changed)]) == [None]


def test_it_is_rarely_wrong() -> None:
    """2,000 pairs without a change: at most 5% by design, 6% at two standard errors."""
    rng = np.random.default_rng(4)
    todo = [
        tuple(numbered(rng.lognormal(5, 0.3, 10).tolist()) for _ in range(2)) for _ in range(2000)
    ]
    found = rank_tests([(base, changed) for base, changed in todo])
    assert sum(test is not None and test.p < 0.05 for test in found) <= 120
