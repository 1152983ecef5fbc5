"""Bisection with noise: the probability of each commit, and what a clock can see."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kteardown.flows.bisection.search import (
    RISK,
    BlockMean,
    boots_needed,
    confidence_of_step,
    posterior,
)

ROOT = Path(__file__).parents[4]
sys.path.insert(0, str(ROOT / "bench"))
from bisect_simulation import COMMITS, bayes, five, history, ours  # noqa: E402

CHAIN = [f"c{number}" for number in range(8)]
WITHIN = {one: frozenset(CHAIN[: number + 1]) for number, one in enumerate(CHAIN)}


def test_the_errors_of_all_steps_add_up_to_the_risk() -> None:
    for commits, steps in ((2, 2), (8, 4), (128, 8), (100_000, 18)):
        assert steps * (1 - confidence_of_step(commits)) == pytest.approx(RISK)


def test_the_probability_of_each_commit_follows_from_all_blocks() -> None:
    assert posterior(CHAIN, WITHIN, {}, 0.1) == dict.fromkeys(CHAIN, pytest.approx(1 / 8))
    seen = {"c3": BlockMean(0.0, 0.01), "c5": BlockMean(0.1, 0.01)}
    found = posterior(CHAIN, WITHIN, seen, 0.1)
    assert sum(found.values()) == pytest.approx(1)
    assert found["c4"] == pytest.approx(0.5, abs=1e-6)
    assert found["c5"] == pytest.approx(0.5, abs=1e-6)
    vague = posterior(CHAIN, WITHIN, {"c3": BlockMean(0.05, 0.01)}, 0.1)
    assert vague["c3"] == pytest.approx(vague["c4"])


def test_a_commit_on_a_side_branch_is_judged_by_those_that_contain_it() -> None:
    within = {"merge": frozenset({"main", "side", "merge"}), "main": frozenset({"main"})}
    found = posterior(
        ["main", "side", "merge"],
        within,
        {"merge": BlockMean(0.1, 0.01), "main": BlockMean(0, 0.01)},
        0.1,
    )
    assert found["main"] < 1e-6
    assert found["side"] == pytest.approx(found["merge"])


def test_small_effects_need_many_boots() -> None:
    assert boots_needed(1.0, 1.0, 0.99) == 25
    assert boots_needed(0.1, 1.0, 0.99) == pytest.approx(
        100 * boots_needed(1.0, 1.0, 0.99), rel=0.05
    )
    assert boots_needed(9.0, 1.0, 0.99) == 4


def test_simulated_histories_find_their_commit() -> None:
    """The published figures are those of a thousand: ``python bench/bisect_simulation.py
    --all``."""
    right = {rule.__name__: 0 for rule in (ours, five, bayes)}
    for seed in range(30):
        for rule in (ours, five, bayes):
            culprit, draw = history(seed, 1.0)
            right[rule.__name__] += rule(draw)[0] == culprit
    assert right["ours"] >= 26
    assert right["five"] <= 20
    assert right["bayes"] >= 26
    assert COMMITS == 128
