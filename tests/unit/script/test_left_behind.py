from __future__ import annotations

from collections.abc import Sequence

import pytest

from kteardown.model.plan import PlannedTrial
from kteardown.model.record import Check, Record, Sample, TrialEnd
from kteardown.model.script_records import Delta, OutputLine, ScriptEnd
from kteardown.script import left_behind
from kteardown.script.left_behind import LeftBehind
from unit.script.lines import delta, logged, printed

SCRIPT = {"wait_ns": "printed wait", "slab_kb": "delta meminfo Slab", "part_ns": "mark part"}


def planned(
    index: int = 0, *, warmup: int = 0, repetitions: int = 1, script: bool = True
) -> PlannedTrial:
    return PlannedTrial(
        index=index,
        workload="mine",
        params={"N": 5},
        warmup=warmup,
        repetitions=repetitions,
        script=SCRIPT if script else None,
    )


def ended(trial: int = 0, repetition: int = 0, dropped: int = 0) -> ScriptEnd:
    return ScriptEnd(trial=trial, repetition=repetition, how="exit", code=0, dropped=dropped)


def kept(left: LeftBehind, records: Sequence[Record]) -> list[Record]:
    return [one for record in records for one in left.add(record)]


def sampled(records: Sequence[Record]) -> list[tuple[str, float, bool]]:
    return [(one.metric, one.value, one.warmup) for one in records if isinstance(one, Sample)]


def test_the_end_of_a_repetition_makes_samples_of_all_that_came_before() -> None:
    output = [*printed("wait 3 us"), *logged((1, "kt-begin part"), (4, "kt-end part"))]
    left = LeftBehind([planned()])
    assert kept(left, [*output, delta("meminfo", "Slab", 12)]) == []
    found = kept(left, [ended(dropped=2)])
    assert sampled(found) == [
        ("wait_ns", 3000, False),
        ("slab_kb", 12, False),
        ("part_ns", 3000, False),
    ]
    assert found[:3] == output and isinstance(found[3], Delta)
    assert found[-1] == ended(dropped=2)


def test_samples_of_a_warm_up_say_so() -> None:
    left = LeftBehind([planned(warmup=1)])
    first = kept(left, [*printed("wait 3 ns"), ended()])
    second = [line.model_copy(update={"repetition": 1}) for line in printed("wait 4 ns")]
    assert sampled(first) == [("wait_ns", 3, True)]
    assert sampled(kept(left, [*second, ended(repetition=1)])) == [("wait_ns", 4, False)]


def test_records_of_other_workloads_pass() -> None:
    left = LeftBehind([planned(0), planned(1, script=False)])
    other = Sample(trial=1, repetition=0, metric="wait_ns", value=9)
    end = TrialEnd(trial=1, status="ok")
    assert kept(left, [other, end]) == [other, end]


def test_the_agent_has_no_metric_of_the_same_name_as_the_users() -> None:
    own = [Sample(trial=0, repetition=0, metric=name, value=1) for name in ("wait_ns", "whole_ns")]
    assert kept(LeftBehind([planned()]), own) == own[1:]


def test_of_many_lines_those_with_a_value_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_behind, "_KEPT", 2)
    output = printed("a", "b", "c", "wait 3 ns", "d")
    found = kept(LeftBehind([planned()]), [*output, *logged((1, "of the log")), ended(dropped=1)])
    assert [one.text for one in found if isinstance(one, OutputLine)] == [
        "a",
        "b",
        "wait 3 ns",
        "of the log",
    ]
    assert found[-1] == ended(dropped=3)


def test_what_a_guest_writes_without_an_end_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_behind, "LINES", 3)
    monkeypatch.setattr(left_behind, "_DELTAS", 2)
    left = LeftBehind([planned()])
    kept(left, [*printed(*"abcde"), *(delta("vmstat", name, 1) for name in "abc")])
    found = kept(left, [ended()])
    assert [type(one).__name__ for one in found] == [
        *["OutputLine"] * 3,
        *["Delta"] * 2,
        "ScriptEnd",
    ]
    assert found[-1] == ended(dropped=2)


def test_a_value_too_large_for_a_record_is_none() -> None:
    found = kept(
        LeftBehind([planned()]), [*printed("wait 1e99 s", f"wait {2**63 - 1} ns"), ended()]
    )
    assert sampled(found) == [("wait_ns", 2**63 - 1, False)]


TAP = ("TAP version 13", "1..6", "ok 1 a", *(f"not ok {number} b" for number in range(2, 7)))


def test_a_trial_with_a_failed_test_is_void() -> None:
    left = LeftBehind([planned(0), planned(1)])
    check = Check(trial=0, repetition=0, name="ended", ok=True)
    *_, passed, end = kept(left, [*printed(*TAP), ended(), check, TrialEnd(trial=0, status="ok")])
    assert passed == check
    assert isinstance(end, TrialEnd) and end.status == "void"
    assert end.detail == "a test failed: not ok 2 b; not ok 3 b; not ok 4 b; and 2 more"
    # Another trial of the same boot is its own.
    assert kept(left, [ended(trial=1), TrialEnd(trial=1, status="ok")])[-1] == TrialEnd(
        trial=1, status="ok"
    )


def test_a_trial_that_failed_stays_failed() -> None:
    end = TrialEnd(trial=0, status="failed", detail="cannot fork")
    assert kept(LeftBehind([planned()]), [*printed(*TAP), ended(), end])[-1] == end
