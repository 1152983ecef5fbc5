"""Verdicts from published means and standard deviations, compared with known tests and with the
posting."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_ind_from_stats

from kteardown.analysis.estimate.student import Mean, estimate_means, judge_means
from kteardown.analysis.estimate.verdict import Estimate, Rules
from kteardown.inputs.published import load_posting
from kteardown.model.judged import Verdict
from kteardown.model.workload import Better

RULES = Rules(confidence=0.95, same_within=0.02)


def posted(key: str) -> dict[int, tuple[Estimate, Verdict, str]]:
    """Return estimates and verdicts on the throttle posting by number of threads, corrected over
    all rows."""
    reference = load_posting("throttle")
    assert reference is not None
    rows = [
        (figure.base, int(row.at), row, "lower" if figure.metric.endswith("_ns") else "higher")
        for figure in reference.figures
        for row in reference.rows(figure)
    ]
    pairs: list[tuple[Mean, Mean, Better]] = [
        (
            Mean(row.base.value, row.base.sd or 0.0, 3),
            Mean(row.changed.value, row.changed.sd or 0.0, 3),
            "lower" if better == "lower" else "higher",
        )
        for *_, row, better in rows
    ]
    judged = judge_means(pairs, RULES)
    return {
        at: (estimate_means(before, after, RULES), *one)
        for (base, at, *_), (before, after, _), one in zip(rows, pairs, judged, strict=True)
        if base == key
    }


def test_the_first_row_of_the_throttle_posting_is_inconclusive() -> None:
    found, verdict, reason = posted("wakeup_p99_base")[1]
    assert (verdict, reason) == ("inconclusive", "the interval includes 0%")
    low, high = found.ci or (1.0, 1.0)
    # -13.33% as posted: a wakeup latency of 17 us after 15 (5.29) us, three runs each.
    assert found.ratio == pytest.approx(17 / 15)
    assert [low, high] == pytest.approx([0.487, 2.638], abs=1e-3)
    assert found.p == pytest.approx(0.603, abs=1e-3)


def test_the_second_row_of_the_throttle_posting_is_inconclusive() -> None:
    found, verdict, _ = posted("request_p99_base")[63]
    assert verdict == "inconclusive"
    assert found.ratio == pytest.approx(1.1267, abs=1e-4)
    assert list(found.ci or ()) == pytest.approx([0.694, 1.828], abs=1e-3)
    assert found.p == pytest.approx(0.400, abs=1e-3)


def test_the_gain_of_18_percent_in_the_posting_is_inconclusive() -> None:
    assert posted("wakeup_p99_base")[32][1] == "inconclusive"


def test_no_other_row_of_the_posting_is_better_or_worse() -> None:
    counts: dict[str, dict[Verdict, int]] = {}
    for key in ("wakeup_p99_base", "request_p99_base", "rps_p50_base", "rps_avg_base"):
        for _, verdict, _ in posted(key).values():
            of = counts.setdefault(key, {})
            of[verdict] = of.get(verdict, 0) + 1
    assert counts == {
        "wakeup_p99_base": {"inconclusive": 6, "same": 1},
        "request_p99_base": {"inconclusive": 4, "same": 3},
        "rps_p50_base": {"same": 6, "inconclusive": 1},
        "rps_avg_base": {"same": 6, "inconclusive": 1},
    }


MEANS = st.builds(Mean, value=st.floats(100, 1000), sd=st.floats(0.01, 1), n=st.integers(2, 30))


@given(base=MEANS, changed=MEANS)
def test_with_small_deviations_it_is_welchs_test_of_the_means(base: Mean, changed: Mean) -> None:
    changed = Mean(base.value + (changed.value - base.value) / 1000, changed.sd, changed.n)
    found = estimate_means(base, changed, RULES)
    welch = ttest_ind_from_stats(
        base.value, base.sd, base.n, changed.value, changed.sd, changed.n, equal_var=False
    )
    assert found.p == pytest.approx(welch.pvalue, abs=0.02)


@given(base=MEANS, changed=MEANS)
def test_swapping_the_sides_inverts_the_interval(base: Mean, changed: Mean) -> None:
    there, back = (estimate_means(*pair, RULES) for pair in ((base, changed), (changed, base)))
    assert there.ci is not None
    assert back.ci is not None
    assert there.ci[0] == pytest.approx(1 / back.ci[1])
    assert there.p == pytest.approx(back.p)
    assert there.p_same == pytest.approx(back.p_same)


@given(base=MEANS, changed=MEANS)
def test_the_interval_excludes_no_change_if_the_test_does(base: Mean, changed: Mean) -> None:
    found = estimate_means(base, changed, RULES)
    assert found.ci is not None
    assert found.p is not None
    if abs(found.p - 0.05) > 1e-9:
        assert (found.ci[0] <= 1 <= found.ci[1]) == (found.p > 0.05)


def test_intervals_cover_the_true_ratio() -> None:
    rng = np.random.default_rng(1)
    covered, runs = 0, 2000
    for _ in range(runs):
        sides = [rng.normal(mean, 0.05 * mean, 5) for mean in (100, 110)]
        base, changed = (Mean(float(s.mean()), float(s.std(ddof=1)), 5) for s in sides)
        low, high = estimate_means(base, changed, RULES).ci or (0.0, math.inf)
        covered += low <= 1.1 <= high
    assert 0.94 < covered / runs < 0.97


@pytest.mark.parametrize(
    ("base", "changed", "verdict", "reason"),
    [
        (Mean(100, 1, 10), Mean(80, 1, 10), "better", ""),
        (Mean(100, 1, 10), Mean(120, 1, 10), "worse", ""),
        (Mean(100, 0.1, 10), Mean(100.1, 0.1, 10), "same", "within 2%"),
        (Mean(100, 0, 3), Mean(101, 0, 3), "same", "within 2%"),
        (Mean(100, 0, 3), Mean(110, 0, 3), "inconclusive", "no spread: nothing to test"),
        (Mean(100, 1, 1), Mean(80, 1, 10), "inconclusive", "one run gives no interval"),
        (
            Mean(0, 0, 3),
            Mean(80, 1, 3),
            "inconclusive",
            "a mean that is not above zero has no ratio",
        ),
    ],
)
def test_verdicts(base: Mean, changed: Mean, verdict: Verdict, reason: str) -> None:
    (judged,) = judge_means([(base, changed, "lower")], RULES)
    assert judged == (verdict, reason)
