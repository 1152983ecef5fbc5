"""What a guest may send next: whole sequences of every sort pass, and no forgery of one of them
does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.errors import InputError
from kteardown.inputs.counts import METRICS
from kteardown.inputs.load import load_workload, stress_names, workload_names
from kteardown.model.plan import PlannedBoot, PlannedTrial
from kteardown.model.record import ProfileStretch, Record, TrialStart
from kteardown.paths import data_dir
from kteardown.run.guest_records import ForgedError, GuestRecords, reports_of
from kteardown.rundir import counting
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load, load_workloads
from kteardown_hunt.plan import REPORTS as HUNT
from unit.run.sequences import (
    HELLO,
    MINE,
    REPORTS,
    Fields,
    boot_of,
    scripted,
    sequences,
    start_of,
    take,
)

DATA = Path(__file__).parents[2] / "data"


@given(sequences(), st.data())
def test_what_an_agent_sends_passes_also_if_it_ends_early(
    sequence: tuple[PlannedBoot, list[Fields]], data: st.DataObject
) -> None:
    boot, lines = sequence
    assert len(take(boot, lines)) == len(lines)
    end = data.draw(st.integers(0, len(lines) - 1))
    take(boot, [*lines[:end], {"type": "error", "detail": "no memory"}])


FREE = {"alive", "sample", "check", "output", "delta", "stack", "wait", "histogram"}
"""Records of which some may come twice, or in another order, and mean the same."""
EVERYWHERE: tuple[Fields, ...] = (
    {
        "type": "boot_start",
        "kernel": "base",
        "block": 0,
        "seed": 1,
        "acceleration": "icount",
        "host_load": 0.0,
        "started_at": "",
    },
    {
        "type": "boot_end",
        "outcome": "ok",
        "duration_s": 1.0,
        "first_record_s": 1.0,
        "command": [],
        "host_load": 0.0,
    },
    {"type": "sample", "trial": 7, "repetition": 0, "metric": "a_ns", "value": 1},
    {"type": "sample", "trial": 0, "repetition": 9, "metric": "a_ns", "value": 1},
    {"type": "sample", "trial": 0, "repetition": 0, "metric": "c_ns", "value": 1},
    {"type": "sample", "trial": 0, "repetition": 0, "metric": "printed_ns", "value": 1},
    {"type": "check", "trial": 0, "repetition": 0, "name": "other", "ok": True},
    {"type": "output", "trial": 9, "repetition": 0, "source": "script", "at_ns": 1, "text": "x"},
    {"type": "ended", "trial": 9, "repetition": 0, "how": "exit", "code": 0},
    {"type": "trial_end", "trial": 9, "status": "ok"},
    {"type": "trial_start", "trial": 9, "workload": "built", "params": {}},
    {"type": "bye", "trials": 0},
    {"type": "settled", "clocksource": "tsc"},
    {"type": "nonesuch"},
    HELLO,
)


@given(sequences(), st.sampled_from(EVERYWHERE), st.data())
def test_what_comes_nowhere_is_refused_everywhere(
    sequence: tuple[PlannedBoot, list[Fields]], forged: Fields, data: st.DataObject
) -> None:
    boot, lines = sequence
    at = data.draw(st.integers(1, len(lines)))
    with pytest.raises(ForgedError):
        take(boot, [*lines[:at], forged, *lines[at:]])


@given(sequences(), st.data())
def test_a_record_of_the_order_is_there_once_and_at_its_place(
    sequence: tuple[PlannedBoot, list[Fields]], data: st.DataObject
) -> None:
    boot, lines = sequence
    ordered = [at for at, line in enumerate(lines) if line["type"] not in FREE]
    at = data.draw(st.sampled_from(ordered))
    with pytest.raises(ForgedError):
        take(boot, [*lines[: at + 1], *lines[at:]])
    other = data.draw(st.sampled_from([each for each in ordered if each > at] or [0]))
    if other:
        swapped = [*lines]
        swapped[at], swapped[other] = swapped[other], swapped[at]
        with pytest.raises(ForgedError):
            take(boot, swapped)


CHANGES: Mapping[str, Mapping[str, Sequence[object]]] = {
    "sample": {
        "trial": [5],
        "repetition": [-1, 9],
        "metric": ["c_ns", "printed_ns", ""],
        "boot": [0],
        "attempt": [0],
        "kept": [1],
    },
    "histogram": {
        "trial": [5],
        "repetition": [-1, 9],
        "metric": ["a_ns"],
        "buckets": [[[3, 1], [2, 1]]],
        "boot": [0],
    },
    "check": {"trial": [5], "repetition": [9], "name": ["other"], "boot": [0]},
    "trial_start": {
        "trial": [5, -1],
        "workload": ["other", "mine", "boot"],
        "params": [{}, {"N": 3}],
        "at_s": [1.0],
    },
    "trial_end": {"trial": [5], "at_s": [1.0], "lost": [None], "disturbed": [""], "boot": [0]},
    "profile": {"trial": [5], "repetition": [9]},
    "stack": {"trial": [5], "count": [4, 0, -1]},
    "waits": {"trial": [5], "repetition": [9], "waits": [-1, 0], "boot": [0]},
    "wait": {"trial": [5], "repetition": [9], "count": [4, 0, -1]},
    "output": {"trial": [5], "repetition": [9], "boot": [0]},
    "ended": {"trial": [5], "repetition": [9]},
    "bye": {"trials": [0, 9], "boot": [0]},
    "hello": {"boot": [0], "type": ["bye"], "kept_from": [""]},
    "settled": {"node": ["n1"]},
    "alive": {"trial": [5]},
    "delta": {"trial": [5]},
}


@given(sequences(), st.data())
def test_a_record_with_another_value_is_refused(
    sequence: tuple[PlannedBoot, list[Fields]], data: st.DataObject
) -> None:
    boot, lines = sequence
    at = data.draw(st.integers(0, len(lines) - 1))
    key, values = data.draw(st.sampled_from(sorted(CHANGES[lines[at]["type"]].items())))
    lines[at] = {**lines[at], key: data.draw(st.sampled_from(list(values)))}
    with pytest.raises(ForgedError):
        take(boot, lines)


@given(sequences(), st.data())
def test_the_warm_up_is_that_of_the_plan(
    sequence: tuple[PlannedBoot, list[Fields]], data: st.DataObject
) -> None:
    boot, lines = sequence
    at = data.draw(
        st.sampled_from(
            [n for n, line in enumerate(lines) if line["type"] in ("sample", "histogram")]
        )
    )
    lines[at] = {**lines[at], "warmup": not lines[at].get("warmup", False)}
    with pytest.raises(ForgedError, match="warm-up"):
        take(boot, lines)


SCRIPT = PlannedTrial(
    index=0,
    workload="mine",
    params={"N": 5},
    warmup=1,
    repetitions=2,
    script={"printed_ns": "printed x"},
)


@pytest.mark.parametrize("after", range(len(list(scripted(SCRIPT)))))
def test_a_script_forges_no_part_of_its_own_report(after: int) -> None:
    """Whatever a process of a script sends while it runs, the agent sends afterwards: a second
    time."""
    lines = [*scripted(SCRIPT)]
    is_running = [n for n, line in enumerate(lines) if line["type"] == "alive"]
    for at in is_running:
        forged = {**lines[after], "repetition": lines[at + 1]["repetition"]}
        if forged["type"] == "alive":
            continue
        with pytest.raises(ForgedError):
            take(
                boot_of(SCRIPT),
                [HELLO, start_of(SCRIPT), *lines[: at + 1], forged, *lines[at + 1 :]],
            )


def test_a_whole_forged_repetition_is_refused_by_the_real_one() -> None:
    lines = [*scripted(SCRIPT)]
    one = len(lines) // 3
    ahead = [*lines[:one], *lines]
    with pytest.raises(ForgedError):
        take(boot_of(SCRIPT), [HELLO, start_of(SCRIPT), *ahead])
    end = {"type": "trial_end", "trial": 0, "status": "ok"}
    with pytest.raises(ForgedError, match="repetitions are left"):
        take(boot_of(SCRIPT), [HELLO, start_of(SCRIPT), *lines[:one], end])
    take(boot_of(SCRIPT), [HELLO, start_of(SCRIPT), *lines[:one], {**end, "status": "void"}])


def test_a_script_shares_no_boot_with_another_workload() -> None:
    other = PlannedTrial(index=1, workload="built", params={}, warmup=0, repetitions=1)
    with pytest.raises(InputError, match="runs a script beside other workloads: built, mine"):
        GuestRecords(boot_of(SCRIPT, other), REPORTS)
    GuestRecords(boot_of(SCRIPT, SCRIPT.model_copy(update={"index": 1})), REPORTS)


def test_of_a_script_only_the_agent_measures_and_counts() -> None:
    counted = MINE.model_copy(
        update={"metrics": {**MINE.metrics, **METRICS}, "invariants": {"counted": ""}}
    )
    plain, with_counts = reports_of({"mine": MINE})["mine"], reports_of({"mine": counted})["mine"]
    assert plain.metrics == {"whole_ns", "cpu_us", "all_gone_ns"}
    assert with_counts.metrics == plain.metrics | METRICS.keys()
    assert plain.invariants == {"ended"}
    assert with_counts.invariants == {"ended", "counted"}


def test_a_long_environment_may_be_cut() -> None:
    long = SCRIPT.model_copy(update={"params": {"TEXT": "x" * 3000}})
    start = start_of(long)
    start["params"]["environment"] = start["params"]["environment"][:2000]
    take(boot_of(long), [HELLO, start])
    start["params"]["environment"] = "TEXT=y"
    with pytest.raises(ForgedError):
        take(boot_of(long), [HELLO, start])


def test_every_shipped_workload_declares_what_its_c_files_report() -> None:
    """A name that is not declared would make a boot void."""
    for name in {*workload_names(), *stress_names()}:
        reports = reports_of({name: load_workload(name)})[name]
        places = [data_dir("agent") / kind for kind in ("workloads", "stress")]
        files = [
            file for place in places for file in (place / f"{name}.c", *(place / name).glob("*.c"))
        ]
        text = "".join(file.read_text() for file in files if file.is_file())
        assert text, name
        sampled = set(re.findall(r'wl_sample(?:_ratio)?\(t,\s*"(\w+)"', text))
        assert sampled <= reports.metrics, name
        assert set(re.findall(r'wl_check\(t,\s*"(\w+)"', text)) <= reports.invariants, name
        assert set(re.findall(r'wl_histogram\(t,\s*"(\w+)"', text)) <= reports.histograms, name
    hunt = (data_dir("agent") / "hunt" / "hunt.c").read_text()
    assert set(re.findall(r'wl_sample\(t,\s*"(\w+)"', hunt)) == HUNT["hunt"].metrics
    checked = set(re.findall(r'(?:wl_check|locks_end)\(t,\s*"(\w+)"', hunt))
    assert checked == HUNT["hunt"].invariants


def guest_lines(records: Sequence[Record], boot: PlannedBoot) -> Iterator[Fields]:
    """Yield recorded records as the guest sent them."""
    for record in records:
        fields = json.loads(record.model_dump_json(exclude_unset=True))
        added = {
            "boot",
            "attempt",
            *({"at_s", "lost", "disturbed"} if record.type == "trial_end" else ()),
        }
        fields = {name: value for name, value in fields.items() if name not in added}
        if isinstance(record, TrialStart):
            fields["params"] = {
                name: v for name, v in fields["params"].items() if name not in boot.machine
            }
        yield fields


def plan_from(records: Sequence[Record]) -> PlannedBoot:
    """Return a plan with which the records can have been made."""
    trials = []
    for start in (record for record in records if isinstance(record, TrialStart)):
        mine = [record for record in records if getattr(record, "trial", None) == start.trial]
        repetitions = {getattr(record, "repetition", 0) for record in mine}
        warm = {
            getattr(record, "repetition", 0) for record in mine if getattr(record, "warmup", False)
        }
        period = max(
            (record.period_ns for record in mine if isinstance(record, ProfileStretch)), default=0
        )
        trials.append(
            PlannedTrial(
                index=start.trial,
                workload=start.workload,
                params=dict(start.params),
                warmup=len(warm),
                repetitions=max(repetitions) + 1 - len(warm),
                profile_ns=period,
            )
        )
    return boot_of(*trials)


def test_recorded_boots_pass() -> None:
    run = RunDir(DATA / "runs/20261122-112017-freezer")
    plan, reports = load(run).plan, reports_of(load_workloads(run))
    attempts = counting.attempts(run.records())
    assert len(attempts) == 6
    for attempt in attempts:
        boot = plan.boots[attempt.boot]
        take(boot, list(guest_lines(attempt.records, boot)), reports)


@pytest.mark.parametrize("stage", ["screen", "confirm", "profile-sync"])
def test_recorded_boots_of_a_hunt_pass(stage: str) -> None:
    """The data leaves out some kinds, so the last record counts more trials."""
    for attempt in counting.attempts(RunDir(DATA / "hunt/recorded" / stage).records()):
        boot = plan_from(attempt.records)
        take(
            boot,
            [line for line in guest_lines(attempt.records, boot) if line["type"] != "bye"],
            HUNT,
        )


@pytest.mark.parametrize("sent", ["profile", "nothing"])
def test_a_script_that_does_not_end_fails_its_trial_and_is_not_forged(sent: str) -> None:
    """If SIGKILL does not end it, the agent reports only what it measures around the repetition."""
    trial = PlannedTrial(
        index=0,
        workload="mine",
        params={},
        warmup=0,
        repetitions=2,
        profile_ns=9,
        script={"a_ns": "a"},
    )
    at: Fields = {"trial": 0, "repetition": 0}
    profile = {
        "type": "profile",
        **at,
        "period_ns": 9,
        "stretch_ns": 90,
        "cpus": 1,
        "samples": 1,
        "lost": 0,
    }
    around = [profile, {"type": "stack", **at, "stack": "a;b", "count": 1, "ns": 9}]
    body = around if sent == "profile" else []
    failed = {"type": "trial_end", "trial": 0, "status": "failed", "detail": "processes are left"}
    lines = [HELLO, start_of(trial), *body, failed, {"type": "bye", "trials": 1}]
    assert len(take(boot_of(trial), lines)) == len(lines)
    passed = [HELLO, start_of(trial), *body, {**failed, "status": "ok"}]
    with pytest.raises(ForgedError):
        take(boot_of(trial), passed)
    printed = {"type": "sample", **at, "metric": "whole_ns", "value": 5}
    if sent == "profile":
        with pytest.raises(ForgedError):
            take(boot_of(trial), [HELLO, start_of(trial), *body, printed])


WAITED: tuple[Fields, ...] = (
    {"type": "waits", "trial": 0, "repetition": 0, "stretch_ns": 5, "waits": 2, "lost": 0},
    {"type": "wait", "trial": 0, "repetition": 0, "stack": "a;b", "count": 2, "ns": 4},
)


@pytest.mark.parametrize(
    ("workload", "profile_ns", "allowed"), [("hunt", 1, True), ("hunt", 0, False), ("a", 1, False)]
)
def test_waits_come_only_from_a_workload_that_watches_them_where_that_is_planned(
    workload: str, profile_ns: int, allowed: bool
) -> None:
    trial = PlannedTrial(
        index=0, workload=workload, params={}, warmup=0, repetitions=1, profile_ns=profile_ns
    )
    boot = PlannedBoot(index=0, block=0, kernel="base", seed=1, trials=(trial,))
    start: Fields = {"type": "trial_start", "trial": 0, "workload": workload, "params": {}}
    guest = GuestRecords(boot, HUNT)
    for fields in (HELLO, start):
        guest.next(json.dumps(fields).encode())
    for fields in WAITED:
        line = json.dumps(fields).encode()
        if allowed:
            guest.next(line)
        else:
            with pytest.raises(ForgedError):
                guest.next(line)
    with pytest.raises(ForgedError):
        guest.next(json.dumps(WAITED[1]).encode())
