#!/usr/bin/env python3
"""Compare the figures of the workload `wakeups` with those of schbench.

schbench is not part of this project: give the folder of its source, or use --clone to fetch it from
its repository. It is built statically, put into the guest, and run at the leaf of the same cgroups
as the workload, at the same points, in the same boots, one after the other. On the wall clock base
is booted twice a block, so that a difference between the two programs can be compared with the
difference between two boots of one kernel and one program (A/A). On the instruction clock boots are
seeds, and their spread is the only noise.

The figures of schbench are whole microseconds, or requests; a difference of one unit does not
count. Exits with 1 if a figure differs by more than that and the margin.
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
from kteardown.analysis.estimate.verdict import (
    Estimate,
    Rules,
    SupportingResults,
    estimate,
    holm,
    judge,
)
from kteardown.inputs.load import load_workload
from kteardown.model.point import Point, points_of
from kteardown.model.record import BASE, TWIN
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import find_run
from kteardown.rundir.snapshot import load

HOME = "https://git.kernel.org/pub/scm/linux/kernel/git/mason/schbench.git"
EXPERIMENT = """
name = "schbench"
question = "Does wakeups give the figures of schbench?"
source = "debian:6.12"
[[workloads]]
workload = "wakeups"
params.program = ["agent", "schbench"]
params.threads = [{threads}]
params.quota_us = [100000]
params.memory_max_mb = [256]
params.cache_kb = [{cache_kb}]
params.operations = [1]
params.runtime_ms = [{runtime_ms}]
[machine]
cpus = 2
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
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("source", nargs="?", type=Path, help="the folder of schbench's source")
    where.add_argument("--clone", action="store_true", help=f"fetch it from {HOME}")
    parser.add_argument("--threads", default="1, 4, 16", help="workers of the message thread")
    # In less than 5 s the empty interval that schbench counts first is its 20th percentile.
    parser.add_argument(
        "--seconds", type=int, default=5, help="duration of each run of either program"
    )
    parser.add_argument("--cache-kb", type=int, default=64)
    parser.add_argument("--clock", choices=["wall", "instructions"], default="wall")
    parser.add_argument("--boots", type=int, default=6, help="boots of base, or seeds")
    parser.add_argument("--same-within", type=float, default=0.1)
    return parser.parse_args()


def build(source: Path, folder: Path) -> Path:
    """Build schbench as a static program in ``folder``, with its own Makefile in a copy of
    ``source``.

    Inlining is off. With inlining the compiler spills registers in the innermost loop of the matrix
    product, and a request has 10 instructions a step; without it both programs have 8.
    """
    if not (source / "schbench.c").is_file():
        sys.exit(f"{source} has no schbench.c: give the folder of schbench's source")
    copy = shutil.copytree(source, folder / "source", ignore=shutil.ignore_patterns(".git"))
    flags = "CFLAGS=-O2 -fno-inline -g -w -static"
    done = subprocess.run(
        ["make", "-C", str(copy), "clean", "schbench", flags],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"schbench does not build:\n{done.stdout}{done.stderr}")
    programs = folder / "programs"
    programs.mkdir()
    return (copy / "schbench").rename(programs / "schbench")


def measure(chosen: argparse.Namespace, program: Path, folder: Path) -> RunDir:
    """Run both programs at every point of every boot; the run is kept with the user's runs."""
    file = folder / "experiment.toml"
    file.write_text(
        EXPERIMENT.format(
            threads=chosen.threads,
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


def show(found: list[Pair], rules: Rules) -> int:
    """Print a row for each figure; return how many differ."""
    adjusted = holm([pair.found.p for pair in found])
    differ = 0
    print(f"{'threads':>7}  {'figure':15}  {'wakeups':>13}  {'schbench':>13}  change, A/A, verdict")
    for pair, p in zip(found, adjusted, strict=True):
        verdict, reason = judge(pair.found, SupportingResults(twin=pair.twin), p, "lower", rules)
        coarse = 1000 if pair.metric.endswith("_ns") else 1
        close = abs(pair.theirs.median - pair.ours.median) <= coarse
        differs = verdict in ("better", "worse") and not close
        differ += differs
        outcome = (
            "DIFFERS"
            if differs
            else "one unit apart"
            if close
            else f"no difference: {verdict}, {reason}"
        )
        print(
            f"{dict(pair.point.full)['threads']:>7}  {pair.metric:15}  {pair.ours.median:13,.0f}  "
            f"{pair.theirs.median:13,.0f}  {span(pair.found)}, {span(pair.twin)}, {outcome}"
        )
    return differ


def span(found: Estimate | None) -> str:
    """Format the interval of a change in percent."""
    if found is None or found.ci is None:
        return "-"
    return f"[{found.ci[0] - 1:+.1%}, {found.ci[1] - 1:+.1%}]"


def main() -> int:
    chosen = options()
    rules = Rules(0.95, chosen.same_within)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = chosen.source
        if chosen.clone:
            source = folder / "clone"
            subprocess.run(["git", "clone", "--depth", "1", HOME, str(source)], check=True)
        found = pairs(measure(chosen, build(source, folder), folder), rules)
        differ = show(found, rules)
    print(f"{differ} of {len(found)} figures differ")
    return 1 if differ or not found else 0


if __name__ == "__main__":
    sys.exit(main())
