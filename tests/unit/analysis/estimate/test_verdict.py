"""Verdicts: real differences, equivalence, and inconclusive results."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.analysis.estimate.bootstrap import Boots, Resampler
from kteardown.analysis.estimate.verdict import (
    Estimate,
    RankTest,
    Rules,
    SupportingResults,
    estimate,
    holm,
    judge,
    summary,
)
from kteardown.inputs.published import load_posting
from kteardown.model.clock import Clock
from kteardown.model.judged import Verdict
from kteardown.paths import data_dir

RULES = Rules(confidence=0.95, same_within=0.02)


def boots(*groups: list[float]) -> Boots:
    return Boots(dict(enumerate(groups)))


def noisy(rng: np.random.Generator, cost: float, sd: float, count: int = 10) -> Boots:
    shifts = cost * np.exp(rng.normal(0, sd, count))
    return Boots({n: (s * np.exp(rng.normal(0, 0.01, 3))).tolist() for n, s in enumerate(shifts)})


def verdict(
    base: Boots, changed: Boots, clock: Clock = "wall", null: Boots | None = None
) -> Verdict:
    resampler = Resampler(1)
    found = estimate(base, changed, clock, RULES, resampler)
    nothing = estimate(base, null, clock, RULES, resampler) if null else None
    return judge(found, SupportingResults(twin=nothing), found.p, "lower", RULES)[0]


groups = st.lists(
    st.lists(
        st.floats(min_value=0, max_value=1e6).map(lambda v: round(v, 3)), min_size=1, max_size=3
    ),
    min_size=1,
    max_size=5,
)
OPPOSITE = {"better": "worse", "worse": "better", "same": "same", "inconclusive": "inconclusive"}


@given(groups, groups, st.sampled_from(["wall", "instructions"]))
def test_swapping_base_and_changed_inverts_the_verdict(
    one: list[list[float]], other: list[list[float]], clock: Clock
) -> None:
    base, changed = boots(*one), boots(*other)
    assert verdict(changed, base, clock) == OPPOSITE[verdict(base, changed, clock)]


@given(groups, st.sampled_from(["wall", "instructions"]))
def test_a_kernel_is_never_better_or_worse_than_itself(
    one: list[list[float]], clock: Clock
) -> None:
    assert verdict(boots(*one), boots(*one), clock) in ("same", "inconclusive")


@given(st.lists(st.lists(st.floats(1, 1e6), min_size=2, max_size=3), min_size=2, max_size=5))
def test_identical_data_is_the_same_and_exact_on_the_instruction_clock(
    one: list[list[float]],
) -> None:
    found = estimate(boots(*one), boots(*one), "instructions", RULES, Resampler(1))
    assert (found.ratio, found.ci, found.exact, found.identical) == (1, (1, 1), True, True)
    assert judge(found, SupportingResults(), found.p, "lower", RULES) == ("same", "identical")


def test_one_number_on_each_side_is_an_exact_difference() -> None:
    found = estimate(
        boots([330, 330], [330]), boots([130, 130], [130]), "instructions", RULES, Resampler(1)
    )
    assert found.exact
    assert found.ci == (130 / 330, 130 / 330)
    assert judge(found, SupportingResults(), found.p, "lower", RULES) == ("better", "exact")
    assert judge(found, SupportingResults(), found.p, "higher", RULES) == ("worse", "exact")


def test_one_seed_gives_no_interval() -> None:
    found = estimate(boots([330, 330]), boots([130, 130]), "instructions", RULES, Resampler(1))
    assert not found.exact
    assert judge(found, SupportingResults(), found.p, "lower", RULES) == (
        "inconclusive",
        "one seed gives no interval",
    )


def test_a_large_effect_is_found_and_a_small_one_is_the_same() -> None:
    rng = np.random.default_rng(1)
    base = noisy(rng, 1000, 0.03)
    assert verdict(base, noisy(rng, 600, 0.03)) == "better"
    assert verdict(base, noisy(rng, 1500, 0.03)) == "worse"
    quiet = Boots({n: [1000.0 + n] for n in range(10)})
    assert verdict(quiet, Boots({n: [1003.0 + n] for n in range(10)})) == "same"


def test_no_significant_difference_is_not_the_same() -> None:
    rng = np.random.default_rng(4)
    assert verdict(noisy(rng, 1000, 0.3), noisy(rng, 1000, 0.3)) == "inconclusive"


def test_a_difference_within_the_a_a_interval_is_inconclusive() -> None:
    rng = np.random.default_rng(2)
    base, changed = noisy(rng, 1000, 0.02), noisy(rng, 900, 0.02)
    assert verdict(base, changed) == "better"
    assert verdict(base, changed, null=noisy(rng, 1000, 0.02)) == "better"
    assert verdict(base, changed, null=noisy(rng, 880, 0.02)) == "inconclusive"
    assert verdict(base, noisy(rng, 700, 0.02), null=noisy(rng, 880, 0.02)) == "better"


def test_zeros_and_constants_have_a_verdict() -> None:
    zero, some = boots([0.0], [0.0]), boots([5.0], [5.0])
    for clock in ("wall", "instructions"):
        assert verdict(zero, zero, clock) == "same"
    none = estimate(zero, some, "instructions", RULES, Resampler(1))
    assert (none.ratio, none.ci) == (None, None)
    assert judge(none, SupportingResults(), none.p, "lower", RULES)[0] == "worse"


def test_a_share_that_drops_to_zero_is_better_by_the_rank_test() -> None:
    blocked = boots([0.9], [0.88], [0.91], [0.9], [0.87])
    gone = boots([0.0], [0.0], [0.0], [0.0], [0.0])
    found = estimate(blocked, gone, "wall", RULES, Resampler(1))
    assert (found.ratio, found.ci) == (0, None)
    assert judge(found, SupportingResults(), found.p, "lower", RULES) == (
        "better",
        "rank test without an interval: not all samples are above zero",
    )
    assert verdict(blocked, gone, null=gone) == "inconclusive"


@pytest.mark.parametrize("clock", ["wall", "instructions"])
def test_boots_missing_on_one_side_are_not_paired(clock: Clock) -> None:
    base = Boots({0: [10.0], 1: [20.0], 2: [30.0], 3: [1000.0]})
    changed = Boots({0: [5.0], 1: [10.0], 2: [15.0]})
    found = estimate(base, changed, clock, RULES, Resampler(1))
    assert found.ratio == 0.5
    assert found.ci is not None
    assert found.ci[1] - found.ci[0] < 1e-9


def test_the_summary_is_of_boots_and_of_samples() -> None:
    found = summary(boots([1, 2, 9], [4, 4], [5]))
    assert (found.median, found.n, found.boots) == (4, 6, 3)
    assert found.mean == pytest.approx(25 / 6)


def test_holm_multiplies_the_smallest_most_and_keeps_the_order() -> None:
    assert holm([0.01, None, 0.04, 0.03]) == pytest.approx([0.03, None, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_a_single_difference_among_many_comparisons_is_inconclusive() -> None:
    found = Estimate(0.9, (0.82, 0.99), 0.03, 0.1)
    assert judge(found, SupportingResults(), 0.03, "lower", RULES)[0] == "better"
    assert judge(found, SupportingResults(), 0.9, "lower", RULES)[0] == "inconclusive"


def _with(rng: np.random.Generator, mean: float, sd: float) -> Boots:
    """Three rounds with exactly this mean and standard deviation."""
    raw = rng.normal(0, 1, 3)
    raw = (raw - raw.mean()) / raw.std(ddof=1)
    return Boots({n: [max(0.5, mean + sd * float(v))] for n, v in enumerate(raw)})


def test_a_posted_change_of_13_percent_is_inconclusive() -> None:
    """One thread of the throttle posting, 15.00 (5.29) against 17.00 (1.00) over three rounds."""
    assert (data_dir("postings") / "throttle.toml").is_file()
    posted = load_posting("throttle")
    assert posted is not None
    base, changed = posted.result["wakeup_p99_base"][0], posted.result["wakeup_p99_changed"][0]
    assert -13.4 < 100 * (1 - changed[0] / base[0]) < -13.3
    # The only whole microseconds with these means and deviations.
    assert verdict(boots([9], [17], [19]), boots([16], [17], [18])) == "inconclusive"
    rng = np.random.default_rng(3)
    verdicts = [verdict(_with(rng, *base), _with(rng, *changed)) for _ in range(200)]
    assert verdicts.count("inconclusive") >= 190


def test_an_a_a_comparison_is_rarely_called_different() -> None:
    """300 noisy reports of one comparison: at most 5% by design, 7.5% at two standard errors."""
    rng = np.random.default_rng(5)
    verdicts = [verdict(noisy(rng, 1000, 0.1, 6), noisy(rng, 1000, 0.1, 6)) for _ in range(300)]
    assert verdicts.count("better") + verdicts.count("worse") <= 0.075 * 300


def test_the_smallest_detectable_change_is_found_with_80_percent_power() -> None:
    rng = np.random.default_rng(6)
    sizes = [
        estimate(noisy(rng, 1, 0.1), noisy(rng, 1, 0.1), "wall", RULES, Resampler(1)).mde
        for _ in range(50)
    ]
    typical = float(np.median([size for size in sizes if size is not None]))
    found = [verdict(noisy(rng, 1, 0.1), noisy(rng, 1 + typical, 0.1)) for _ in range(200)]
    assert 0.7 <= found.count("worse") / 200 <= 0.97
    assert not math.isnan(typical)


CHANGED = Estimate(0.9, (0.85, 0.95), 0.001, 0.1)


@pytest.mark.parametrize(
    ("twin", "layout", "expected"),
    [
        (None, None, ("better", "")),
        ((0.95, 1.02), (0.93, 1.01), ("better", "")),
        ((0.88, 1.02), (0.93, 1.01), ("inconclusive", "the A/A twin differs from base by as much")),
        (
            (0.95, 1.02),
            (0.80, 0.95),
            ("inconclusive", "the layout twin differs from base by as much"),
        ),
        # Widened to contain no change: 0.9 lies between 0.85 and 1.
        (None, (0.80, 0.85), ("inconclusive", "the layout twin differs from base by as much")),
        ((1.05, 1.30), (1.05, 1.30), ("better", "")),
    ],
)
def test_a_difference_within_either_twin_is_inconclusive(
    twin: tuple[float, float] | None,
    layout: tuple[float, float] | None,
    expected: tuple[Verdict, str],
) -> None:
    one, other = (Estimate(1.0, ci, 0.5, 0.1) if ci else None for ci in (twin, layout))
    supporting = SupportingResults(twin=one, layout=other)
    assert judge(CHANGED, supporting, 0.001, "lower", RULES) == expected


def test_the_rank_test_changes_no_verdict_and_is_reported_if_it_disagrees() -> None:
    def result(found: Estimate, rank: RankTest) -> tuple[Verdict, str]:
        assert found.p is not None
        return judge(found, SupportingResults(rank=rank), found.p, "lower", RULES)

    assert result(CHANGED, RankTest(0.002, least=0.002)) == ("better", "")
    assert result(CHANGED, RankTest(0.3, least=0.002)) == (
        "better",
        "the rank test does not find a change",
    )
    # Four boots cannot give less than 0.125: no disagreement.
    assert result(CHANGED, RankTest(0.125, least=0.125)) == ("better", "")
    unsure = Estimate(0.9, (0.75, 1.08), 0.2, 0.2)
    assert result(unsure, RankTest(0.2, least=0.002))[1] == "the interval includes 0%"
    judged = result(unsure, RankTest(0.01, least=0.002))
    assert judged == ("inconclusive", "the interval includes 0%; only the rank test finds a change")


@given(groups, groups)
def test_equivalence_has_the_same_p_from_either_side(
    one: list[list[float]], other: list[list[float]]
) -> None:
    base, changed = boots(*one), boots(*other)
    forth = estimate(base, changed, "wall", RULES, Resampler(1))
    back = estimate(changed, base, "wall", RULES, Resampler(1))
    assert (forth.p_same is None) == (back.p_same is None) == (forth.ci is None)
    if forth.p_same is not None and back.p_same is not None:
        assert forth.p_same == pytest.approx(back.p_same, abs=1e-9)


def test_equivalence_is_claimed_exactly_at_half_the_error() -> None:
    rng = np.random.default_rng(7)
    outcomes = set()
    for _ in range(60):
        base, changed = (
            noisy(rng, 1000, 0.01),
            noisy(rng, 1000 * float(rng.uniform(0.97, 1.03)), 0.01),
        )
        found = estimate(base, changed, "wall", RULES, Resampler(1))
        assert found.p_same is not None
        result = judge(found, SupportingResults(), found.p, "lower", RULES)[0]
        assert (result == "same") == (found.p_same <= 0.025)
        outcomes.add(result == "same")
    assert outcomes == {True, False}


def test_a_true_change_of_the_margin_is_rarely_called_the_same() -> None:
    """300 pairs at the edge of the margin: at most 2.5% by design, 5% allows for two standard
    errors."""
    rng = np.random.default_rng(8)
    result = [verdict(noisy(rng, 1000, 0.01), noisy(rng, 1020, 0.01)) for _ in range(300)]
    assert result.count("same") <= 0.05 * 300


@pytest.mark.parametrize("quantile", [0.9, 0.99])
def test_a_percentile_is_compared_as_the_median_is(quantile: float) -> None:
    """Tails twice as long at the same median: the percentile differs, the median does not."""
    rng = np.random.default_rng(9)

    def latencies(tail: float) -> Boots:
        return Boots({n: (1000 + tail * rng.exponential(100, 200)).tolist() for n in range(8)})

    base, changed = latencies(1), latencies(2)
    found = estimate(base, changed, "wall", RULES, Resampler(1), quantile=quantile)
    assert found.ratio == changed.quantile(quantile) / base.quantile(quantile)
    expected = (1000 - 200 * math.log(1 - quantile)) / (1000 - 100 * math.log(1 - quantile))
    assert found.ci is not None
    assert found.ci[0] < expected < found.ci[1]
    assert judge(found, SupportingResults(), found.p, "lower", RULES)[0] == "worse"
    assert summary(base, quantile).compared == base.quantile(quantile)
    assert summary(base).compared == base.median
