"""Intervals cover, and do not depend on units, the order of sides or other comparisons."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.analysis.estimate.bootstrap import Boots, Interval, Resampler, ratio_interval

values = st.floats(min_value=0.5, max_value=1e9)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Boots, Boots]:
    """Draw two kernels with 2 to 6 boots of 1 to 4 samples each, with or without common blocks."""
    count = draw(st.integers(2, 6))
    shift = draw(st.integers(0, 1))
    groups = st.lists(st.lists(values, min_size=1, max_size=4), min_size=count, max_size=count)
    base, changed = draw(groups), draw(groups)
    return Boots(dict(enumerate(base))), Boots(
        {n + shift: group for n, group in enumerate(changed)}
    )


def interval(base: Boots, changed: Boots, *, seed: int = 1, within: bool = True) -> Interval:
    found = ratio_interval(base, changed, Resampler(seed), confidence=0.95, within=within)
    assert found is not None
    return found


@given(pairs())
def test_swapping_the_sides_inverts_the_interval(pair: tuple[Boots, Boots]) -> None:
    base, changed = pair
    one, other = interval(base, changed), interval(changed, base)
    assert other.low == pytest.approx(1 / one.high, rel=1e-9)
    assert other.high == pytest.approx(1 / one.low, rel=1e-9)
    assert other.p == pytest.approx(one.p, rel=1e-9)


@given(pairs(), st.sampled_from([0.001, 0.5, 4.0, 1e6]))
def test_the_unit_does_not_matter(pair: tuple[Boots, Boots], factor: float) -> None:
    def scaled(boots: Boots) -> Boots:
        return Boots({b: [v * factor for v in group] for b, group in boots.samples.items()})

    base, changed = pair
    one, other = interval(base, changed), interval(scaled(base), scaled(changed))
    assert other.low == pytest.approx(one.low, rel=1e-6)
    assert other.high == pytest.approx(one.high, rel=1e-6)


@given(pairs())
def test_the_ratio_is_inside_its_interval(pair: tuple[Boots, Boots]) -> None:
    base, changed = pair
    found = interval(base, changed)
    ratio = changed.median / base.median
    assert found.low <= ratio * (1 + 1e-9)
    assert found.high >= ratio * (1 - 1e-9)
    assert 0 <= found.p <= 1
    assert found.mde >= 0


def test_an_interval_does_not_depend_on_earlier_comparisons() -> None:
    base, changed = Boots({0: [1, 2], 1: [2, 3], 2: [3]}), Boots({0: [2], 1: [3, 4], 2: [1, 5]})
    shared = Resampler(7)
    ratio_interval(changed, Boots({5: [1.0], 6: [9.0]}), shared, confidence=0.9, within=True)
    assert ratio_interval(base, changed, shared, confidence=0.95, within=True) == interval(
        base, changed, seed=7
    )


def test_one_boot_has_no_interval() -> None:
    one, two = Boots({0: [1.0, 2.0, 3.0]}), Boots({0: [1.0], 1: [2.0]})
    assert ratio_interval(one, two, Resampler(1), confidence=0.95, within=True) is None


def test_a_drift_of_the_machine_cancels_where_blocks_are_shared() -> None:
    drift = np.exp(np.random.default_rng(1).normal(0, 0.5, 10))
    base = Boots({n: [100 * d] for n, d in enumerate(drift)})
    paired = Boots({n: [70 * d] for n, d in enumerate(drift)})
    unpaired = Boots({n + 1: [70 * d] for n, d in enumerate(drift)})
    assert interval(base, paired).se < 1e-6
    assert interval(base, unpaired).se > 0.05


def test_the_spread_inside_boots_is_not_counted_twice() -> None:
    rng = np.random.default_rng(2)
    base = Boots({n: (100 * np.exp(rng.normal(0, 0.3, 3))).tolist() for n in range(8)})
    changed = Boots({n: (90 * np.exp(rng.normal(0, 0.3, 3))).tolist() for n in range(8)})
    alone = [Boots({n: [figure] for n, figure in side.medians.items()}) for side in (base, changed)]
    assert interval(base, changed) == interval(*alone)


def test_repetitions_give_the_error_if_boots_do_not_differ() -> None:
    """Whole microseconds: every boot has the same median, which is not an exact difference."""
    base = Boots({n: [17.0, 17.0, 18.0] for n in range(6)})
    changed = Boots({n: [17.0, 18.0, 18.0] for n in range(6)})
    assert interval(base, changed, within=False).se == 0
    found = interval(base, changed)
    assert found.se > 0
    assert found.low < 18 / 17 < found.high
    assert interval(changed, base).low == pytest.approx(1 / found.high, rel=1e-9)


@pytest.mark.parametrize("within", [True, False])
def test_exact_draws_give_an_exact_interval(within: bool) -> None:
    found = interval(
        Boots({n: [330.0] * 3 for n in range(5)}),
        Boots({n: [130.0] * 3 for n in range(5)}),
        within=within,
    )
    assert (found.low, found.high, found.p, found.mde) == (130 / 330, 130 / 330, 0, 0)


@given(pairs(), st.sampled_from([0.8, 0.95, 0.999]))
def test_p_is_below_alpha_exactly_if_the_interval_excludes_no_change(
    pair: tuple[Boots, Boots], confidence: float
) -> None:
    found = ratio_interval(*pair, Resampler(1), confidence=confidence, within=True)
    assert found is not None
    assert found.p == pytest.approx(min(1, 2 * min(found.p_below(0), found.p_above(0))))
    if (
        abs(found.p - (1 - confidence)) > 1e-6
        and min(abs(found.low - 1), abs(found.high - 1)) > 1e-9
    ):
        assert (found.p < 1 - confidence) == (not found.low <= 1 <= found.high)


def test_percentiles_inside_a_boot_are_compared_like_medians() -> None:
    rng = np.random.default_rng(5)
    base = Boots({n: rng.lognormal(0, 1, 500).tolist() for n in range(10)})
    slower = Boots({n: (1.5 * rng.lognormal(0, 1, 500)).tolist() for n in range(10)})
    assert base.quantiles(0.99)[3] == pytest.approx(float(np.quantile(base.samples[3], 0.99)))
    assert base.quantile(0.99) == pytest.approx(
        float(np.median(list(base.quantiles(0.99).values())))
    )
    found = ratio_interval(base, slower, Resampler(1), confidence=0.95, within=True, quantile=0.99)
    assert found is not None
    assert found.centre == pytest.approx(np.log(slower.quantile(0.99) / base.quantile(0.99)))
    figures = [Boots({n: [v] for n, v in side.quantiles(0.99).items()}) for side in (base, slower)]
    assert found == interval(*figures)
    assert found != interval(base, slower)


def test_two_peaks_widen_the_interval_beyond_students() -> None:
    """Six of twenty boots of one kernel are fast, twelve of the other, which can happen by
    chance."""
    slow, fast = 149.0, 100.0
    base = Boots({n: [fast if n < 6 else slow] for n in range(20)})
    changed = Boots({n: [fast if n % 5 < 3 else slow] for n in range(20)})
    found = interval(base, changed)
    assert found.centre + 2.1 * found.se < 0
    assert found.high >= 1


def test_the_smallest_detectable_change_is_larger_with_a_twin() -> None:
    rng = np.random.default_rng(3)
    base = Boots({n: [float(np.exp(rng.normal(0, 0.05)))] for n in range(10)})
    changed = Boots({n: [float(np.exp(rng.normal(0, 0.05)))] for n in range(10)})
    alone = interval(base, changed)
    beside = ratio_interval(base, changed, Resampler(1), confidence=0.95, within=True, twin=True)
    assert beside is not None
    assert (beside.low, beside.high) == (alone.low, alone.high)
    assert beside.mde > alone.mde > alone.high / (changed.median / base.median) - 1
