"""Whatever happens to jobs and to the driver, each boot is in the analysis once, and from one
execution."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kteardown.errors import LabError
from kteardown.model.record import BootStart, Record
from kteardown.progress import SilentReporter
from kteardown.run.execute import execute
from kteardown.run.setting import Bootable, Lab
from kteardown.rundir.directory import RunDir
from kteardown.rundir.environment import environment_notes
from kteardown.rundir.writer import RecordWriter, open_writer
from kteardown.vm.job import Acceleration
from kteardown_cluster.journal import Journal
from kteardown_cluster.slurm import Submission
from unit.cluster.driving import (
    CONFIG,
    KERNELS,
    Crash,
    Notes,
    counted,
    drive,
    expected,
    make_run,
    plan_of,
)
from unit.cluster.fake_scheduler import FakeScheduler
from unit.fake_machine import REPORTS, FakeBoot, FakeMachine

GUEST = FakeBoot(
    lines=tuple(
        json.dumps(line).encode()
        for line in (
            {"type": "trial_start", "trial": 0, "workload": "zombies", "params": {"zombies": 3}},
            {"type": "sample", "trial": 0, "repetition": 0, "metric": "freeze_user_ns", "value": 5},
            {"type": "trial_end", "trial": 0, "status": "ok"},
        )
    )
)
"""A guest of this host; its figure is another than those of the jobs."""


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return make_run(tmp_path)


def test_each_boot_of_the_instruction_clock_is_a_job(run: RunDir) -> None:
    scheduler = FakeScheduler()
    drive(run, scheduler, plan_of(3))
    done = [job.comment for job in scheduler.submissions if job.comment.startswith("done")]
    assert done == [f"done.boot-{n:04d}.0" for n in range(6)]
    assert counted(run) == expected(plan_of(3))


def test_one_boot_in_ten_is_executed_on_another_node(run: RunDir) -> None:
    scheduler = FakeScheduler()
    drive(run, scheduler, plan_of(6))
    checks = [job for job in scheduler.submissions if job.comment.startswith("check")]
    assert [(job.comment.split(".")[1], job.avoid) for job in checks] == [
        ("boot-0000", ("n1",)),
        ("boot-0010", ("n1",)),
    ]
    assert [each.same for each in Journal(run).compared()] == [True, True]
    assert environment_notes(run, run.records()) == []


def test_second_executions_do_not_keep_out_first_ones(run: RunDir) -> None:
    scheduler = FakeScheduler()
    plan = plan_of(16)

    def step() -> None:
        for number, (job, order) in enumerate(scheduler.queue):
            if job.live and (order.kind == "done" or scheduler.time > 10):
                scheduler.execute(number)

    scheduler.step = step
    drive(run, scheduler, plan, config=CONFIG.model_copy(update={"max_jobs": 2}))
    assert counted(run) == expected(plan)
    assert len(Journal(run).compared()) == 4


def test_nodes_that_disagree_are_in_the_notes_and_in_the_result(run: RunDir) -> None:
    scheduler = FakeScheduler()

    def step() -> None:
        for number, (job, order) in enumerate(scheduler.queue):
            if job.live:
                scheduler.execute(number, value=5 if order.kind == "check" else 0)

    scheduler.step = step
    notes = drive(run, scheduler, plan_of(1))
    assert any("boot 0 of base differed in trial 0 between n1 and n2" in note for note in notes)
    assert any(
        "boot 0 of base was executed on n1 and n2 and differed" in n
        for n in environment_notes(run, run.records())
    )


def test_a_block_of_the_wall_clock_is_one_exclusive_job(run: RunDir) -> None:
    scheduler = FakeScheduler()
    drive(run, scheduler, plan_of(2), acceleration="mttcg")
    assert [job.comment for job in scheduler.submissions] == [
        "done.block-0000-0000.0",
        "done.block-0001-0002.0",
    ]
    assert all(job.exclusive for job in scheduler.submissions)
    assert counted(run) == expected(plan_of(2))
    assert any("blocks per node: n1 2" in note for note in environment_notes(run, run.records()))


def test_a_piece_that_is_lost_too_often_is_an_error(run: RunDir) -> None:
    scheduler = FakeScheduler()

    def step() -> None:
        for number, (job, _) in enumerate(scheduler.queue):
            if job.live:
                scheduler.lose(number, "FAILED")

    scheduler.step = step
    with pytest.raises(LabError, match="was lost 3 times on the cluster, the last time: job"):
        drive(run, scheduler, plan_of(1), config=CONFIG.model_copy(update={"attempts": 3}))


def test_an_error_says_what_becomes_of_the_other_jobs(run: RunDir) -> None:
    scheduler, notes = FakeScheduler(), Notes()

    def step() -> None:
        if scheduler.queue[0][0].live:
            scheduler.lose(0, "CANCELLED")

    scheduler.step = step
    with pytest.raises(LabError, match="was lost 1 times"):
        drive(
            run,
            scheduler,
            plan_of(2),
            config=CONFIG.model_copy(update={"attempts": 1}),
            notes=notes,
        )
    assert "may still wait or run" in notes.lines[-1]
    assert f"scancel --name={scheduler.submissions[0].name}" in notes.lines[-1]


def test_the_second_execution_does_not_wait_for_a_node_that_is_down(run: RunDir) -> None:
    scheduler = FakeScheduler()
    scheduler.down = {"n2"}

    def step() -> None:
        for number, (job, order) in enumerate(scheduler.queue):
            if job.live and order.kind == "done":
                scheduler.execute(number)

    scheduler.step = step
    notes = drive(run, scheduler, plan_of(1))
    assert "boot 0 of base on a second node: no other node is up; it is not compared" in notes
    assert not any(job.live for job in scheduler.jobs(""))


def test_a_second_execution_that_the_cluster_refuses_does_not_end_the_run(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, submit = FakeScheduler(), FakeScheduler.submit

    def refuse(self: FakeScheduler, job: Submission) -> str:
        if job.comment.startswith("check"):
            raise LabError("sbatch: Requested node configuration is not available", hint="")
        return submit(self, job)

    monkeypatch.setattr(FakeScheduler, "submit", refuse)
    notes = drive(run, scheduler, plan_of(1))
    assert counted(run) == expected(plan_of(1))
    assert [note for note in notes if "is not available; it is not compared" in note]


def test_a_result_that_was_damaged_after_it_was_read_does_not_end_the_run(run: RunDir) -> None:
    scheduler = FakeScheduler()
    drive(run, scheduler, plan_of(1))
    journal = Journal(run)
    (journal.path / "compared.ndjson").unlink()
    (journal.path / "done" / "boot-0000.ndjson").write_text("damaged")
    journal.mark(unsettled=True)
    drive(run, scheduler, plan_of(1))
    assert counted(run) == expected(plan_of(1))


def test_a_block_that_a_node_began_is_not_finished_on_this_host(run: RunDir) -> None:
    scheduler, plan = FakeScheduler(), plan_of(2)
    # The driver is killed between the boots of a block.
    adopted = RecordWriter.adopt

    def cut(log: RecordWriter, attempts: Sequence[Sequence[Record]], *, boot: int) -> int:
        if boot == 1:
            raise Crash
        return adopted(log, attempts, boot=boot)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RecordWriter, "adopt", cut)
        with pytest.raises(Crash):
            drive(run, scheduler, plan, acceleration="mttcg")
    machine = FakeMachine(lambda job: GUEST)
    lab = Lab(run.path.parent / "agent", "x86_64", "mttcg", REPORTS, machine=machine)
    kernels = {name: Bootable(run.path.parent / name) for name in KERNELS}
    with open_writer(run, {"kernel": "6"}) as log:
        execute(plan, kernels, lab, log, SilentReporter())
    assert counted(run) == {boot.index: [5] for boot in plan.boots}


def test_a_damaged_result_is_put_aside(run: RunDir) -> None:
    scheduler = FakeScheduler()

    def step() -> None:
        scheduler.run_all()
        done = Journal(run).path / "done" / "boot-0001.ndjson"
        if len(scheduler.submissions) == 1:
            done.write_bytes(done.read_bytes()[:-30])

    scheduler.step = step
    plan = plan_of(1).model_copy(update={"boots": plan_of(1).boots[1:]})
    notes = drive(run, scheduler, plan)
    assert "its result is damaged" in notes[0]
    assert counted(run) == {1: [1001]}


EVENTS = ("run", "again", "cancel", "forget", "crash", "publish and crash", "fail", "nothing")


def happens(event: str, scheduler: FakeScheduler, number: int, data: st.DataObject) -> None:
    """Let one thing happen to a job, or to the driver."""
    match event:
        case "run" | "again":
            state = data.draw(st.sampled_from(("COMPLETED", "RUNNING", "NODE_FAIL")), "state")
            scheduler.execute(number, state=state)
        case "cancel":
            scheduler.lose(
                number, data.draw(st.sampled_from(("CANCELLED", "TIMEOUT", "COMPLETED")), "state")
            )
        case "forget":
            scheduler.lose(number, None)
        case "fail":
            scheduler.fail(
                number, "full", data.draw(st.sampled_from(("n1", "n2")), "node"), host=True
            )
        case "publish and crash":
            scheduler.execute(number)
            raise Crash
        case "crash":
            raise Crash


@settings(max_examples=40)
@given(st.data(), st.sampled_from(["icount", "mttcg"]))
def test_any_order_of_events_gives_each_boot_once(
    data: st.DataObject, acceleration: Acceleration
) -> None:
    plan, scheduler = plan_of(3), FakeScheduler()
    left = [data.draw(st.integers(0, 25), "faults")]

    def step() -> None:
        if left[0] <= 0:
            scheduler.run_all()
        elif scheduler.queue:
            left[0] -= 1
            number = data.draw(st.integers(0, len(scheduler.queue) - 1), "job")
            happens(data.draw(st.sampled_from(EVENTS), "event"), scheduler, number, data)

    scheduler.step = step
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder))
        while True:
            try:
                drive(run, scheduler, plan, acceleration=acceleration)
                break
            except Crash:
                _cut(run, data)
            except LabError as error:
                # Each node had a fault before anything worked.
                assert "no node of the cluster can run the jobs" in error.message
        assert counted(run) == expected(plan)
        assert not any(job.live for job in scheduler.jobs(""))
        assert all(each.same for each in Journal(run).compared())
        _blocks_are_whole(run, acceleration)


def _cut(run: RunDir, data: st.DataObject) -> None:
    """Cut what the last write of a driver that was killed may not have finished."""
    if run.records_file.path.is_file() and data.draw(st.booleans(), "cut"):
        text = run.records_file.path.read_bytes()
        run.records_file.path.write_bytes(
            text[: len(text) - data.draw(st.integers(0, min(900, len(text))), "bytes")]
        )


def _blocks_are_whole(run: RunDir, acceleration: Acceleration) -> None:
    """On the wall clock, all boots of a block are from the same execution of a job."""
    jobs: dict[int, set[str]] = {}
    for boot in run.boots():
        jobs.setdefault(boot.start.block, set()).add(boot.start.job)
    assert acceleration == "icount" or all(len(names) == 1 for names in jobs.values())
    starts = [record for record in run.records() if isinstance(record, BootStart)]
    assert len({(start.boot, start.attempt) for start in starts}) == len(starts)
