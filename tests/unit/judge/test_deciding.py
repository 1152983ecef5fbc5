"""How many boots would decide what is inconclusive."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from kteardown.judge.deciding import MOST_BOOTS, boots_to_decide, is_far_from_no_change
from kteardown.model.judged import MetricVerdict


def metric(
    ratio: float = 1.1, spread: float = 0.03, boots: int = 3, **update: object
) -> MetricVerdict:
    one = MetricVerdict(
        workload="zombies",
        variant="v",
        metric="freeze_user_ns",
        unit="ns",
        better="lower",
        ratio=ratio,
        ci=(ratio - 0.05, ratio + 0.05),
        confidence=0.95,
        mde=None,
        verdict="inconclusive",
        reason="not significant after the correction for the number of tests",
        points=3,
        planned=3,
        boots=boots,
        spread=spread,
    )
    return one.model_copy(update=update)


def test_a_change_that_is_not_seen_needs_no_boots() -> None:
    assert boots_to_decide(metric(ci=(0.95, 1.25))) is None
    assert boots_to_decide(metric(verdict="worse")) is None
    assert boots_to_decide(metric(outside="contradicts")) is None
    assert not is_far_from_no_change(metric(ci=None))
    assert is_far_from_no_change(metric(ratio=0.9))


def test_the_power_of_the_number_is_that_of_simulated_runs() -> None:
    """The change and the spread are as large: the t-test needs 10 pairs for a power of 80%."""
    boots = boots_to_decide(metric(ratio=math.exp(0.1), spread=0.1, boots=3))
    assert boots == 10
    logs = np.random.default_rng(1).normal(0.1, 0.1, (20_000, boots))
    seen = np.mean(ttest_1samp(logs, 0, axis=1).pvalue < 0.05)
    assert 0.79 < seen < 0.83


def test_a_correction_of_unknown_size_gives_no_number() -> None:
    assert boots_to_decide(metric(p=0.05, p_corrected=1.0)) is None


@pytest.mark.parametrize(("p", "p_corrected"), [(0.01, 0.01), (0.01, 0.2), (0.001, 0.5)])
def test_more_tests_need_more_boots(p: float, p_corrected: float) -> None:
    alone, corrected = (
        boots_to_decide(metric()),
        boots_to_decide(metric(p=p, p_corrected=p_corrected)),
    )
    assert alone is not None and corrected is not None and corrected >= alone


@given(st.floats(1.001, 3), st.floats(1e-4, 0.5), st.integers(2, 20))
def test_the_number_is_larger_than_that_of_the_run(ratio: float, spread: float, boots: int) -> None:
    number = boots_to_decide(metric(ratio, spread, boots, ci=(1.0005, 4.0)))
    assert number is None or boots < number <= max(MOST_BOOTS, boots + 1)
