"""The records that count after a kill: on both clocks, and in directories of older versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.model.record import (
    BootEnd,
    BootStart,
    KernelProblem,
    Outcome,
    Record,
    Sample,
    TrialEnd,
    TrialStart,
)
from kteardown.rundir.counting import TRIES, repeats, trials
from kteardown.rundir.directory import RunDir
from kteardown.rundir.writer import RecordWriter, open_writer


def start(acceleration: str) -> BootStart:
    return BootStart(
        kernel="base",
        block=0,
        seed=7,
        acceleration=acceleration,
        host_load=0.5,
        started_at="2026-03-01",
    )


def end(outcome: Outcome = "ok") -> BootEnd:
    return BootEnd(outcome=outcome, duration_s=2.5, first_record_s=1.0, command=[], host_load=0.5)


def trial(index: int, value: int, *, whole: bool = True) -> list[Record]:
    begun: list[Record] = [
        TrialStart(trial=index, workload="zombies", params={"zombies": index}),
        Sample(trial=index, repetition=0, metric="freeze_user_ns", value=value),
    ]
    return [*begun, TrialEnd(trial=index, status="ok", at_s=float(value))] if whole else begun


def write(log: RecordWriter, attempt: int, *records: Record) -> None:
    for record in records:
        log.append(record, boot=0, attempt=attempt)


def values(run: RunDir) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for boot in run.boots():
        for record in boot.records:
            if isinstance(record, Sample):
                found.setdefault(record.trial, []).append(record.value)
    return found


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir.create(tmp_path, "freezer")


def test_in_real_time_completed_trials_count_and_are_not_run_again(run: RunDir) -> None:
    with open_writer(run) as log:
        write(log, 0, start("kvm"), *trial(0, 10), *trial(1, 11, whole=False))
        assert log.completed(0) == {0}
        write(log, 1, start("kvm"), *trial(1, 21), *trial(2, 22, whole=False))
    with open_writer(run) as log:
        assert log.completed(0) == {0, 1}
        assert log.finished() == {}
        assert run.boots() == []
        write(log, 2, start("kvm"), *trial(2, 32), end())
        assert log.finished().keys() == {0}
    assert values(run) == {0: [10], 1: [21], 2: [32]}
    (boot,) = run.boots()
    assert boot.attempt == 2
    assert [record.attempt for record in boot.records if isinstance(record, TrialEnd)] == [0, 1, 2]


@pytest.mark.parametrize("jobs", [("", "7-n1"), ("7-n1", ""), ("7-n1", "8-n2")])
def test_a_boot_is_not_put_together_from_two_machines(run: RunDir, jobs: tuple[str, str]) -> None:
    first, second = (start("kvm").model_copy(update={"job": job}) for job in jobs)
    with open_writer(run) as log:
        write(log, 0, first, *trial(0, 1), *trial(1, 2))
    with open_writer(run) as log:
        assert log.completed(0) == (frozenset() if jobs[0] else {0, 1})
        write(log, 1, second, *trial(0, 11))
        assert log.completed(0) == (frozenset() if jobs[1] else {0})
        write(log, 1, end("panic"))
    assert values(run) == {0: [11]}


def test_a_trial_that_an_older_version_repeated_counts_once(run: RunDir) -> None:
    with open_writer(run) as log:
        write(log, 0, start("mttcg"), *trial(0, 10), *trial(1, 11))
        write(log, 1, start("mttcg"), *trial(0, 20), *trial(1, 21, whole=False), end("panic"))
    assert values(run) == {0: [20], 1: [21]}


def test_an_attempt_that_failed_because_of_the_host_does_not_count(run: RunDir) -> None:
    with open_writer(run) as log:
        write(log, 0, start("kvm"), *trial(0, 10), end("infrastructure-error"))
        assert log.completed(0) == set()
        write(log, 1, start("kvm"), *trial(0, 20), end())
    assert values(run) == {0: [20]}


def test_on_the_instruction_clock_the_whole_boot_is_repeated_and_compared(run: RunDir) -> None:
    with open_writer(run) as log:
        write(log, 0, start("icount"), *trial(0, 10), *trial(1, 11, whole=False))
        assert log.completed(0) == set()
        write(log, 1, start("icount"), *trial(0, 10), *trial(1, 11), end())
    assert values(run) == {0: [10], 1: [11]}
    (repeat,) = repeats(run.records())
    assert repeat.same


@pytest.mark.parametrize(
    ("again", "where"),
    [([*trial(0, 10), *trial(1, 12)], 1), ([*trial(0, 99)], 0), (trial(0, 10), 1)],
)
def test_a_repeated_boot_that_differs_is_found(
    run: RunDir, again: list[Record], where: int
) -> None:
    with open_writer(run) as log:
        write(log, 0, start("icount"), *trial(0, 10), *trial(1, 11, whole=False))
        write(log, 1, start("icount"), *again, end())
    (repeat,) = repeats(run.records())
    assert (repeat.same, repeat.trial) == (False, where)
    assert 1 not in values(run) or values(run)[1] != [11]


def disturbed(index: int, value: int) -> list[Record]:
    *begun, ended = trial(index, value)
    return [*begun, ended.model_copy(update={"disturbed": "other work of the host"})]


def test_disturbed_trials_of_a_boot_that_ended_ok_are_repeated_and_the_repetition_counts(
    run: RunDir,
) -> None:
    with open_writer(run) as log:
        write(log, 0, start("kvm"), *trial(0, 10), *disturbed(1, 11), *disturbed(2, 12), end())
        assert log.completed(0) == {0}
        assert log.to_repeat(0) == {1, 2}
        assert log.finished() == {}
    with open_writer(run) as log:
        assert log.completed(0) == {0}
        assert log.to_repeat(0) == {1, 2}
        write(log, 1, start("kvm"), *trial(1, 21), *disturbed(2, 22), end())
        assert log.completed(0) == {0, 1}
        assert log.to_repeat(0) == {2}
        write(log, 2, start("kvm"), *trial(2, 32), end())
        assert log.to_repeat(0) == set()
        assert log.finished().keys() == {0}
    assert values(run) == {0: [10], 1: [21], 2: [32]}
    assert [found.status for found in trials(run.boots()[0].records)] == ["ok", "ok", "ok"]


def test_a_trial_that_is_disturbed_in_every_try_is_void(run: RunDir) -> None:
    with open_writer(run) as log:
        for attempt in range(TRIES):
            assert log.finished() == {}
            write(log, attempt, start("mttcg"), *disturbed(0, attempt), end())
        assert log.finished().keys() == {0}
        assert log.completed(0) == {0}
    (found,) = trials(run.boots()[0].records)
    assert (found.status, found.detail, found.usable) == (
        "disturbed",
        "other work of the host",
        False,
    )


def test_a_repetition_that_the_host_fails_changes_nothing_and_is_tried_again(run: RunDir) -> None:
    with open_writer(run) as log:
        write(log, 0, start("kvm"), *trial(0, 10), *disturbed(1, 11), end())
        write(log, 1, start("kvm"), *trial(1, 21), end("infrastructure-error"))
        assert log.finished() == {}
        assert log.completed(0) == {0}
        assert run.boots()[0].end.outcome == "ok"
        assert values(run) == {0: [10], 1: [11]}
        write(log, 2, start("kvm"), *trial(1, 31), end())
    assert values(run) == {0: [10], 1: [31]}


def test_a_repetition_that_hangs_is_how_the_boot_ended(run: RunDir) -> None:
    with open_writer(run) as log:
        write(log, 0, start("kvm"), *trial(0, 10), *disturbed(1, 11), end())
        write(log, 1, start("kvm"), *trial(1, 21, whole=False), end("hang"))
        assert log.finished().keys() == {0}
    (boot,) = run.boots()
    assert boot.end.outcome == "hang"
    assert [found.status for found in trials(boot.records)] == ["ok", ""]


def test_a_problem_of_the_kernel_is_not_hidden_by_a_repetition(run: RunDir) -> None:
    warned = KernelProblem(kind="warning", line="WARNING: CPU: 0", trials=(1,))
    with open_writer(run) as log:
        write(
            log,
            0,
            start("kvm"),
            *disturbed(1, 11),
            end().model_copy(update={"problems": (warned,)}),
        )
        write(log, 1, start("kvm"), *trial(1, 21), end())
    (boot,) = run.boots()
    assert boot.end.problems == (warned,)


def test_a_trial_that_failed_is_not_excused_by_other_work(run: RunDir) -> None:
    start_of, sample, ended = trial(0, 10)
    void = ended.model_copy(update={"status": "void", "disturbed": "other work of the host"})
    with open_writer(run) as log:
        write(log, 0, start("kvm"), start_of, sample, void, end())
    (found,) = trials(run.boots()[0].records)
    assert found.status == "void"
