"""What happened while a machine was watched, in words."""

from __future__ import annotations

from kteardown_observe.counts import CountOwner, EventCount, StackWait, Throttling, WatchedRates
from kteardown_observe.rate_words import rate_lines

BASH = CountOwner(name="bash", number=240)


def test_rates_are_for_one_second() -> None:
    rates = WatchedRates(seconds=30, events={"exits": EventCount(number=300, largest=(BASH,))})
    assert any(
        "300, 10 a second (bash 240)" in line.replace(".00", "") for line in rate_lines(rates)
    )


def test_throttled_periods_are_a_share() -> None:
    rates = WatchedRates(seconds=30, events={}, throttled=Throttling(periods=200, number=50))
    assert any("50 of 200, 25" in line for line in rate_lines(rates))


def test_a_wait_has_its_functions_innermost_first() -> None:
    wait = StackWait(stack=("schedule", "synchronize_rcu"), seconds=3.2, samples=32, names=(BASH,))
    lines = list(rate_lines(WatchedRates(seconds=30, events={}, waits=(wait,), samples=300)))
    assert any("schedule < synchronize_rcu" in line for line in lines)


def test_without_waits_that_is_said() -> None:
    lines = list(rate_lines(WatchedRates(seconds=30, events={}, samples=300)))
    assert any("no task waited" in line for line in lines)


def test_without_seconds_there_is_no_rate() -> None:
    assert list(rate_lines(WatchedRates(seconds=0, events={"exits": EventCount(number=3)})))
