"""The ratio of two slopes: exact, noisy, flat, and without pairs."""

from __future__ import annotations

import numpy as np
import pytest

from kteardown.analysis.estimate.verdict import Rules
from kteardown.analysis.growth.laws import estimate_slopes
from unit.simulation import Noise, analysed, freezer, simulate

SIZES = [0.0, 1000.0, 2000.0, 4000.0]
RULES = Rules(0.95, 0.02)


def rows(slope: float, noise: float = 0.0, boots: int = 5, seed: int = 1) -> dict[int, list[float]]:
    rng = np.random.default_rng(seed)
    return {
        n: [(1e4 + slope * size) * float(np.exp(rng.normal(0, noise))) for size in SIZES]
        for n in range(boots)
    }


def test_exact_slopes_have_an_exact_ratio() -> None:
    found = estimate_slopes(SIZES, rows(200), rows(50), RULES)
    assert found.ratio == pytest.approx(0.25)
    assert (found.exact, found.p, found.higher) == (True, 0.0, False)
    assert estimate_slopes(SIZES, rows(200), rows(200), RULES).identical


def test_a_slope_can_become_zero() -> None:
    found = estimate_slopes(SIZES, rows(200, 0.01), rows(0, 0.01, seed=2), RULES)
    assert found.ci is not None
    assert found.ci[0] < 0 < found.ci[1] < 0.1
    assert found.p is not None
    assert found.p < 1e-4


@pytest.mark.filterwarnings("error")
def test_costs_of_zero_have_a_ratio_of_zero() -> None:
    found = estimate_slopes(
        SIZES, rows(200, 0.01), {n: [0.0] * len(SIZES) for n in range(5)}, RULES
    )
    assert (found.ratio, found.ci, found.higher) == (0.0, (0.0, 0.0), False)


def test_without_growth_of_base_there_is_no_ratio() -> None:
    found = estimate_slopes(SIZES, rows(0, 0.05), rows(200, 0.05, seed=2), RULES)
    assert (found.ratio, found.p, found.reason) == (None, None, "base does not grow significantly")
    assert estimate_slopes(SIZES, rows(200, boots=1), rows(200), RULES).p is None


@pytest.mark.parametrize("true", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("boots", [3, 10])
def test_the_interval_covers_the_true_ratio_and_agrees_with_p(boots: int, true: float) -> None:
    runs, inside = 300, 0
    for seed in range(runs):
        base, changed = rows(200, 0.03, boots, seed), rows(200 * true, 0.03, boots, seed + runs)
        found = estimate_slopes(SIZES, base, changed, RULES)
        assert found.ci is not None
        assert found.p is not None
        inside += found.ci[0] <= true <= found.ci[1]
        assert (found.p < 0.05) == (not found.ci[0] <= 1 <= found.ci[1])
    assert inside / runs >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / runs)


def test_a_result_has_the_ratios_of_requested_variants() -> None:
    experiment = freezer(boots=3)
    result = analysed(experiment, simulate(experiment, noise=Noise(boot=0.002, sample=0.001)))
    laws = {(law.kernel, law.metric): law for law in result.laws}
    found = laws["freezer-skip-exited", "freeze_user_ns"]
    assert found.ratio == pytest.approx(0.38, rel=0.01)
    assert found.verdict == "better"
    assert found.ratio_ci is not None
    assert found.ratio_ci[0] < 0.38 < found.ratio_ci[1]
    # Base is not compared with itself, and other metrics have no verdict on their slopes.
    assert laws["base", "freeze_user_ns"].verdict is None
    assert laws["freezer-skip-exited", "thaw_ns"].verdict is None
