"""The progress of a run, from its records as they are written."""

from __future__ import annotations

import json
import statistics
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kteardown.model.clock import Clock
from kteardown.run.live_progress import Follower, Place, Progress
from kteardown.rundir.counting import trials
from kteardown.rundir.directory import RunDir
from unit.run import killable


def _lines(tmp_path: Path, clock: Clock = "instructions") -> tuple[RunDir, list[bytes]]:
    """Return a run without records, and the lines of a finished one."""
    whole = killable.make_run(tmp_path / "whole", clock)
    killable.measure(whole.path)
    lines = sorted(whole.records_file.read_bytes().splitlines(keepends=True), key=_boot)
    growing = RunDir(tmp_path / "growing")
    growing.path.mkdir()
    growing.plan_file.write_bytes(whole.plan_file.read_bytes())
    return growing, lines


def _boot(line: bytes) -> int:
    return int(line.split(b'"boot":')[1].split(b",")[0])


def _of_one_look(run: RunDir) -> Progress:
    return Follower(run).look()


def test_a_run_without_records_has_no_progress(tmp_path: Path) -> None:
    run, _ = _lines(tmp_path)
    progress = _of_one_look(run)
    assert (progress.boots, progress.trials, progress.share, progress.left_s) == (0, 0, 0.0, None)
    assert (progress.boots_planned, progress.trials_planned) == (6, 18)
    assert progress.working == () and not progress.medians


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_reading_in_several_steps_gives_the_same_progress(step: int, tmp_path: Path) -> None:
    run, lines = _lines(tmp_path)
    text = b"".join(lines)
    follower = Follower(run)
    with run.records_file.open("wb", buffering=0) as stream:
        # Steps end in the middle of lines.
        for start in range(0, len(text), 100 * step + 1):
            stream.write(text[start : start + 100 * step + 1])
            follower.look()
    progress = follower.look()
    assert progress == _of_one_look(run)
    assert (progress.boots, progress.trials, progress.share) == (6, 18, 1.0)
    assert dict(progress.outcomes) == {"ok": 6}


def test_a_running_guest_has_its_trial(tmp_path: Path) -> None:
    run, lines = _lines(tmp_path)
    until = next(n for n, line in enumerate(lines) if b'"trial_start"' in line)
    run.records_file.write_bytes(b"".join(lines[: until + 1]))
    (guest,) = _of_one_look(run).working
    assert (guest.start.boot, guest.start.kernel) == (0, "base")
    assert guest.trial.startswith("zombies zombies=")


def test_the_medians_so_far_are_over_boots(tmp_path: Path) -> None:
    run, lines = _lines(tmp_path)
    run.records_file.write_bytes(b"".join(lines))
    medians = _of_one_look(run).medians
    kernels = medians["zombies", "freeze_user_ns", (("zombies", 0), ("make", "shared"), ("until", "freezer"))]
    assert list(kernels) == ["base", killable.VARIANT]
    assert len(medians) == 3 * len(killable.METRICS)


def test_the_time_left_is_estimated_from_this_session(tmp_path: Path) -> None:
    run, lines = _lines(tmp_path)
    ends = [n for n, line in enumerate(lines) if b'"boot_end"' in line]
    run.records_file.write_bytes(b"".join(lines[: ends[1] + 1]))
    began = datetime.fromisoformat(lines[0].split(b'"started_at":"')[1][:29].decode())
    left = Follower(run).look(began.astimezone(UTC) + timedelta(seconds=60)).left_s
    assert left == pytest.approx(120, abs=1)


def _of_session(number: int, line: bytes) -> bytes:
    return line.replace(b'"session":0', b'"session":%d' % number).replace(
        b'"attempt":0', b'"attempt":%d' % number
    )


@pytest.mark.parametrize("end", ["cut", "infrastructure-error"])
@pytest.mark.parametrize(("clock", "kept"), [("instructions", 0), ("wall", 2)])
def test_trials_that_are_run_again_count_for_the_session_that_runs_them(
    clock: Clock, kept: int, end: str, tmp_path: Path
) -> None:
    run, lines = _lines(tmp_path, clock)
    trials = [n for n, line in enumerate(lines) if b'"trial_end"' in line]
    first = lines[: trials[1] + 1]
    if end == "infrastructure-error":
        kept = 0
        ended = next(line for line in lines if b'"boot_end"' in line)
        first.append(ended.replace(b'"outcome":"ok"', b'"outcome":"infrastructure-error"'))
    starts = [n for n, line in enumerate(lines) if b'"boot_start"' in line]
    # The second session begins with another boot, as with another --jobs, and completes one trial of it.
    until = next(n for n in trials if n > starts[1])
    second = [_of_session(1, line) for line in lines[starts[1] : until + 1]]
    run.records_file.write_bytes(b"".join([*first, *second]))
    began = datetime.fromisoformat(second[0].split(b'"started_at":"')[1][:29].decode())
    progress = Follower(run).look(began + timedelta(seconds=60))
    assert progress.trials == kept + 1
    assert progress.left_s == pytest.approx(60 * (progress.trials_planned - kept - 1), abs=1)
    follower = Follower(run)
    run.records_file.write_bytes(b"".join(first))
    follower.look()
    run.records_file.write_bytes(b"".join([*first, *second]))
    assert follower.look(began + timedelta(seconds=60)) == progress


@pytest.mark.parametrize(("clock", "kept"), [("instructions", 0), ("wall", 1)])
def test_a_cut_attempt_counts_as_in_the_analysis(clock: Clock, kept: int, tmp_path: Path) -> None:
    run, lines = _lines(tmp_path, clock)
    first_end = next(n for n, line in enumerate(lines) if b'"trial_end"' in line)
    again = lines[0].replace(b'"attempt":0', b'"attempt":1')
    run.records_file.write_bytes(b"".join([*lines[: first_end + 1], again]))
    assert _of_one_look(run).trials == kept


def test_a_failed_trial_is_done_and_has_no_figure(tmp_path: Path) -> None:
    run, lines = _lines(tmp_path)
    until = next(n for n, line in enumerate(lines) if b'"trial_end"' in line)
    lines[until] = lines[until].replace(b'"status":"ok"', b'"status":"void"')
    run.records_file.write_bytes(b"".join(lines[: until + 1]))
    progress = _of_one_look(run)
    assert progress.trials == 1 and not progress.medians


def test_records_that_were_replaced_are_read_again(tmp_path: Path) -> None:
    run, lines = _lines(tmp_path)
    run.records_file.write_bytes(b"".join(lines))
    follower = Follower(run)
    assert follower.look().boots == 6
    run.records_file.write_bytes(lines[0])
    assert (follower.look().boots, len(follower.look().working)) == (0, 1)


def _changed(line: bytes, **fields: Any) -> bytes:
    return json.dumps({**json.loads(line), **fields}, separators=(",", ":")).encode() + b"\n"


def _repeated(lines: list[bytes], outcome: str, session: int) -> tuple[list[bytes], list[bytes]]:
    """Return a boot that ended ok with its trial 1 disturbed, and the attempt that repeats the trial."""
    ends = [n for n, line in enumerate(lines) if b'"trial_end"' in line][:3]
    first = lines[: next(n for n, line in enumerate(lines) if b'"boot_end"' in line) + 1]
    again = [first[0], *first[ends[0] + 1 : ends[1] + 1], _changed(first[-1], outcome=outcome)]
    first[ends[1]] = _changed(first[ends[1]], disturbed="other work of the host")
    again[0] = _changed(again[0], session=session)
    return first, [_changed(line, attempt=1) for line in again]


def _counted_medians(run: RunDir) -> dict[Place, dict[str, float]]:
    """The medians of a single boot, by the rule of the analysis."""
    (boot,) = run.boots()
    return {
        (trial.workload, metric, tuple(trial.params.items())): {boot.start.kernel: statistics.median(values)}
        for trial in trials(boot.records)
        if trial.usable
        for metric, values in trial.samples.items()
    }


@pytest.mark.parametrize("session", [0, 1])
@pytest.mark.parametrize("outcome", ["ok", "hang", "infrastructure-error"])
def test_a_boot_with_repeated_trials_counts_as_in_the_analysis(
    outcome: str, session: int, tmp_path: Path
) -> None:
    run, lines = _lines(tmp_path, "wall")
    follower = Follower(run)
    first, again = _repeated(lines, outcome, session)
    with run.records_file.open("wb", buffering=0) as stream:
        for line in (*first, *again):
            stream.write(line)
            progress = follower.look()
            fresh = Follower(run).look()
            assert (progress.trials, progress.medians) == (fresh.trials, fresh.medians)
    (boot,) = run.boots()
    assert dict(progress.outcomes) == {boot.end.outcome: 1}
    assert progress.trials == 3
    assert progress.medians == _counted_medians(run)


def test_a_guest_of_an_earlier_session_does_not_run(tmp_path: Path) -> None:
    run, lines = _lines(tmp_path, "wall")
    starts = [n for n, line in enumerate(lines) if b'"boot_start"' in line]
    cut = lines[: next(n for n, line in enumerate(lines) if b'"trial_end"' in line) + 1]
    run.records_file.write_bytes(b"".join([*cut, _changed(lines[starts[1]], session=1)]))
    progress = _of_one_look(run)
    assert [guest.start.boot for guest in progress.working] == [1]
    assert progress.trials == 1
