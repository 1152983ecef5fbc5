"""The notes on trials that other work of the host disturbed, and that voiding does not bias a
ratio."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from kteardown.analysis.timing import disturbance_notes
from kteardown.model.timing import LostShares, Timing


def shares(kernel: str, disturbed: int, trials: int, void: int = 0) -> LostShares:
    return LostShares(
        kernel=kernel,
        trials=trials,
        median=0.01,
        most=0.5,
        disturbed=disturbed,
        void=void,
        kept=trials - disturbed,
    )


def timing(*lost: LostShares, limit: float | None = 0.05) -> Timing:
    return Timing(made=("kvm",), lost=lost, lost_limit=limit)


def test_few_disturbed_trials_have_no_note() -> None:
    assert disturbance_notes(None) == []
    assert disturbance_notes(timing(shares("base", 1, 40), shares("mine", 2, 40, 1))) == []
    assert disturbance_notes(timing(shares("base", 40, 40, 40), limit=None)) == []


def test_too_many_void_trials_have_a_note_that_says_what_to_do() -> None:
    (note,) = disturbance_notes(timing(shares("base", 30, 60, 10), shares("mine", 30, 60, 10)))
    assert note.startswith("20 of 80 trials are void")
    assert "kteardown doctor" in note


def test_a_kernel_that_is_disturbed_more_often_has_a_note() -> None:
    (note,) = disturbance_notes(
        timing(shares("base", 2, 40), shares("base-twin", 1, 40), shares("mine", 14, 50))
    )
    assert note.startswith("mine: 14 of 50 trials were disturbed, of base 3 of 80 (p = ")


def geometric_mean_of_ratios(limit: float, worlds: int, rng: random.Random) -> float:
    """Return the ratio of a variant that is 20% faster, over blocks in which the host takes time.

    A trial that loses more than ``limit`` is repeated twice; a block counts if both sides are left.
    """
    logs = []
    for _ in range(worlds):
        sides = []
        for true in (1.0, 0.8):
            for _ in range(3):
                lost = rng.betavariate(0.2, 2)
                if lost <= limit:
                    sides.append(true / (1 - lost) * rng.lognormvariate(0, 0.05))
                    break
        if len(sides) == 2:
            logs.append(math.log(sides[1] / sides[0]))
    return math.exp(statistics.fmean(logs))


@pytest.mark.parametrize("limit", [0.02, 0.05, 0.2])
def test_voiding_by_the_same_share_does_not_move_the_ratio(limit: float) -> None:
    assert geometric_mean_of_ratios(limit, 20_000, random.Random(1)) == pytest.approx(
        0.8, rel=0.005
    )
