"""Sentences about limits of the kernel."""

from __future__ import annotations

from kteardown_observe.limit_words import limit_lines, limit_text, limits_text, percent
from unit.observe.documents import counted
from unit.observe.test_limits import judged, use


def test_a_limit_that_is_not_reached_is_never_at_its_end() -> None:
    (used,) = judged(use("pid_max", 4_194_303, 4_194_304)).close
    assert percent(used) == "99%"
    (used,) = judged(use("pid_max", 4_194_304, 4_194_304)).close
    assert percent(used) == "100%"


def test_the_owner_and_the_zombies_are_named_on_one_line() -> None:
    (used,) = judged(use("pids_max", 90, 100, owner="/job\n\x1b[2J")).close
    assert "\n" not in limit_text(used) and "\x1b" not in limit_text(used)
    zombies = {"zombies": counted(80, complete=False)}
    (used,) = judged(use("pid_max", 90, 100), counts=zombies).close
    assert "at least 80 of them are zombies" in limit_text(used)


def test_what_fails_is_said_of_those_that_are_close() -> None:
    limits = judged(use("maxkeys", 200, 200), use("pid_max", 1, 100))
    ((_, fails),) = limit_lines(limits)
    assert "EDQUOT" in fails
    assert "1 is close" in limits_text(limits)
