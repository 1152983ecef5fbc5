"""A boot of a hunt whose trials reported these records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kteardown.model.record import BootEnd, BootStart, Record, Sample, TrialEnd, TrialStart
from kteardown.model.record_fields import ParamValue
from kteardown.model.script_records import Wait, WaitedStretch
from kteardown.model.sharing import SharedData, Sharing
from kteardown.rundir.counting import BootRecords


@dataclass(frozen=True)
class ReportedTrial:
    """A trial of kind ``a``, released by exit; without ``samples`` and ``waits`` it failed."""

    objects: int
    stay: str = "-"
    samples: dict[str, float] = field(default_factory=dict)
    waits: dict[str, int] = field(default_factory=dict)
    """By stack, how many waits of 1 ns."""
    detail: str = ""
    params: dict[str, ParamValue] = field(default_factory=dict)
    """Further ones."""
    elapsed_ticks: float = 0.0
    """On the contention clock; 0 on others."""


def reported(
    trials: Sequence[ReportedTrial],
    kernel: str = "k",
    seed: int = 1,
    machine: Mapping[str, int] | None = None,
) -> BootRecords:
    records: list[Record] = []
    for index, trial in enumerate(trials):
        params: dict[str, ParamValue] = {
            "kind": "a",
            "way": "exit",
            "user": "root",
            "objects": trial.objects,
            "stay": trial.stay,
            **trial.params,
            **(machine or {}),
        }
        records.append(TrialStart(trial=index, workload="hunt", params=params))
        records += [
            Sample(trial=index, repetition=0, metric=metric, value=value, warmup=False)
            for metric, value in trial.samples.items()
        ]
        if trial.elapsed_ticks:
            records.append(_sharing(index, trial.elapsed_ticks))
        if trial.waits:
            count = sum(trial.waits.values())
            stretch = WaitedStretch(
                trial=index, repetition=0, stretch_ns=10**9, waits=count, lost=0
            )
            records.append(stretch)
            records += [
                Wait(trial=index, repetition=0, stack=stack, count=number, ns=number)
                for stack, number in trial.waits.items()
            ]
        failed = not trial.samples and not trial.waits
        records.append(
            TrialEnd(trial=index, status="failed" if failed else "ok", detail=trial.detail)
        )
    start = BootStart(
        kernel=kernel,
        block=0,
        seed=seed,
        acceleration="icount",
        host_load=0,
        started_at="2026-01-01T00:00:00",
    )
    end = BootEnd(
        outcome="ok", detail="", duration_s=1, first_record_s=0.5, command=[], host_load=0
    )
    return BootRecords(0, 0, start, end, tuple(records))


def _sharing(index: int, ticks: float) -> Sharing:
    """Return what two CPUs counted that were busy all the time, half of it with one lock."""
    lock = SharedData(
        name="lock", lines=1, cpus=2, moves=ticks / 200, movers=(), waited_ticks=ticks / 2
    )
    return Sharing(
        trial=index,
        repetition=0,
        elapsed_ticks=ticks,
        busy_ticks=(ticks, ticks),
        functions=(),
        data=(lock,),
    )
