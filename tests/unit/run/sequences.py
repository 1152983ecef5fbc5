"""Whole sequences of what an agent sends, of every sort."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from kteardown.model.plan import PlannedBoot, PlannedTrial
from kteardown.model.record import Record
from kteardown.model.workload import Metric, Script, Workload
from kteardown.run.guest_records import GuestRecords, Reports, of_agent, reports_of

Fields = dict[str, Any]
MINE = Workload(
    name="mine",
    summary="",
    silence_s=1,
    script=Script(command="x"),
    metrics={"printed_ns": Metric(help="")},
)
REPORTS = {
    **reports_of({"mine": MINE}),
    "built": Reports(frozenset(("a_ns", "b_ns")), frozenset(("h_ns",)), frozenset(("holds",))),
    "other": Reports(frozenset(("c_ns",)), frozenset(), frozenset()),
}
HELLO = {
    **{"type": "hello", "protocol": 1, "release": "6.12", "version": "#1", "machine": "x86_64"},
    **{"banner": "Linux", "cpus_online": 1, "cpus_possible": 1, "memory_kb": 1, "cmdline": ""},
}
SETTLED = {"type": "settled", "clocksource": "tsc", "resolution_ns": 1}


def boot_of(*trials: PlannedTrial) -> PlannedBoot:
    return PlannedBoot(index=0, block=0, kernel="base", seed=1, trials=trials)


def take(
    boot: PlannedBoot, lines: Sequence[Fields], reports: Mapping[str, Reports] = REPORTS
) -> list[Record]:
    guest = GuestRecords(boot, reports)
    return [guest.next(json.dumps(line).encode()) for line in lines]


def start_of(trial: PlannedTrial) -> Fields:
    workload, params = of_agent(trial)
    # As the agent writes them.
    values = {name: int(text) if text.isdecimal() else text for name, text in params.items()}
    return {"type": "trial_start", "trial": trial.index, "workload": workload, "params": values}


def built(trial: PlannedTrial) -> Iterator[Fields]:
    """Yield what a trial of a workload of the agent sends in each of its repetitions."""
    last = trial.warmup + trial.repetitions
    for repetition in range(last):
        at: Fields = {"trial": trial.index, "repetition": repetition}
        warm: Fields = {"warmup": True} if repetition < trial.warmup else {}
        yield {"type": "alive", "trial": trial.index, "detail": "half"}
        for metric, value in (("a_ns", 5), ("b_ns", 6), ("b_ns", 7.5)):
            yield {"type": "sample", **at, "metric": metric, "value": value, **warm}
        for buckets in ([[1, 2], [5, 1]], [[6, 1]]):
            yield {
                "type": "histogram",
                **at,
                "metric": "h_ns",
                "bits": 8,
                "buckets": buckets,
                **warm,
            }
        yield {"type": "check", **at, "name": "holds", "ok": True, "detail": ""}
        if trial.profile_ns and not warm:
            sampled = {"period_ns": 9, "stretch_ns": 90, "cpus": 1, "samples": 3, "lost": 0}
            yield {"type": "profile", **at, **sampled}
            yield {"type": "stack", **at, "stack": "a;b", "count": 2, "ns": 18}
            yield {"type": "stack", **at, "stack": "a;c", "count": 1, "ns": 9}


def scripted(trial: PlannedTrial) -> Iterator[Fields]:
    """Yield what a trial of a script sends in each of its repetitions."""
    for repetition in range(trial.warmup + trial.repetitions):
        at: Fields = {"trial": trial.index, "repetition": repetition}
        warm: Fields = {"warmup": True} if repetition < trial.warmup else {}
        yield {"type": "alive", "trial": trial.index, "detail": "5 s of 600 s"}
        for metric in ("whole_ns", "all_gone_ns", "cpu_us"):
            yield {"type": "sample", **at, "metric": metric, "value": 5, **warm}
        yield {"type": "output", **at, "source": "script", "at_ns": 1, "text": "printed 3 us"}
        yield {"type": "output", **at, "source": "log", "at_ns": 2, "text": "x", "facility": 1}
        yield {"type": "delta", **at, "file": "meminfo", "name": "Slab", "before": 1, "after": 2}
        yield {"type": "ended", **at, "how": "exit", "code": 0, "dropped": 0}
        if trial.profile_ns:
            yield {"type": "waits", **at, "stretch_ns": 90, "waits": 3, "lost": 0}
            yield {"type": "wait", **at, "stack": "a;b", "count": 2, "ns": 18}
            yield {"type": "wait", **at, "stack": "a;c", "count": 1, "ns": 9}
        yield {"type": "check", **at, "name": "ended", "ok": True, "detail": "exit 0"}


@st.composite
def sequences(draw: st.DrawFn) -> tuple[PlannedBoot, list[Fields]]:
    """A boot, and all that its guest sends."""
    is_script = draw(st.booleans())
    trials = tuple(
        PlannedTrial(
            index=index,
            workload="mine" if is_script else draw(st.sampled_from(["built"])),
            params={"N": draw(st.integers(0, 9)), "MODE": draw(st.sampled_from(["fast", "slow"]))},
            warmup=draw(st.integers(0, 1)),
            repetitions=draw(st.integers(1, 2)),
            profile_ns=draw(st.sampled_from([0, 9])),
            script={"printed_ns": "printed printed"} if is_script else None,
        )
        for index in draw(st.sampled_from([(0,), (0, 1), (1, 3)]))
    )
    lines: list[Fields] = [HELLO, *([SETTLED] if draw(st.booleans()) else [])]
    for trial in trials:
        body = scripted(trial) if is_script else built(trial)
        lines += [
            start_of(trial),
            *body,
            {"type": "trial_end", "trial": trial.index, "status": "ok"},
        ]
    return boot_of(*trials), [*lines, {"type": "bye", "trials": len(trials)}]
