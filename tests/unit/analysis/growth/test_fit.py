"""Growth laws fitted to costs with a known law."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.analysis.growth.fit import FARTHEST, Fit, fit, predict
from kteardown.model.laws import LawModel

N = tuple(range(0, 30001, 3000))


def fitted(
    cost: Callable[[float], float], n: tuple[int, ...] = N, *, sd: float = 0.005, seed: int = 1
) -> Fit:
    rng = np.random.default_rng(seed)
    rows = [[cost(x) * float(np.exp(rng.normal(0, sd))) for x in n] for _ in range(5)]
    found = fit(n, rows, 0.95)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("model", "cost"),
    [
        ("constant", lambda n: 5e4),
        ("linear", lambda n: 2e4 + 205 * n),
        ("nlogn", lambda n: 2e4 + 20 * n * np.log(max(n, 1))),
        ("quadratic", lambda n: 2e4 + 0.01 * n * n),
        ("power", lambda n: 2e4 + 3 * n**1.5),
    ],
)
def test_the_law_is_recognised(model: LawModel, cost: Callable[[float], float]) -> None:
    assert fitted(cost).model == model


def test_the_cost_of_one_more_and_its_interval() -> None:
    found = fitted(lambda n: 2e4 + 205 * n)
    assert found.per_unit == pytest.approx(205, rel=0.01)
    assert found.per_unit_ci[0] <= 205 <= found.per_unit_ci[1]
    assert found.r2 is not None
    assert found.r2 > 0.999


@pytest.mark.parametrize("power", [0.5, 1.0, 1.5, 2.0])
def test_the_exponent_of_the_part_that_grows(power: float) -> None:
    found = fitted(lambda n: 2e4 + 7 * n**power)
    assert found.exponent is not None
    assert found.exponent_ci is not None
    assert found.exponent == pytest.approx(power, abs=0.06)
    assert found.exponent_ci[0] <= power <= found.exponent_ci[1]


def test_the_interval_of_the_slope_covers() -> None:
    covered = 0
    for seed in range(200):
        found = fitted(lambda n: 2e4 + 205 * n, sd=0.05, seed=seed)
        covered += found.per_unit_ci[0] <= 205 <= found.per_unit_ci[1]
    assert covered >= 0.93 * 200


def test_exact_counts_give_the_exact_cost() -> None:
    found = fit(N, [[24000 + 205 * n for n in N]], 0.95)
    assert found is not None
    assert found.model == "linear"
    assert found.per_unit == pytest.approx(205)
    assert found.intercept == pytest.approx(24000)


def test_a_cost_that_does_not_grow_has_no_exponent() -> None:
    found = fitted(lambda n: 5e4)
    assert found.exponent is None
    assert found.per_unit_ci[0] <= 0 <= found.per_unit_ci[1]


def test_few_points_show_growth_but_not_its_shape() -> None:
    found = fitted(lambda n: 2e4 + 205 * n, (0, 3000, 9000, 15000))
    assert (found.model, found.exponent) == ("linear", None)


@pytest.mark.parametrize(
    ("points", "power"), [(3, 1.5), (3, 2.0), (4, 2.0), (4, 3.0), (5, 1.5), (5, 3.0)]
)
def test_a_cost_that_grows_is_not_constant_because_its_points_are_few(
    points: int, power: float
) -> None:
    """A straight line fits these so badly that its slope may be zero, or the criterion wants more
    points."""
    sizes = [250 * 2**i for i in range(points)]
    found = fit(sizes, [[27.6 * n**power for n in sizes]], 0.95)
    assert found is not None
    assert (found.model, found.exponent, found.r2) == ("unknown", None, None)
    assert found.per_unit_ci[0] < found.per_unit < found.per_unit_ci[1]


def different(largest: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(1, largest), min_size=3, max_size=6, unique=True).map(sorted)


@given(
    st.one_of(
        different(10**6),
        st.builds(lambda n, more: [n + m for m in more], st.just(10**6), different(99)),
    ),
    st.floats(1, 4),
    st.floats(1e-3, 1e6),
)
def test_no_exact_power_law_is_constant(sizes: list[int], power: float, cost_of_one: float) -> None:
    """However few the points are, and however close together."""
    found = fit(sizes, [[cost_of_one * n**power for n in sizes]], 0.95)
    assert found is not None
    assert found.model != "constant"


@given(
    st.lists(st.integers(0, 10**6), min_size=3, max_size=8, unique=True).map(sorted),
    st.floats(1e-3, 1e12),
)
def test_equal_costs_are_constant_even_with_few_points(sizes: list[int], cost: float) -> None:
    found = fit(sizes, [[cost] * len(sizes)], 0.95)
    assert found is not None
    assert found.model == "constant"


@pytest.mark.parametrize("points", [6, 8])
def test_a_noisy_constant_cost_is_constant_in_most_cases(points: int) -> None:
    sizes = tuple(1000 * 2**i for i in range(points))
    models = [fitted(lambda n: 5e4, sizes, sd=0.01, seed=seed).model for seed in range(100)]
    assert models.count("constant") >= 90


@pytest.mark.parametrize("points", [3, 4, 5, 6])
def test_noise_hides_growth_but_does_not_show_that_there_is_none(points: int) -> None:
    """The cost grows by a fifth, which noise of 5% can hide: in at most 2% of cases it is called
    constant."""
    sizes = tuple(1000 * 2**i for i in range(points))
    models = [
        fitted(lambda n: 5e4 * (1 + 0.2 * n / sizes[-1]), sizes, sd=0.05, seed=seed).model
        for seed in range(100)
    ]
    assert models.count("unknown") > 0
    assert models.count("constant") <= 2


def test_two_points_or_zero_costs_have_no_law() -> None:
    assert fit((0, 1000), [[1, 2]], 0.95) is None
    assert fit(N, [[0.0] * len(N)], 0.95) is None


@given(
    st.lists(
        st.lists(st.floats(0, 1e12).map(lambda v: round(v, 3)), min_size=8, max_size=8),
        min_size=1,
        max_size=3,
    )
)
def test_any_costs_give_a_finite_law_or_none(rows: list[list[float]]) -> None:
    found = fit((0, 1, 2, 4, 8, 16, 32, 64), rows, 0.95)
    if found is not None:
        numbers = [found.per_unit, *found.per_unit_ci, found.intercept, *(found.exponent_ci or ())]
        assert np.all(np.isfinite(numbers))


def test_a_linear_law_is_extrapolated() -> None:
    prediction = predict(fitted(lambda n: 2e4 + 205 * n), 60_000, 0.95)
    assert prediction.value == pytest.approx(2e4 + 205 * 60_000, rel=0.02)
    assert prediction.low is not None
    assert prediction.high is not None
    assert prediction.low < 2e4 + 205 * 60_000 < prediction.high
    assert prediction.refused == ""


@pytest.mark.parametrize(
    ("cost", "n", "rows", "at", "reason"),
    [
        (
            lambda n: 2e4 + 205 * n,
            (0, 1000, 2000, 3000),
            5,
            4000,
            "4 points are too few for a growth law",
        ),
        (lambda n: 2e4 + 205 * n, N, 1, 60_000, "one boot does not show how boots differ"),
        (
            lambda n: 2e4 + 205 * n,
            N,
            5,
            FARTHEST * 30_000 + 1,
            "more than 4 times the largest measured value, 30,000",
        ),
        (lambda n: 2e4 + 6e6 * (1 - np.exp(-n / 6e4)), N, 5, 120_000, "models disagree"),
    ],
)
def test_a_prediction_that_the_data_does_not_support_is_refused(
    cost: Callable[[float], float], n: tuple[int, ...], rows: int, at: float, reason: str
) -> None:
    rng = np.random.default_rng(1)
    measured = [[cost(x) * float(np.exp(rng.normal(0, 0.01))) for x in n] for _ in range(rows)]
    found = fit(n, measured, 0.95)
    assert found is not None
    prediction = predict(found, at, 0.95)
    assert reason in prediction.refused
    assert (prediction.value, prediction.low, prediction.high) == (None, None, None)


def test_an_unknown_law_is_not_extrapolated() -> None:
    found = fitted(lambda n: 5e4, (1000, 2000, 4000, 8000, 16_000, 32_000), sd=0.3)
    assert found.model == "unknown"
    assert predict(found, 64_000, 0.95).refused == "the growth law is unknown"


def test_the_interval_allows_for_a_curvature_too_small_to_be_detected() -> None:
    """Three percent of the cost is quadratic: the law is linear, and the rest shows beyond the
    data."""

    def bent(n: float) -> float:
        return 2e4 + 199 * n + 0.03 * 205 * n * n / 30_000

    found = fitted(bent, sd=0.03, seed=2)
    assert found.model == "linear"
    prediction = predict(found, 90_000, 0.95)
    assert prediction.low is not None
    assert prediction.high is not None
    assert prediction.low < bent(90_000) < prediction.high


def test_exact_counts_are_predicted_closely_but_not_exactly() -> None:
    found = fit(N, [[24000 + 205 * n for n in N]] * 3, 0.95)
    assert found is not None
    prediction = predict(found, 60_000, 0.95)
    assert prediction.value == pytest.approx(24000 + 205 * 60_000)
    assert prediction.low is not None
    assert prediction.high is not None
    assert 1.001 < prediction.high / prediction.low < 1.05
