#!/usr/bin/env python3
"""Kill runs with real guests at random moments with SIGKILL, resume them, and check what is lost
and left.

An experiment on the instruction clock is run once without interruption. Then it is run again and
again: each process of kteardown is killed at a random moment between its start and the time that
the unbroken run took, and the run is resumed, until it is complete. Exits with 1 if a completed
trial was lost, if a result.json is not that of the unbroken run byte for byte, if a guest outlived
its kteardown process, or if a file was left behind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from kteardown.model.plan import Plan
from kteardown.model.record import Record, TrialStart
from kteardown.rundir.counting import as_guest_wrote, attempts, by_trial, completed_trials, repeats
from kteardown.rundir.directory import RunDir

EXPERIMENT = ["run", "freezer", "--clock", "instructions", "--workload", "zombies", "--variant"]
EXPERIMENT += ["freezer-skip-exited", "--repetitions", "1"]
GONE_S = 10.0
Trials = dict[tuple[int, int], list[Record]]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=2, help="boots of each of the two kernels")
    parser.add_argument("--set", default="zombies=0,300", help="the trials of a boot")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the random moments")
    return parser.parse_args()


@dataclass
class Seen:
    """What happened over all kills."""

    moments: Counter[str] = field(default_factory=Counter)
    completed: int = 0
    lost: int = 0
    repeated: int = 0
    repeated_otherwise: int = 0
    runs: int = 0
    other_results: int = 0
    outlived: int = 0
    left: list[str] = field(default_factory=list)

    @property
    def faultless(self) -> bool:
        return not (
            self.lost or self.repeated_otherwise or self.other_results or self.outlived or self.left
        )


class Folder:
    """The folder of one test: its runs and its temporary files."""

    def __init__(self, path: Path, experiment: list[str]) -> None:
        self.runs, self.temporary = path / "runs", path / "tmp"
        self.temporary.mkdir(parents=True)
        self.experiment = experiment

    def run(self) -> RunDir | None:
        """Return the one run that is complete enough to be resumed."""
        whole = [path for path in self.runs.glob("*") if (path / "experiment.json").is_file()]
        return RunDir(whole[0]) if whole else None

    def start(self) -> subprocess.Popen[bytes]:
        """Start a process of kteardown that begins the experiment, or resumes it."""
        run = self.run()
        words = ["run", "--resume", run.name] if run else self.experiment
        environment = {
            **os.environ,
            "KTEARDOWN_RUNS": str(self.runs),
            "TMPDIR": str(self.temporary),
        }
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "kteardown", *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def processes(self) -> list[psutil.Process]:
        """Return every running process of this folder: kteardown itself and the processes that it
        started."""
        running = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("KTEARDOWN_RUNS") != str(self.runs):
                    continue
                if process.status() != psutil.STATUS_ZOMBIE:
                    running.append(process)
            except psutil.Error:
                continue
        return running


def unbroken(folder: Folder) -> tuple[bytes, float]:
    """Run without a kill; return the result.json and the seconds that the run took."""
    began = time.monotonic()
    process = folder.start()
    _, errors = process.communicate()
    run = folder.run()
    if process.returncode or run is None:
        sys.exit(f"the unbroken run failed:\n{errors.decode(errors='replace')}")
    return run.result_file.path.read_bytes(), time.monotonic() - began


def kill_until_done(
    folder: Folder, moments: random.Random, span: float, most: int, seen: Seen
) -> Trials:
    """Start kteardown until the run is complete, and kill the first ``most`` processes.

    Returns the trials that were complete at the kills.
    """
    recorded: Trials = {}
    while True:
        process = folder.start()
        try:
            wait_s = moments.uniform(0, span) if most else None
            _, errors = process.communicate(timeout=wait_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            most -= 1
            seen.moments[moment_of(folder.run())] += 1
            seen.outlived += outlived(folder)
            recorded |= completed_of_run(folder.run())
            continue
        if process.returncode:
            sys.exit(f"a resumed run failed:\n{errors.decode(errors='replace')}")
        return recorded


def outlived(folder: Folder) -> int:
    """Return how many processes of a killed kteardown are still running after ``GONE_S``."""
    deadline = time.monotonic() + GONE_S
    while (alive := folder.processes()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return len(alive)


def moment_of(run: RunDir | None) -> str:
    """Return what kteardown was doing, according to the run directory. Every file must be
    complete."""
    if run is None:
        return "before the plan was complete"
    for file in run.path.glob("*.json"):
        json.loads(file.read_bytes())
    tried = attempts(run.records())
    unfinished = [attempt for attempt in tried if attempt.end is None]
    last = {attempt.boot: attempt for attempt in tried}
    unfinished = [attempt for attempt in unfinished if last[attempt.boot] is attempt]
    for attempt in unfinished:
        begun = {record.trial for record in attempt.records if isinstance(record, TrialStart)}
        if begun - completed_trials(attempt).keys():
            return "in a trial"
    if unfinished:
        return "in a boot, outside of a trial"
    planned = Plan.model_validate_json(run.plan_file.path.read_bytes()).boots
    return "between boots" if len(run.boots()) < len(planned) else "after the last boot"


def completed_of_run(run: RunDir | None) -> Trials:
    """Return the records of every completed trial, by boot and trial."""
    all_attempts = attempts(run.records()) if run else []
    return {
        (a.boot, trial): records
        for a in all_attempts
        for trial, records in completed_trials(a).items()
    }


def counted(run: RunDir) -> Trials:
    """Return the records that the result is made of, by boot and trial."""
    return {
        (b.boot, trial): lines for b in run.boots() for trial, lines in by_trial(b.records).items()
    }


def check(folder: Folder, recorded: Trials, result: bytes, seen: Seen) -> None:
    """Compare the finished run with the records at the kills and with the unbroken run."""
    run = folder.run()
    assert run is not None
    final = counted(run)
    seen.runs += 1
    seen.completed += len(recorded)
    seen.lost += sum(
        as_guest_wrote(final.get(trial, [])) != as_guest_wrote(records)
        for trial, records in recorded.items()
    )
    again = repeats(run.records())
    seen.repeated += len(again)
    seen.repeated_otherwise += sum(not repeat.same for repeat in again)
    seen.other_results += run.result_file.path.read_bytes() != result
    stale = [
        *folder.temporary.iterdir(),
        *run.path.glob("*.partial"),
        *run.path.glob("console/*.cpio"),
    ]
    seen.left += [str(path) for path in stale]


def report(seen: Seen, span: float) -> None:
    kills = sum(seen.moments.values())
    print(f"{kills} kills over {seen.runs} runs; an unbroken run took {span:.1f} s")
    for moment, count in seen.moments.most_common():
        print(f"  {count:4} {moment}")
    print(f"completed trials recorded before a kill: {seen.completed}, of them lost: {seen.lost}")
    print(
        f"boots run again: {seen.repeated}, of them with other records: {seen.repeated_otherwise}"
    )
    print(f"result.json that differ from the unbroken run's: {seen.other_results} of {seen.runs}")
    print(f"processes that outlived their kteardown by {GONE_S:g} s: {seen.outlived}")
    print(f"files left behind: {len(seen.left)}" + "".join(f"\n  {name}" for name in seen.left))


def main() -> int:
    chosen = options()
    experiment = [*EXPERIMENT, "--seeds", str(chosen.seeds), "--set", chosen.set]
    moments, seen = random.Random(chosen.seed), Seen()
    with tempfile.TemporaryDirectory(prefix="kteardown-bench-") as name:
        result, span = unbroken(Folder(Path(name) / "whole", experiment))
        while (left := chosen.kills - sum(seen.moments.values())) > 0:
            folder = Folder(Path(name) / f"killed-{seen.runs}", experiment)
            recorded = kill_until_done(folder, moments, span, left, seen)
            check(folder, recorded, result, seen)
            kills = sum(seen.moments.values())
            print(
                f"{kills} of {chosen.kills} kills, {seen.lost} trials lost",
                file=sys.stderr,
                flush=True,
            )
        report(seen, span)
    return 0 if seen.faultless else 1


if __name__ == "__main__":
    sys.exit(main())
