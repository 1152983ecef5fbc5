#!/usr/bin/env python3
"""Labs with real guests, killed with SIGKILL at random moments and resumed: what is lost, what is left.

An experiment on the instruction clock is run once unbroken; then again and again, each lab killed at a random
moment between its start and the time that the unbroken run took, and the run resumed, until it is done.
Exits with 1 where a completed trial was lost, a result.json is not that of the unbroken run to the byte, a
guest outlived its lab, or a file was left behind.
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=2, help="boots of each of the two kernels")
    parser.add_argument("--set", default="zombies=0,300", help="the trials of a boot")
    parser.add_argument("--seed", type=int, default=1, help="what the moments are drawn from")
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
        return not (self.lost or self.repeated_otherwise or self.other_results or self.outlived or self.left)


class Folder:
    """Where labs work: their runs, and what they take for the place of temporary files."""

    def __init__(self, path: Path, experiment: list[str]) -> None:
        self.runs, self.temporary = path / "runs", path / "tmp"
        self.temporary.mkdir(parents=True)
        self.experiment = experiment

    def run(self) -> RunDir | None:
        """The one run that is whole enough to be resumed."""
        whole = [path for path in self.runs.glob("*") if (path / "experiment.json").is_file()]
        return RunDir(whole[0]) if whole else None

    def start(self) -> subprocess.Popen[bytes]:
        """A lab that begins the experiment, or goes on with it."""
        run = self.run()
        words = ["run", "--resume", run.name] if run else self.experiment
        environment = {**os.environ, "KTEARDOWN_RUNS": str(self.runs), "TMPDIR": str(self.temporary)}
        return subprocess.Popen(
            [sys.executable, "-m", "kteardown", *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def processes(self) -> list[psutil.Process]:
        """Every process that a lab here started, itself included, and that still lives."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("KTEARDOWN_RUNS") == str(self.runs):
                    found.append(process)
            except psutil.Error:
                continue
        return [process for process in found if process.status() != psutil.STATUS_ZOMBIE]


def unbroken(folder: Folder) -> tuple[bytes, float]:
    """The result.json of a run that nobody kills, and the seconds that it took."""
    began = time.monotonic()
    lab = folder.start()
    _, errors = lab.communicate()
    run = folder.run()
    if lab.returncode or run is None:
        sys.exit(f"the unbroken run failed:\n{errors.decode(errors='replace')}")
    return run.result_file.read_bytes(), time.monotonic() - began


def kill_until_done(folder: Folder, moments: random.Random, span: float, most: int, seen: Seen) -> Trials:
    """Lab after lab, the first ``most`` killed unless done before; the trials that were complete by then."""
    recorded: Trials = {}
    while True:
        lab = folder.start()
        try:
            wait_s = moments.uniform(0, span) if most else None
            _, errors = lab.communicate(timeout=wait_s)
        except subprocess.TimeoutExpired:
            lab.kill()
            lab.communicate()
            most -= 1
            seen.moments[moment_of(folder.run())] += 1
            seen.outlived += outlived(folder)
            recorded |= completed_of_run(folder.run())
            continue
        if lab.returncode:
            sys.exit(f"a resumed lab failed:\n{errors.decode(errors='replace')}")
        return recorded


def outlived(folder: Folder) -> int:
    """How many of the lab's processes are there still when they should long be gone."""
    deadline = time.monotonic() + GONE_S
    while (alive := folder.processes()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return len(alive)


def moment_of(run: RunDir | None) -> str:
    """What the lab was doing, as its run directory tells. Every file must be whole."""
    if run is None:
        return "before the plan was whole"
    for file in run.path.glob("*.json"):
        json.loads(file.read_bytes())
    tried = attempts(run.records())
    at_work = [attempt for attempt in tried if attempt.end is None]
    last = {attempt.boot: attempt for attempt in tried}
    at_work = [attempt for attempt in at_work if last[attempt.boot] is attempt]
    for attempt in at_work:
        begun = {record.trial for record in attempt.records if isinstance(record, TrialStart)}
        if begun - completed_trials(attempt).keys():
            return "in a trial"
    if at_work:
        return "in a boot, outside of trials"
    planned = Plan.model_validate_json(run.plan_file.read_bytes()).boots
    return "between boots" if len(run.boots()) < len(planned) else "after the last boot"


def completed_of_run(run: RunDir | None) -> Trials:
    """The records of every trial that has its end, by boot and trial."""
    found = attempts(run.records()) if run else []
    return {(a.boot, trial): records for a in found for trial, records in completed_trials(a).items()}


def counted(run: RunDir) -> Trials:
    """The records that the result is made of, by boot and trial."""
    return {(b.boot, trial): lines for b in run.boots() for trial, lines in by_trial(b.records).items()}


def check(folder: Folder, recorded: Trials, result: bytes, seen: Seen) -> None:
    """Hold the finished run against what was seen on the way and against the unbroken one."""
    run = folder.run()
    assert run is not None
    final = counted(run)
    seen.runs += 1
    seen.completed += len(recorded)
    seen.lost += sum(
        as_guest_wrote(final.get(trial, [])) != as_guest_wrote(records) for trial, records in recorded.items()
    )
    again = repeats(run.records())
    seen.repeated += len(again)
    seen.repeated_otherwise += sum(not repeat.same for repeat in again)
    seen.other_results += run.result_file.read_bytes() != result
    stale = [*folder.temporary.iterdir(), *run.path.glob("*.partial"), *run.path.glob("console/*.cpio")]
    seen.left += [str(path) for path in stale]


def report(seen: Seen, span: float) -> None:
    kills = sum(seen.moments.values())
    print(f"{kills} kills over {seen.runs} runs; an unbroken run took {span:.1f} s")
    for moment, count in seen.moments.most_common():
        print(f"  {count:4} {moment}")
    print(f"completed trials recorded before a kill: {seen.completed}, of them lost: {seen.lost}")
    print(f"boots run again: {seen.repeated}, of them with other records: {seen.repeated_otherwise}")
    print(f"result.json that differ from the unbroken run's: {seen.other_results} of {seen.runs}")
    print(f"processes that outlived their lab by {GONE_S:g} s: {seen.outlived}")
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
            print(f"{kills} of {chosen.kills} kills, {seen.lost} trials lost", file=sys.stderr, flush=True)
        report(seen, span)
    return 0 if seen.faultless else 1


if __name__ == "__main__":
    sys.exit(main())
