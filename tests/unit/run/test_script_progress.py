"""What is shown of a script that is rehearsed, while it runs."""

from __future__ import annotations

from kteardown.model.record import Alive, TrialEnd, TrialStart
from kteardown.run.script_progress import ScriptProgress

START = TrialStart(trial=0, workload="slow", params={"N": 1000})


def alive(seconds: int, last_line: str) -> Alive:
    return Alive(trial=0, detail=f"{seconds} s of 600 s; its last line: {last_line}")


def started(guest_s: float = 3.0) -> ScriptProgress:
    """A script that starts when the guest has run for ``guest_s``."""
    progress = ScriptProgress(600)
    progress.see_clock(guest_s)
    progress.see_record(START)
    progress.see_clock(guest_s)
    return progress


def test_the_seconds_are_those_of_the_guest_since_the_script_started() -> None:
    progress = started()
    assert "run for 0 s of 600 s" in progress.words()
    progress.see_clock(5.2)
    assert "run for 2 s of 600 s" in progress.words()


def test_a_report_of_the_agent_corrects_the_seconds_and_has_the_last_line() -> None:
    progress = started()
    # A sleep takes no time of the host, so the clock may be read for the first time after it.
    progress.see_record(alive(20, "made; 1000 files"))
    progress.see_clock(24.5)
    time, output = progress.words().split("\n")
    assert "run for 20 s" in time and output == "its last line after 20 s: made; 1000 files"
    progress.see_clock(27.6)
    assert "run for 23 s" in progress.words()


def test_a_script_that_has_printed_nothing_is_said_to() -> None:
    progress = started()
    progress.see_record(alive(5, ""))
    assert "after 5 s it had printed nothing" in progress.words()


def test_a_kernel_that_lets_the_agent_report_nothing_may_be_stuck() -> None:
    progress = started()
    progress.see_record(alive(5, "waiting"))
    progress.see_clock(8.0)
    assert "stuck" not in progress.words()
    progress.see_clock(40.0)
    assert "nothing for 32 s of the guest's clock" in progress.words()


def test_before_and_after_the_script_its_guest_is_shown() -> None:
    progress = ScriptProgress(600)
    progress.see_clock(1.0)
    assert progress.words() == "the guest starts, at 1 s of its clock"
    progress.see_record(START)
    progress.see_record(TrialEnd(trial=0, status="ok", detail=""))
    assert "script" not in progress.words()


def test_a_host_that_does_not_tell_the_clock_shows_the_seconds_of_the_reports() -> None:
    progress = ScriptProgress(600)
    progress.see_record(START)
    progress.see_record(alive(10, "x"))
    assert "run for 10 s" in progress.words()
