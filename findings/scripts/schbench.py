#!/usr/bin/env python3
"""Compare the figures of the workload `wakeups` with those of schbench, built by two compilers.

schbench is not part of this project: give the folder of its source, or use --clone to fetch it from
its repository. It is built statically, with its own flags, once by gcc and once by clang. Each
program is put into guests, and runs at the leaf of the same cgroups as the workload, at the same
points, in the same boots, one after the other.

Two compilers give two figures for one program. A figure of the workload is accepted if it lies
between these two, within what schbench resolves: a microsecond, a request, or 1/256 of a latency
(its histogram). A figure outside is shown with its distance from the nearer program, and with what
two boots of the workload differ by: on the wall clock base is booted twice in each block (A/A); on
the instruction clock boots are seeds. Exits with 1 if a figure lies outside.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kteardown.analysis.dataset import Dataset
from kteardown.analysis.estimate.bootstrap import Boots, Resampler
from kteardown.analysis.estimate.verdict import Estimate, Rules, estimate
from kteardown.inputs.load import load_workload
from kteardown.model.point import Point, points_of
from kteardown.model.record import BASE, TWIN
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import find_run
from kteardown.rundir.snapshot import load

HOME = "https://git.kernel.org/pub/scm/linux/kernel/git/mason/schbench.git"
COMPILERS = ("gcc", "clang")
EXPERIMENT = """
name = "schbench"
question = "Does wakeups give the figures of schbench?"
source = "debian:6.12"
[[workloads]]
workload = "wakeups"
params.program = ["agent", "schbench"]
params.threads = [{threads}]
params.message_threads = [{message_threads}]
params.quota_us = [{quota_us}]
params.memory_max_mb = [256]
params.cache_kb = [{cache_kb}]
params.operations = [1]
params.runtime_ms = [{runtime_ms}]
[machine]
cpus = {cpus}
[design]
clock = "{clock}"
seeds = {boots}
boots = {boots}
repetitions = 1
warmup = 0
"""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("source", nargs="?", type=Path, help="the folder of schbench's source")
    where.add_argument("--clone", action="store_true", help=f"fetch it from {HOME}")
    parser.add_argument("--threads", default="1, 4, 16", help="workers of each message thread")
    parser.add_argument("--message-threads", default="1")
    parser.add_argument(
        "--quota-us", default="0, 100000", help="quotas for each 100 ms; 0: no quota"
    )
    parser.add_argument("--cpus", type=int, default=2)
    # In less than 5 s the empty interval that schbench counts first is its 20th percentile.
    parser.add_argument(
        "--seconds", type=int, default=5, help="duration of each run of either program"
    )
    parser.add_argument("--cache-kb", type=int, default=64)
    parser.add_argument("--clock", choices=["wall", "instructions"], default="wall")
    parser.add_argument("--boots", type=int, default=4, help="boots of base, or seeds")
    parser.add_argument("--same-within", type=float, default=0.1)
    parser.add_argument(
        "--run",
        action="append",
        type=Path,
        default=[],
        help="a run of an earlier call instead of a new one: first that of gcc, then of clang",
    )
    chosen = parser.parse_args()
    if not (chosen.source or chosen.clone or chosen.run):
        parser.error("give the folder of schbench's source, --clone, or two runs")
    return chosen


def build(source: Path, compiler: str, folder: Path) -> Path:
    """Build schbench as a static program in ``folder``, with its own Makefile and flags in a copy
    of ``source``."""
    if not (source / "schbench.c").is_file():
        sys.exit(f"{source} has no schbench.c: give the folder of schbench's source")
    copy = shutil.copytree(source, folder / "source", ignore=shutil.ignore_patterns(".git"))
    flags = [f"CC={compiler}", "CFLAGS=-Wall -O2 -g -W -w -static"]
    done = subprocess.run(
        ["make", "-C", str(copy), "clean", "schbench", *flags],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"schbench does not build with {compiler}:\n{done.stdout}{done.stderr}")
    programs = folder / "programs"
    programs.mkdir()
    return (copy / "schbench").rename(programs / "schbench")


def measure(chosen: argparse.Namespace, program: Path, folder: Path) -> RunDir:
    """Run both programs at every point of every boot; the run is kept with the user's runs."""
    file = folder / "experiment.toml"
    file.write_text(
        EXPERIMENT.format(
            threads=chosen.threads,
            message_threads=chosen.message_threads,
            quota_us=chosen.quota_us,
            cpus=chosen.cpus,
            cache_kb=chosen.cache_kb,
            runtime_ms=chosen.seconds * 1000,
            boots=chosen.boots,
            clock=chosen.clock,
        )
    )
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kteardown", "run", str(file), "--jobs", "1"],
        env={**os.environ, "KTEARDOWN_PROGRAMS": str(program.parent)},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        sys.exit("the run failed: see the error above")
    return find_run("last")


@dataclass(frozen=True)
class Pair:
    """One figure of both programs at one point, and of base and its A/A twin."""

    point: Point
    metric: str
    ours: Boots
    theirs: Boots
    found: Estimate
    twin: Estimate | None


def pairs(run: RunDir, rules: Rules) -> list[Pair]:
    """Return every figure that both programs gave."""
    experiment = load(run).experiment
    workload = load_workload("wakeups")
    collected, draws = Dataset(run.boots()), Resampler(experiment.design.seed)
    result = []
    for point in points_of(experiment, {workload.name: workload}):
        params = dict(point.full)
        if params["program"] == "schbench":
            continue
        other = point.model_copy(update={"params": {**params, "program": "schbench"}})
        for metric, spec in workload.metrics.items():
            ours, theirs = (collected.boots(BASE, at, metric) for at in (point, other))
            again = collected.boots(TWIN, point, metric)
            if ours and theirs and spec.compare:
                found = estimate(ours, theirs, experiment.design.clock, rules, draws)
                twin = (
                    estimate(ours, again, experiment.design.clock, rules, draws) if again else None
                )
                result.append(Pair(point, metric, ours, theirs, found, twin))
    return result


@dataclass(frozen=True)
class Position:
    """Where a figure of the workload lies, from the medians of boots.

    The workload ran once beside each program, so it has two medians; the figure is their mean.
    """

    ours: float
    low: float
    high: float
    unit: float
    share: float
    """Of a figure that schbench does not resolve."""

    @property
    def between(self) -> bool:
        below, above = (max(self.unit, self.share * of) for of in (self.low, self.high))
        return self.low - below <= self.ours <= self.high + above

    @property
    def outside(self) -> float:
        """By how much the figure is below the lower or above the higher one, as a share of it."""
        if self.between:
            return 0.0
        nearest = self.low if self.ours < self.low else self.high
        return self.ours / nearest - 1 if nearest else float("inf")


def position(gcc: Pair, clang: Pair) -> Position:
    """Compare the same figure of both runs."""
    low, high = sorted((gcc.theirs.median, clang.theirs.median))
    unit, share = (1000.0, 1 / 256) if gcc.metric.endswith("_ns") else (1.0, 0.0)
    return Position((gcc.ours.median + clang.ours.median) / 2, low, high, unit, share)


def show(by_compiler: tuple[list[Pair], list[Pair]]) -> int:
    """Print a row for each figure; return how many lie outside."""
    outside = 0
    print(
        f"{'threads':>7} {'quota_us':>8}  {'figure':15}  {'gcc':>13}  {'wakeups':>13}  "
        f"{'clang':>13}  outcome"
    )
    for gcc, clang in zip(*by_compiler, strict=True):
        at, params = position(gcc, clang), dict(gcc.point.full)
        outside += not at.between
        outcome = (
            "between"
            if at.between
            else f"OUTSIDE by {at.outside:+.1%}; to gcc {span(gcc.found)}, to clang "
            f"{span(clang.found)}, A/A {span(gcc.twin)}"
        )
        print(
            f"{params['threads']:>7} {params['quota_us']:>8}  {gcc.metric:15}  "
            f"{gcc.theirs.median:13,.0f}  {at.ours:13,.0f}  {clang.theirs.median:13,.0f}  {outcome}"
        )
    return outside


def span(found: Estimate | None) -> str:
    """Format the interval of a change in percent."""
    if found is None or found.ci is None:
        return "-"
    return f"[{found.ci[0] - 1:+.1%}, {found.ci[1] - 1:+.1%}]"


def measured(chosen: argparse.Namespace, folder: Path) -> list[RunDir]:
    """Build and run schbench with each compiler, or find the runs that were given."""
    if chosen.run:
        return [find_run(str(run)) for run in chosen.run]
    source = chosen.source
    if chosen.clone:
        source = folder / "clone"
        subprocess.run(["git", "clone", "--depth", "1", HOME, str(source)], check=True)
    runs = []
    for compiler in COMPILERS:
        own = folder / compiler
        own.mkdir()
        runs.append(measure(chosen, build(source, compiler, own), own))
        print(f"{compiler}: {runs[-1].path}", flush=True)
    return runs


def main() -> int:
    chosen = options()
    rules = Rules(0.95, chosen.same_within)
    with tempfile.TemporaryDirectory() as name:
        gcc, clang = (pairs(run, rules) for run in measured(chosen, Path(name)))
        outside = show((gcc, clang))
    print(f"{outside} of {len(gcc)} figures of wakeups lie outside of the two builds of schbench")
    return 1 if outside or not gcc else 0


if __name__ == "__main__":
    sys.exit(main())
