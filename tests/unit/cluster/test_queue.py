"""What is said of jobs that wait or are lost, and a scheduler that does not answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kteardown.rundir.directory import RunDir
from unit.cluster.driving import counted, drive, expected, make_run, plan_of
from unit.cluster.fake_scheduler import FakeScheduler


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return make_run(tmp_path)


def test_a_lost_job_is_submitted_again_and_the_reason_is_one_line(run: RunDir) -> None:
    scheduler = FakeScheduler()
    losses = iter(["CANCELLED", "TIMEOUT", "NODE_FAIL", None])

    def step() -> None:
        if scheduler.queue and scheduler.queue[-1][0].live:
            state = next(losses, "run")
            if state == "run":
                scheduler.run_all()
            else:
                scheduler.lose(len(scheduler.queue) - 1, state)

    scheduler.step = step
    plan = plan_of(1).model_copy(update={"boots": plan_of(1).boots[1:]})
    notes = drive(run, scheduler, plan)
    assert [note.partition(": ")[2].partition(";")[0] for note in notes[:4]] == [
        "job 1 was cancelled",
        "job 2 reached its time limit of 120 minutes",
        "job 3 lost its node",
        "the cluster does not know job 4 any more",
    ]
    assert [job.minutes for job in scheduler.submissions] == [120, 120, 240, 240, 240]
    assert all("\n" not in note for note in notes)
    assert counted(run) == {1: [1001]}


def test_a_long_queue_is_reported_with_the_reason_of_the_scheduler(run: RunDir) -> None:
    scheduler = FakeScheduler()
    scheduler.step = lambda: scheduler.run_all() if scheduler.time > 200 else None
    notes = drive(run, scheduler, plan_of(1))
    assert notes == ["2 jobs wait in the queue of the cluster: Priority (2)"]


def test_reasons_that_alternate_are_said_once(run: RunDir) -> None:
    scheduler = FakeScheduler()

    def step() -> None:
        reason = ("Priority", "Resources")[int(scheduler.time) % 2]
        scheduler.queue = [(replace(job, reason=reason), order) for job, order in scheduler.queue]
        if scheduler.time > 200:
            scheduler.run_all()

    scheduler.step = step
    notes = drive(run, scheduler, plan_of(1))
    assert sorted(note.rpartition(": ")[2] for note in notes) == ["Priority (2)", "Resources (2)"]


def test_a_controller_that_does_not_answer_is_asked_again(run: RunDir) -> None:
    scheduler = FakeScheduler()
    scheduler.unreachable = 7
    notes = drive(run, scheduler, plan_of(1))
    assert (
        notes[0] == "the cluster does not answer: Unable to contact slurm controller; asking again"
    )
    assert counted(run) == expected(plan_of(1))
