"""Stopping rules: at which look and level a run stops, and that only the records decide it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.analysis.sequential import conclude, levels, looks, parse_until, stop_here
from kteardown.errors import InputError
from kteardown.model.clock import Clock
from kteardown.model.result import Result
from unit.simulation import Noise
from unit.validation import HEADLINE, reports
from unit.worlds import experiment

VERDICT = None
QUIET = Noise(block=0.05, boot=0.002, sample=0.002)
LOUD = Noise(block=0.05, boot=0.1, sample=0.02)
At = Callable[[int, float], Result]


def run(noise: Noise, ratio: float, most: int = 20, clock: Clock = "wall") -> At:
    return reports(noise, ratio, experiment(most, clock=clock), seed=1)


@pytest.mark.parametrize(
    ("text", "width"), [("verdict", None), ("ci=2%", 0.02), ("ci=0.5%", 0.005), ("ci=10%", 0.1)]
)
def test_a_rule_reads_as_it_was_written(text: str, width: float | None) -> None:
    assert parse_until(text) == width
    _, stopping = conclude(run(QUIET, 0.9), 4, 4, width, 0.95, HEADLINE)
    assert stopping is not None and stopping.rule == text


@pytest.mark.parametrize(
    "text", ["", "sure", "ci", "ci=2", "ci=0%", "ci=-1%", "ci=.%", "ci=1.2.3%", "verdict "]
)
def test_other_rules_are_refused_with_what_to_give(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_until(text)
    assert "ci=2%" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (1, (1,)),
        (3, (3,)),
        (4, (4,)),
        (5, (4, 5)),
        (10, (4, 6, 8, 10)),
        (12, (4, 6, 8, 12)),
        (20, (4, 6, 8, 11, 15, 20)),
    ],
)
def test_looks_grow_and_end_at_the_maximum(most: int, expected: tuple[int, ...]) -> None:
    assert looks(most) == expected


@given(st.integers(1, 500), st.floats(0.6, 0.999))
def test_the_looks_share_one_error(most: int, confidence: float) -> None:
    at = levels(looks(most), confidence)
    assert len(at) == len(looks(most))
    assert sum(1 - level for level in at) == pytest.approx(1 - confidence)
    assert all(confidence <= level + 1e-12 and level < 1 for level in at)


def test_a_large_effect_ends_the_run_at_the_first_look() -> None:
    result, stopping = conclude(run(QUIET, 0.6), 20, 20, VERDICT, 0.95, HEADLINE)
    assert stopping is not None
    assert (stopping.stopped_at, stopping.done, stopping.spent) == (4, True, False)
    assert stopping.reason == "1 of 1 headline metrics have a verdict"
    assert [(c.verdict, c.base.boots) for c in result.comparisons] == [("better", 4)]
    assert result.comparisons[0].confidence == stopping.confidence == levels(looks(20), 0.95)[0]
    assert stopping.alpha == pytest.approx(1 - stopping.confidence)


def test_noise_continues_to_the_last_look() -> None:
    result, stopping = conclude(run(LOUD, 1.0), 20, 20, VERDICT, 0.95, HEADLINE)
    assert stopping is not None
    assert (stopping.stopped_at, stopping.done) == (20, True)
    assert stopping.reason == "0 of 1 headline metrics have a verdict; no more blocks are planned"
    assert stopping.alpha == pytest.approx(0.05)
    assert result.comparisons[0].verdict == "inconclusive"


@pytest.mark.parametrize("ratio", [1.0, 0.9, 0.8])
def test_a_growing_run_stops_at_the_same_look_as_a_complete_one(ratio: float) -> None:
    analyse_at = run(LOUD, ratio)
    whole = conclude(analyse_at, 20, 20, VERDICT, 0.95, HEADLINE)
    for blocks in range(21):
        result, stopping = conclude(analyse_at, blocks, 20, VERDICT, 0.95, HEADLINE)
        assert stopping is not None
        if stopping.done:
            break
    assert (result, stopping) == whole


@pytest.mark.parametrize("blocks", [0, 3])
def test_before_the_first_look_nothing_is_decided(blocks: int) -> None:
    result, stopping = conclude(run(QUIET, 0.6), blocks, 20, VERDICT, 0.95, HEADLINE)
    assert stopping is not None
    assert (stopping.stopped_at, stopping.done, stopping.alpha) == (blocks, False, 0)
    assert len(result.comparisons) == (blocks > 0)


@pytest.mark.parametrize(("blocks", "stopped_at"), [(5, 4), (7, 6), (10, 8)])
def test_blocks_after_a_look_are_used_at_the_next_look(blocks: int, stopped_at: int) -> None:
    result, stopping = conclude(run(LOUD, 1.0), blocks, 20, VERDICT, 0.95, HEADLINE)
    assert stopping is not None
    assert (stopping.stopped_at, stopping.done) == (stopped_at, False)
    assert result.comparisons[0].base.boots == stopped_at


@pytest.mark.parametrize("blocks", [2, 4, 7, 11])
def test_the_last_block_within_the_budget_is_the_last_look(blocks: int) -> None:
    result, stopping = conclude(run(LOUD, 1.0), blocks, 20, VERDICT, 0.95, HEADLINE, spent=True)
    assert stopping is not None
    assert (stopping.stopped_at, stopping.done, stopping.spent) == (blocks, True, True)
    assert stopping.alpha == pytest.approx(0.05)
    assert stopping.reason.endswith("the budget is used up")
    assert result.comparisons[0].base.boots == blocks


def test_a_rule_that_holds_before_the_end_of_the_budget_is_the_reason() -> None:
    _, stopping = conclude(run(QUIET, 0.6), 9, 20, VERDICT, 0.95, HEADLINE, spent=True)
    assert stopping is not None
    assert (stopping.stopped_at, stopping.done, stopping.spent) == (4, True, False)


def test_a_width_must_hold_on_both_sides() -> None:
    rule = parse_until("ci=3%")
    result, stopping = conclude(run(Noise(boot=0.02), 0.9), 40, 40, rule, 0.95, HEADLINE)
    (comparison,) = result.comparisons
    assert stopping is not None
    assert "no more blocks" not in stopping.reason
    assert comparison.ci is not None
    assert comparison.ratio is not None
    assert comparison.ci[1] <= comparison.ratio * 1.03
    assert comparison.ci[0] >= comparison.ratio / 1.03
    assert not stop_here(result, parse_until("ci=0.01%"), HEADLINE)[0]


def test_exact_counts_are_decided_at_the_first_look() -> None:
    for rule in (VERDICT, parse_until("ci=0.1%")):
        _, stopping = conclude(run(Noise(), 0.7, 8, "instructions"), 8, 8, rule, 0.95, HEADLINE)
        assert stopping is not None
        assert (stopping.stopped_at, stopping.done) == (4, True)


def test_only_headline_metrics_keep_a_run_going_and_a_run_without_them_continues() -> None:
    result = run(QUIET, 0.6)(20, 0.95)
    assert stop_here(result, VERDICT, HEADLINE)[0]
    assert stop_here(result, VERDICT, {("other", "metric")}) == (False, "nothing to compare yet")
