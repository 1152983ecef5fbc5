"""Nodes that cannot run a job are avoided, and a fault that all have is one error."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.errors import LabError
from kteardown.rundir.directory import RunDir
from unit.cluster.driving import Crash, counted, drive, expected, make_run, plan_of
from unit.cluster.fake_scheduler import FakeScheduler


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return make_run(tmp_path)


def test_a_run_folder_that_no_node_sees_is_one_error(run: RunDir) -> None:
    scheduler = FakeScheduler()

    def step() -> None:
        for number, (job, _) in enumerate(scheduler.queue):
            if job.live:
                scheduler.lose(number, "FAILED", node=f"n{1 + number % 2}", output=None)

    scheduler.step = step
    with pytest.raises(
        LabError, match=r"no node of the cluster can run.*does not see .*/jobs.*all nodes"
    ):
        drive(run, scheduler, plan_of(1))
    assert len(scheduler.submissions) <= 3


def test_a_fault_that_every_node_has_is_one_error(run: RunDir) -> None:
    scheduler = FakeScheduler()

    def step() -> None:
        for number, (job, _) in enumerate(scheduler.queue):
            if job.live:
                scheduler.fail(
                    number, "this node has another build of QEMU", f"n{1 + number % 2}", host=True
                )

    scheduler.step = step
    with pytest.raises(
        LabError,
        match=r"no node of the cluster can run the jobs; the last one, n.: this node has another",
    ):
        drive(run, scheduler, plan_of(1))
    assert len(scheduler.submissions) <= 3


def test_a_fault_that_every_node_has_for_a_while_is_waited_for(run: RunDir) -> None:
    scheduler = FakeScheduler()
    full = [True]

    def step() -> None:
        if not scheduler.executed:
            scheduler.execute(0)
        for number, (job, _) in enumerate(scheduler.queue):
            if job.live and full[0] and len(scheduler.submissions) < 9:
                scheduler.fail(number, "No space left on device", f"n{1 + number % 2}", host=True)
            elif job.live:
                scheduler.execute(number)

    scheduler.step = step
    drive(run, scheduler, plan_of(1))
    assert counted(run) == expected(plan_of(1))


def test_nodes_of_another_cluster_are_not_named(run: RunDir) -> None:
    scheduler = FakeScheduler()

    def step() -> None:
        scheduler.execute(0)
        raise Crash

    scheduler.step = step
    with pytest.raises(Crash):
        drive(run, scheduler, plan_of(1))
    moved = FakeScheduler(nodes=("m1", "m2"))
    drive(run, moved, plan_of(1))
    assert {name for job in moved.submissions for name in job.avoid} <= {"m1", "m2"}
    assert counted(run) == expected(plan_of(1))


def test_the_rest_of_a_boot_runs_on_the_node_of_its_block(run: RunDir) -> None:
    scheduler = FakeScheduler()
    plan = plan_of(1)
    drive(run, scheduler, plan, acceleration="mttcg")
    (node,) = {boot.start.node for boot in run.boots()}
    rest = plan.boots[1].model_copy(update={"index": 2})
    scheduler.names = ["n0", "n1", "n2"]
    drive(
        run, scheduler, plan.model_copy(update={"boots": (*plan.boots, rest)}), acceleration="mttcg"
    )
    assert scheduler.submissions[-1].node == node == "n1"


def test_a_node_at_fault_is_avoided(run: RunDir) -> None:
    scheduler = FakeScheduler()

    def step() -> None:
        for number, (job, _) in enumerate(scheduler.queue):
            if job.live and not scheduler.submissions[int(job.id) - 1].avoid:
                scheduler.fail(number, "No space left on device", "n1", host=True)
            elif job.live:
                scheduler.execute(number)

    scheduler.step = step
    plan = plan_of(1).model_copy(update={"boots": plan_of(1).boots[1:]})
    notes = drive(run, scheduler, plan)
    assert "n1: No space left on device; submitting it again (2 of 50)" in notes[0]
    assert [job.avoid for job in scheduler.submissions] == [(), ("n1",)]


def test_a_cluster_without_nodes_is_an_error(run: RunDir) -> None:
    with pytest.raises(LabError, match="the cluster has no nodes"):
        drive(run, FakeScheduler(nodes=()), plan_of(1))
