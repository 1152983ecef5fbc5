"""Histograms of a run: merged over boots, without warm-ups and unusable trials."""

from __future__ import annotations

import io

from rich.console import Console

from kteardown.analysis.conclude import analyse
from kteardown.inputs.load import load_workloads
from kteardown.model.experiment import Design, Experiment, Sweep
from kteardown.model.kernel_facts import KernelFacts
from kteardown.model.point import points_of, sweep_points
from kteardown.model.record import (
    BootEnd,
    BootStart,
    Buckets,
    Hello,
    ParamValue,
    Record,
    Sample,
    TrialEnd,
    TrialStart,
)
from kteardown.model.result import Result
from kteardown.report.formats import markdown, text
from kteardown.report.material import Material
from kteardown.rundir.counting import BootRecords

EXPERIMENT = Experiment(
    name="throttle-wakeups",
    question="Same?",
    source="debian:6.12",
    variants=("changed",),
    workloads=(Sweep(workload="wakeups", params={"threads": (1, 8)}),),
    design=Design(clock="wall", boots=2, repetitions=1, warmup=1),
)
WORKLOADS = load_workloads(EXPERIMENT)
FACTS = KernelFacts(
    release="6.12",
    source="debian:6.12",
    arch="x86_64",
    compiler="gcc",
    config_hash="c",
    image_hash="i",
)


def _trial(index: int, params: dict[str, ParamValue], low: int, status: str = "ok") -> list[Record]:
    def counted(repetition: int, at: int, number: int) -> Buckets:
        return Buckets(
            trial=index,
            repetition=repetition,
            metric="wakeup_ns",
            bits=8,
            buckets=((at, number),),
            warmup=repetition == 0,
        )

    return [
        TrialStart(trial=index, workload="wakeups", params=params),
        counted(0, 1, 1000),
        Sample(trial=index, repetition=1, metric="wakeup_p99_ns", value=low),
        counted(1, low, 99),
        counted(1, 2 * low, 1),
        TrialEnd.model_validate({"trial": index, "status": status}),
    ]


def _boot(number: int, kernel: str, block: int, low: int, status: str = "ok") -> BootRecords:
    (sweep,) = EXPERIMENT.workloads
    records: list[Record] = [
        Hello(
            protocol=1,
            release="6.12",
            version="#1",
            machine="x86_64",
            cpus_online=2,
            cpus_possible=2,
            memory_kb=1,
            cmdline="",
        )
    ]
    for index, params in enumerate(sweep_points(sweep, WORKLOADS["wakeups"])):
        records += _trial(index, params, low, status)
    start = BootStart(
        kernel=kernel,
        block=block,
        seed=1,
        acceleration="kvm",
        host_load=0,
        started_at="2026-01-01T00:00:00",
    )
    end = BootEnd(outcome="ok", duration_s=1, first_record_s=1, command=[], host_load=0)
    return BootRecords(number, 0, start, end, tuple(records))


def _result() -> Result:
    boots = [
        _boot(0, "base", 0, 1000),
        _boot(1, "changed", 0, 4000),
        _boot(2, "base", 1, 2000),
        _boot(3, "changed", 1, 8000, "void"),
    ]
    points = points_of(EXPERIMENT, WORKLOADS)
    return analyse(
        EXPERIMENT,
        WORKLOADS,
        boots,
        {"base": FACTS, "changed": FACTS},
        {},
        "kteardown run",
        points=points,
    )


def test_boots_are_merged_without_warm_ups_and_unusable_trials() -> None:
    found = {
        (d.kernel, d.point["threads"]): d
        for d in _result().distributions
        if d.metric == "wakeup_ns"
    }
    assert set(found) == {(kernel, threads) for kernel in ("base", "changed") for threads in (1, 8)}
    base, changed = found["base", 1], found["changed", 8]
    # 99 of 1,000 ns and 1 of 2,000, then 99 of 2,000 and 1 of 4,000; a bucket is represented by its
    # middle.
    assert base.n == 200
    assert base.percentiles == {"50": 2002, "90": 2002, "99": 2002, "99.9": 4004}
    assert changed.n == 100
    assert changed.error == 2**-9


def test_the_report_shows_the_percentiles_of_all_boots() -> None:
    result = _result()
    stream = io.StringIO()
    text.report(Material("", result, WORKLOADS), Console(file=stream, width=120))
    report = stream.getvalue()
    assert "wakeups: wakeup time (wakeup_ns) of all boots together, in ns" in report
    assert "bucket error at most 0.2%" in report
    assert "| 2,002 | 2,002 | 2,002 | 4,004 |" in " ".join(
        markdown.report(Material("", result, WORKLOADS)).split()
    )
