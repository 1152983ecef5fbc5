"""A kteardown that is killed at any moment loses at most the running trial, and can be resumed."""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.model.clock import Clock
from kteardown.model.record import Record, TrialEnd
from kteardown.rundir.counting import as_guest_wrote, attempts, by_trial, completed_trials
from kteardown.rundir.directory import RunDir
from unit.processes import forked
from unit.run import killable

Trials = dict[tuple[int, int], list[Record]]
"""The records of every completed trial, by boot and trial."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Return a folder, in memory if possible: a kill cannot undo a write, and syncing a disk is
    slow."""
    with tempfile.TemporaryDirectory(
        dir="/dev/shm" if Path("/dev/shm").is_dir() else tmp_path
    ) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def labs() -> ForkServerContext:
    return forked()


def unbroken(labs: ForkServerContext, run: RunDir) -> float:
    """Return the seconds that an unbroken process takes."""
    began = time.monotonic()
    lab = labs.Process(target=killable.measure, args=(run.path,))
    lab.start()
    lab.join()
    assert lab.exitcode == 0
    return time.monotonic() - began


def kill_until_done(
    labs: ForkServerContext, run: RunDir, moments: random.Random, span: float
) -> tuple[int, Trials]:
    """Measure a run with one process after another, each killed at a random moment unless it
    finishes.

    Return the number of kills and the completed trials that were seen after them.
    """
    kills = 0
    seen: Trials = {}
    while True:
        lab = labs.Process(target=killable.measure, args=(run.path,))
        lab.start()
        lab.join(moments.uniform(0, span))
        lab.kill()
        lab.join()
        if lab.exitcode == 0:
            return kills, seen
        assert lab.exitcode == -9
        kills += 1
        for file in run.path.glob("*.json"):
            json.loads(file.read_bytes())
        for attempt in attempts(run.records()):
            for trial, records in completed_trials(attempt).items():
                seen[attempt.boot, trial] = records


def counted(run: RunDir) -> Trials:
    return {
        (b.boot, trial): lines for b in run.boots() for trial, lines in by_trial(b.records).items()
    }


def nothing_left_behind(run: RunDir) -> bool:
    return not [*run.path.glob("*.partial"), *run.path.glob("console/*.cpio")]


@pytest.mark.parametrize(
    ("clock", "wanted"),
    [("instructions", 30), ("wall", 10)]
    + [
        pytest.param(*kills, marks=pytest.mark.full)
        for kills in (("instructions", 100), ("wall", 30))
    ],
)
def test_kills_at_random_moments_lose_no_completed_trial(
    labs: ForkServerContext, folder: Path, clock: Clock, wanted: int
) -> None:
    moments = random.Random(7)
    whole = killable.make_run(folder / "whole", clock)
    unbroken(labs, whole)
    span = unbroken(labs, again := killable.make_run(folder / "again", clock))
    assert len(counted(again)) == 6 * 3
    kills = kept = 0
    # On a busy host, kills may all come before the first trial has ended.
    while kills < wanted or (not kept and kills < 10 * wanted):
        run = killable.make_run(folder / "killed", clock)
        more, seen = kill_until_done(labs, run, moments, 1.1 * span)
        kills += more
        kept += sum(a.end is None and bool(completed_trials(a)) for a in attempts(run.records()))
        final = counted(run)
        assert final.keys() == counted(whole).keys()
        assert nothing_left_behind(run)
        if clock == "instructions":
            assert all(
                as_guest_wrote(final[trial]) == as_guest_wrote(records)
                for trial, records in seen.items()
            )
            assert run.result_file.path.read_bytes() == whole.result_file.path.read_bytes()
        else:
            assert all(final[trial] == records for trial, records in seen.items())
            ends = Counter((r.boot, r.trial) for r in run.records() if isinstance(r, TrialEnd))
            assert set(ends.values()) == {1}
    assert kept


def test_a_second_process_on_a_run_is_refused_and_the_first_continues(
    labs: ForkServerContext, folder: Path
) -> None:
    run = killable.make_run(folder, "wall")
    first = labs.Process(target=killable.measure, args=(run.path,))
    first.start()
    while not run.records():
        time.sleep(0.001)
    with pytest.raises(InputError, match="another kteardown is writing to this run"):
        killable.measure(run.path)
    first.join()
    assert first.exitcode == 0
    assert len(run.boots()) == 6
