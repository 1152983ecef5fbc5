#!/usr/bin/env python3
"""Measure how long the whole analysis of a run directory with 10,000 trials takes, on one core.

It is what every run does at its end: read, analyse, write result.json and report.md. The limit is 5
seconds. Base, its A/A twin and two other kernels, 25 boots of each, 100 points, four metrics, three
repetitions after a warm-up. Exits with 1 if the limit is exceeded.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from kteardown import pipeline
from kteardown.analysis import conclude  # noqa: F401  Its libraries take longer to import than to use.
from kteardown.model.experiment import Design, Experiment, Sweep
from kteardown.model.kernel_facts import KernelFacts
from kteardown.model.record import BootEnd, BootStart, Record, Sample, TrialEnd, TrialStart
from kteardown.model.workload import Metric, Parameter, Workload
from kteardown.run.make_plan import make_plan
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load, mark_whole, write_inputs

LIMIT_S = 5.0
BOOTS = 25
POINTS = 100
REPETITIONS = 3
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
    """Write the run with its records, without a sync after each line; return the number of
    trials."""
    workloads = {"load": WORKLOAD}
    plan = make_plan(EXPERIMENT, workloads, EXPERIMENT.variants)
    write_inputs(run, workloads, None, plan)
    facts = KernelFacts(
        release="", source="", arch="x86_64", compiler="", config_hash="", image_hash=""
    )
    run.save(run.kernels_file, json.dumps({name: facts.model_dump() for name in KERNELS}))
    run.save(run.environment_file, json.dumps({"command": "", "machine": {}}))
    rng = np.random.default_rng(1)
    with run.records_file.path.open("w", encoding="utf-8") as stream:
        for boot in plan.boots:
            factor = KERNELS[boot.kernel] * float(np.exp(rng.normal(0, 0.05)))
            lines = records(boot.kernel, boot.block, factor, rng)
            stream.writelines(
                record.model_copy(update={"boot": boot.index}).model_dump_json() + "\n"
                for record in lines
            )
    mark_whole(run, EXPERIMENT)
    return sum(len(boot.trials) for boot in plan.boots)


def records(kernel: str, block: int, factor: float, rng: np.random.Generator) -> list[Record]:
    """Return the records of one boot, from its start to its end."""
    lines: list[Record] = [
        BootStart(
            kernel=kernel,
            block=block,
            seed=block,
            acceleration="kvm",
            host_load=0,
            started_at="2026-01-01",
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
    """Print the seconds of processor time; return 1 if they exceed the limit."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        run = RunDir.create(Path(folder), "speed")
        trials = write(run)
        size = run.records_file.path.stat().st_size
        started = time.process_time()
        result = pipeline.analyse_and_save(load(run))
        spent = time.process_time() - started
        written = run.result_file.path.stat().st_size
    print(
        f"{trials:,} trials, {size / 1e6:.0f} MB of records, {len(result.comparisons)} comparisons"
    )
    print(
        f"read, analysed and written ({written / 1e6:.1f} MB) in {spent:.2f} s of processor time; "
        f"limit {LIMIT_S:.0f} s: {'ok' if spent <= LIMIT_S else 'too slow'}"
    )
    return 0 if spent <= LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
