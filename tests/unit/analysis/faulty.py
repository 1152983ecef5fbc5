"""Results of simulated runs in which boots have faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kteardown.judge.answer import judge
from kteardown.model.clock import Clock
from kteardown.model.record import (
    BootEnd,
    Check,
    Hello,
    KernelProblem,
    Outcome,
    ProblemKind,
    TrialStart,
)
from kteardown.model.result import Result
from kteardown.rundir.counting import BootRecords
from unit.simulation import WORKLOADS, analysed, freezer, simulate

VARIANT = "freezer-skip-exited"
Change = Callable[[BootRecords], BootRecords]
WARNING = "WARNING: CPU: 0 PID: 1 at kernel/power/process.c:52 try_to_freeze_tasks+0x2f9/0x300"


def end(outcome: Outcome, *problems: KernelProblem) -> BootEnd:
    return BootEnd(
        outcome=outcome,
        detail="" if outcome == "ok" else f"it was a {outcome}",
        duration_s=1,
        first_record_s=1,
        command=[],
        host_load=0,
        problems=problems,
        last_lines=("the last line",),
    )


def crash(outcome: Outcome, trial: int) -> Change:
    """A boot that ends inside trial ``trial``."""

    def change(boot: BootRecords) -> BootRecords:
        starts = [n for n, record in enumerate(boot.records) if isinstance(record, TrialStart)]
        return replace(boot, end=end(outcome), records=boot.records[: starts[trial] + 1])

    return change


def warns(*trials: int, kind: ProblemKind = "warning") -> Change:
    def change(boot: BootRecords) -> BootRecords:
        problem = KernelProblem(
            kind=kind, line=WARNING, trials=trials, excerpt=(WARNING, "Call Trace:")
        )
        return replace(boot, end=end("ok", problem))

    return change


def fails(name: str) -> Change:
    """The last trial of the boot fails an invariant."""

    def change(boot: BootRecords) -> BootRecords:
        *records, last = boot.records
        trial = getattr(last, "trial", None)
        assert trial is not None
        check = Check(trial=trial, repetition=1, name=name, ok=False, detail="7 of 9")
        return replace(boot, records=(*records, check, last))

    return change


def fails_at(zombies: int) -> Change:
    """The trial with so many zombies fails an invariant."""

    def change(boot: BootRecords) -> BootRecords:
        records = list(boot.records)
        begun = (record for record in records if isinstance(record, TrialStart))
        start = next(record for record in begun if record.params["zombies"] == zombies)
        check = Check(trial=start.trial, repetition=1, name="none_left", ok=False, detail="7 of 9")
        records.insert(records.index(start) + 1, check)
        return replace(boot, records=tuple(records))

    return change


def has_cpus(boot: BootRecords, cpus: int) -> BootRecords:
    records = tuple(
        record.model_copy(update={"cpus_online": cpus}) if isinstance(record, Hello) else record
        for record in boot.records
    )
    return replace(boot, records=records)


def result(
    changes: dict[tuple[str, int], Change],
    clock: Clock = "instructions",
    boots: int = 3,
    cpus: int = 1,
) -> Result:
    experiment = freezer(clock, boots=boots, zombies=(0, 6000), variants=(VARIANT,))
    records = []
    for boot in simulate(experiment):
        booted = has_cpus(boot, cpus)
        change = changes.get((boot.start.kernel, boot.start.block))
        records.append(change(booted) if change else booted)
    return analysed(experiment, records)


def of_variant(*blocks: int, change: Change) -> dict[tuple[str, int], Change]:
    return {(VARIANT, block): change for block in blocks}


def is_broken(found: Result) -> bool:
    """Return whether a run with this result ends as one with a broken variant."""
    return judge(found, WORKLOADS).outcome == "broken"
