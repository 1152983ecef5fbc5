#!/usr/bin/env python3
"""Measure how long 10,000 trials take to be read from a run directory and analysed, on one core.

The limit is 5 seconds. Base, its A/A twin and two other kernels, 25 boots of each, 100 points, four metrics,
three repetitions after a warm-up. Exits with 1 if the limit is exceeded.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from kteardown.analysis.analyse import analyse
from kteardown.model.experiment import Design, Experiment, Sweep
from kteardown.model.point import points_of
from kteardown.model.record import BootEnd, BootStart, Record, Sample, TrialEnd, TrialStart
from kteardown.model.result import KernelFacts
from kteardown.model.workload import Metric, Parameter, Workload
from kteardown.report.formats import json as result_json
from kteardown.rundir.directory import RunDir

LIMIT_S = 5.0
BOOTS, POINTS, REPETITIONS = 25, 100, 3
METRICS = ("alpha_ns", "beta_ns", "gamma_ns", "delta_ns")
KERNELS = {"base": 1.0, "base-twin": 1.0, "faster": 0.8, "alike": 1.0}

WORKLOAD = Workload(
    name="load",
    summary="Simulated costs",
    silence_s=1,
    law="objects",
    parameters={"objects": Parameter(help="how many", default=0)},
    metrics={name: Metric(help="simulated", headline=True) for name in METRICS},
)
EXPERIMENT = Experiment(
    name="speed",
    question="How fast is the analysis?",
    source="simulated",
    variants=("faster", "alike"),
    workloads=(Sweep(workload="load", params={"objects": tuple(range(POINTS))}),),
    design=Design(clock="wall", boots=BOOTS, repetitions=REPETITIONS),
)


def write(run: RunDir) -> int:
    """Write the records of the run at once, without a sync after each line; return the number of trials."""
    rng = np.random.default_rng(1)
    trials = 0
    with run.records_file.open("w", encoding="utf-8") as stream:
        for boot in range(BOOTS * len(KERNELS)):
            block, (kernel, factor) = boot // len(KERNELS), list(KERNELS.items())[boot % len(KERNELS)]
            lines = records(kernel, block, factor * float(np.exp(rng.normal(0, 0.05))), rng)
            trials += POINTS
            stream.writelines(
                record.model_copy(update={"boot": boot}).model_dump_json() + "\n" for record in lines
            )
    return trials


def records(kernel: str, block: int, factor: float, rng: np.random.Generator) -> list[Record]:
    """Return the records of one boot, from its start to its end."""
    lines: list[Record] = [
        BootStart(
            kernel=kernel, block=block, seed=block, acceleration="kvm", host_load=0, started_at="2026-01-01"
        )
    ]
    for trial in range(POINTS):
        lines.append(TrialStart(trial=trial, workload="load", params={"objects": trial}))
        for repetition in range(1 + REPETITIONS):
            noise = np.exp(rng.normal(0, 0.02, len(METRICS)))
            lines += [
                Sample(
                    trial=trial,
                    repetition=repetition,
                    metric=metric,
                    value=round(1e6 * (1 + trial) * factor * float(noise[index])),
                    warmup=repetition == 0,
                )
                for index, metric in enumerate(METRICS)
            ]
        lines.append(TrialEnd(trial=trial, status="ok"))
    lines.append(BootEnd(outcome="ok", duration_s=1, first_record_s=1, command=[], host_load=0))
    return lines


def main() -> int:
    """Print the seconds of each part; return 1 if the total exceeds the limit."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    facts = KernelFacts(release="", source="", arch="x86_64", compiler="", config_hash="", image_hash="")
    with tempfile.TemporaryDirectory() as folder:
        run = RunDir.create(Path(folder), "speed")
        trials = write(run)
        size = run.records_file.stat().st_size
        started = time.process_time()
        boots = run.boots()
        read = time.process_time()
        kernels = dict.fromkeys(("base", "faster", "alike"), facts)
        result = analyse(
            EXPERIMENT,
            {"load": WORKLOAD},
            boots,
            kernels,
            {},
            "",
            points=points_of(EXPERIMENT, {"load": WORKLOAD}),
        )
        text = result_json.dumps(result)
        done = time.process_time()
    spent = done - started
    print(f"{trials:,} trials, {size / 1e6:.0f} MB of records, {len(result.comparisons)} comparisons")
    print(f"read {read - started:.2f} s, analysed and written ({len(text) / 1e6:.1f} MB) {done - read:.2f} s")
    print(
        f"{spent:.2f} s of processor time; limit {LIMIT_S:.0f} s: {'ok' if spent <= LIMIT_S else 'too slow'}"
    )
    return 0 if spent <= LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
