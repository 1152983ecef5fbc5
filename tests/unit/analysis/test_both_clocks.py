"""How the two clocks' comparisons of one point are read together."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from kteardown.analysis.both_clocks import both_clocks, reading_of
from kteardown.model.both_clocks import ClockReading, OneClock, Reading
from kteardown.model.judged import Verdict
from kteardown.model.kernel_facts import KernelFacts
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result
from unit.simulation import Cost, Noise, analysed, freezer, simulate

ZOMBIES = (0, 3000, 15000)
QUIET = Noise(boot=0.002, sample=0.001)
NOISY = Noise(block=0.05, boot=0.02, sample=0.02)


def side(
    verdict: Verdict,
    ratio: float | None = 1.0,
    half: float = 0.01,
    *,
    mde: float | None = 0.02,
    reason: str = "",
) -> OneClock:
    """Return one clock's side with an interval of ``half`` to either side on the log scale."""
    ci = None if ratio is None else (ratio * math.exp(-half), ratio * math.exp(half))
    return OneClock(ratio=ratio, ci=ci, verdict=verdict, mde=mde, exact=False, reason=reason)


BETTER = side("better", 0.7)
WORSE = side("worse", 1.3)
SAME = side("same", reason="within 2%")
FLAT = side("inconclusive", 0.99, 0.05, mde=0.06, reason="the interval includes 0%")
"""No change, and a change of 30% would have been found."""
WIDE = side("inconclusive", 0.95, 0.6, mde=0.8, reason="the interval includes 0%")
"""No change found, nor could a change of 30% have been."""
SMALLER = side("inconclusive", 0.87, 0.15, mde=0.2, reason="the interval includes 0%")
"""Perhaps a change of half the size."""
ALMOST = side("inconclusive", 0.7, 0.1, mde=0.1, reason="not significant after Holm's correction")
"""A change of 30% that is not certain."""


@pytest.mark.parametrize(
    ("exact", "wall", "reading"),
    [
        (BETTER, BETTER, "agree"),
        (WORSE, WORSE, "agree"),
        (SAME, SAME, "agree"),
        (BETTER, WORSE, "disagree"),
        (WORSE, BETTER, "disagree"),
        (BETTER, SAME, "exact only"),
        (WORSE, SAME, "exact only"),
        (BETTER, FLAT, "exact only"),
        (SAME, BETTER, "wall only"),
        (SAME, WORSE, "wall only"),
        (FLAT, WORSE, "wall only"),
        (BETTER, WIDE, "undecided"),
        (WIDE, BETTER, "undecided"),
        (BETTER, ALMOST, "undecided"),
        (BETTER, SMALLER, "undecided"),
        (SAME, WIDE, "undecided"),
        (FLAT, SAME, "undecided"),
        (WIDE, WIDE, "undecided"),
        (BETTER, None, "undecided"),
        (None, WORSE, "undecided"),
    ],
)
def test_two_sides_have_one_reading(
    exact: OneClock | None, wall: OneClock | None, reading: Reading
) -> None:
    assert reading_of(exact, wall)[0] == reading


@pytest.mark.parametrize(
    ("exact", "wall", "reason"),
    [
        (BETTER, BETTER, ""),
        (BETTER, WORSE, "better on the instruction clock and worse on the wall clock"),
        (BETTER, SAME, "the wall clock says the same (within 2%)"),
        (BETTER, FLAT, "the wall clock finds no change, and excludes half of this one"),
        (SAME, WORSE, "the instruction clock says the same (within 2%)"),
        (
            BETTER,
            WIDE,
            "the wall clock is inconclusive: the interval includes 0%; "
            "the change is smaller than it can detect",
        ),
        (BETTER, ALMOST, "the wall clock is inconclusive: not significant after Holm's correction"),
        (
            WIDE,
            FLAT,
            "the instruction clock is inconclusive: the interval includes 0%; "
            "the wall clock is inconclusive: the interval includes 0%",
        ),
        (BETTER, None, "the wall clock has no such comparison"),
        (None, WORSE, "the instruction clock has no such comparison"),
    ],
)
def test_a_reading_says_why(exact: OneClock | None, wall: OneClock | None, reason: str) -> None:
    assert reading_of(exact, wall)[1] == reason


def test_an_inconclusive_side_without_an_interval_shows_no_lack_of_change() -> None:
    by_rank = side("inconclusive", None, mde=None, reason="rank test without an interval")
    assert reading_of(BETTER, by_rank)[0] == "undecided"
    assert reading_of(side("better", None), FLAT)[0] == "undecided"
    assert reading_of(side("better", 0.0), FLAT)[0] == "undecided"


def test_counts_agree_whatever_the_clock_and_still_may_disagree() -> None:
    assert reading_of(SAME, SAME, counted=True) == (
        "agree",
        "a count, which does not depend on the clock",
    )
    assert reading_of(BETTER, WORSE, counted=True)[0] == "disagree"


def costs(*, variant: float, rate: float = 1.0, rest: float = 0.0) -> Cost:
    """Return costs of 100 instructions for a zombie, which take ``rate`` ns each and ``rest`` ns in
    all."""

    def cost(kernel: str, metric: str, params: Mapping[str, ParamValue]) -> float:
        zombies = int(params["zombies"])
        factor = variant if kernel.startswith("freezer-skip") else 1.0
        return (100_000 + 100 * zombies) * factor * rate + rest

    return cost


def results(exact: Cost, wall: Cost, noise: Noise = QUIET) -> tuple[Result, Result]:
    designs = freezer(zombies=ZOMBIES, boots=4), freezer("wall", zombies=ZOMBIES, boots=8)
    found = [
        analysed(design, simulate(design, cost, how))
        for design, cost, how in zip(designs, (exact, wall), (QUIET, noise), strict=True)
    ]
    return found[0], found[1]


def headline(readings: tuple[ClockReading, ...]) -> list[ClockReading]:
    return [r for r in readings if r.metric == "freeze_user_ns"]


@pytest.mark.parametrize(
    ("exact", "wall", "reading"),
    [
        (0.6, 0.6, "agree"),
        (0.6, 1.5, "disagree"),
        (0.6, 1.0, "exact only"),
        (1.0, 0.6, "wall only"),
    ],
)
def test_simulated_truths_are_read_as_they_are(exact: float, wall: float, reading: Reading) -> None:
    found = both_clocks(*results(costs(variant=exact), costs(variant=wall), NOISY))
    rows = headline(found.readings)
    assert [row.point["zombies"] for row in rows if row.variant == "freezer-skip-exited"] == list(
        ZOMBIES
    )
    assert {row.reading for row in rows} == {reading}
    assert all(row.wall is not None and row.wall.mde for row in rows)


def test_a_point_that_one_clock_lacks_is_undecided() -> None:
    exact, wall = results(costs(variant=0.6), costs(variant=0.6))
    kept = tuple(c for c in wall.comparisons if c.point["zombies"] != 3000)
    found = both_clocks(exact, wall.model_copy(update={"comparisons": kept}))
    missing = [r for r in headline(found.readings) if r.point["zombies"] == 3000]
    assert {(r.reading, r.reason, r.wall) for r in missing} == {
        ("undecided", "the wall clock has no such comparison", None)
    }
    assert len(found.readings) == len(exact.asked_for)


def test_a_rate_is_fitted_with_its_residual() -> None:
    found = both_clocks(*results(costs(variant=0.6), costs(variant=0.6, rate=2.5)))
    (rate,) = [rate for rate in found.rates if rate.metric == "freeze_user_ns"]
    assert rate.rate == pytest.approx(2.5, rel=0.01)
    assert rate.residual < 0.01
    assert rate.low <= rate.rate <= rate.high
    assert rate.medians == 3 * len(ZOMBIES)


def test_time_that_is_no_instructions_is_in_the_residual() -> None:
    found = both_clocks(*results(costs(variant=0.6), costs(variant=0.6, rate=2.5, rest=5e6)))
    (rate,) = [rate for rate in found.rates if rate.metric == "freeze_user_ns"]
    assert rate.residual > 0.5
    assert rate.high / rate.low > 5


def test_two_medians_give_no_rate() -> None:
    exact, wall = results(costs(variant=0.6), costs(variant=0.6))
    one = tuple(
        c
        for c in exact.comparisons
        if c.point["zombies"] == 0 and c.variant == "freezer-skip-exited"
    )
    assert both_clocks(exact.model_copy(update={"comparisons": one}), wall).rates == ()


def test_different_images_are_noted() -> None:
    exact, wall = results(costs(variant=0.6), costs(variant=0.6))
    assert both_clocks(exact, wall).notes == ()
    facts: dict[str, KernelFacts] = {**wall.kernels}
    facts["base"] = facts["base"].model_copy(update={"image_hash": "another"})
    found = both_clocks(exact, wall.model_copy(update={"kernels": facts}))
    assert found.notes == ("the clocks measured different images of base",)
