"""A job on a node: it trusts nothing that it can check, and publishes all or nothing."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from kteardown.errors import LabError
from kteardown.model.plan import Plan, PlannedBoot, PlannedTrial
from kteardown.model.record import BootEnd, BootStart, LostTime, TrialEnd
from kteardown.run.setting import Bootable, GuestSetup
from kteardown.rundir.directory import RunDir
from kteardown.rundir.writer import open_writer
from kteardown.vm.job import BootJob
from kteardown_cluster import node_job as jobs
from kteardown_cluster.journal import Failure, Journal
from kteardown_cluster.node_job import Order, host_lock, staged
from kteardown_cluster.slurm import SlurmConfig
from unit.fake_machine import REPORTS, FakeBoot, FakeMachine

GOOD = FakeBoot(lines=(json.dumps({"type": "bye", "trials": 0}).encode(),))


TRIAL = PlannedTrial(index=0, workload="zombies", params={}, warmup=0, repetitions=1)


def _good(job: BootJob) -> FakeBoot:
    return GOOD


def _sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Order:
    run = RunDir.create(tmp_path / "runs", "test")
    journal = Journal(run)
    journal.create()
    attempt, _ = journal.new_attempt("block-0000-0000")
    for name in ("image", "agent", "qemu-system-x86_64"):
        (tmp_path / name).write_text(name)
    (tmp_path / "qemu-system-x86_64").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    boots = tuple(
        PlannedBoot(index=n, block=0, kernel=kernel, seed=7, trials=())
        for n, kernel in enumerate(("base", "base-twin"))
    )
    files = Bootable(image=tmp_path / "image")
    return Order(
        key="block-0000-0000",
        attempt=attempt,
        kind="done",
        journal=journal.path,
        plan=Plan(boots=boots, cpus=1, memory_mb=64, silence_s=1),
        kernels={"base": files, "base-twin": files},
        setup=GuestSetup(tmp_path / "agent", "x86_64", "mttcg", REPORTS),
        hashes={str(path): _sha(path) for path in (tmp_path / "image", tmp_path / "agent")},
        qemu=_sha(tmp_path / "qemu-system-x86_64"),
        exclusive=True,
        config=SlurmConfig(lock_folder=str(tmp_path), lock_wait_s=0),
    )


def _run(
    order: Order, monkeypatch: pytest.MonkeyPatch, script: Callable[[BootJob], FakeBoot]
) -> int:
    monkeypatch.setattr(jobs, "QemuMachine", lambda inherit: FakeMachine(script))
    monkeypatch.setattr("kteardown.vm.host.facts", lambda: {"kernel": "6"})
    file = order.journal / "attempts" / order.key / "0" / "order.json"
    file.write_text(order.model_dump_json())
    return jobs.main([str(file)])


def _failures(order: Order) -> list[Failure]:
    return list(_journal(order).failures({(order.key, order.attempt)}).values())


def _journal(order: Order) -> Journal:
    return Journal(RunDir(order.journal.parent))


def test_a_block_is_published_whole_with_its_node(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _run(order, monkeypatch, lambda job: GOOD) == 0
    found = _journal(order).read("done", order.key)
    assert (found.receipt.node, found.receipt.job, list(found.boots)) == ("n1", "7", [0, 1])
    start = found.boots[1][0]
    assert isinstance(start, BootStart)
    assert (start.node, start.job) == ("n1", found.receipt.name)
    assert not list(order.journal.rglob("*.cpio"))


def test_a_host_that_fails_in_the_middle_of_a_block_publishes_nothing(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, broken = (
        iter([GOOD]),
        FakeBoot(outcome="infrastructure-error", detail="QEMU ended by itself"),
    )
    assert _run(order, monkeypatch, lambda job: next(answers, broken)) == 1
    assert not _journal(order).published("done")
    (failure,) = _failures(order)
    reason = "boot 1 of base-twin failed 3 times because of the host: QEMU ended by itself"
    assert (failure.node, failure.reason, failure.host) == ("n1", reason, True)


def test_an_attempt_that_failed_because_of_the_host_is_left_out_of_the_run(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([FakeBoot(outcome="infrastructure-error", detail="QEMU ended by itself")])
    assert _run(order, monkeypatch, lambda job: next(answers, GOOD)) == 0
    found = _journal(order).read("done", order.key)
    run = RunDir.create(order.journal.parent / "other", "test")
    with open_writer(run) as log:
        for _ in range(2):
            assert [log.adopt(found.attempts(boot), boot=boot) for boot in found.boots] == [0, 0]
    assert [(boot.boot, boot.attempt, boot.end.outcome) for boot in run.boots()] == [
        (0, 0, "ok"),
        (1, 0, "ok"),
    ]


def test_a_guest_that_fails_is_a_result(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        _run(order, monkeypatch, lambda job: FakeBoot(outcome="panic", detail="Kernel panic")) == 0
    )
    assert _journal(order).published("done") == {order.key}


def test_a_trial_that_the_node_disturbed_is_repeated_there(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = iter([0.5, 0.01, 0.01])
    monkeypatch.setattr(
        "kteardown.run.execute.HostWatch",
        lambda: SimpleNamespace(begin=lambda: None, vcpus=None, end=end),
    )

    def end() -> LostTime:
        return LostTime(elapsed_s=1, run_delay_s=next(lost))

    boots = tuple(
        boot.model_copy(update={"trials": (TRIAL,) if boot.index == 0 else ()})
        for boot in order.plan.boots
    )
    limited = order.model_copy(
        update={
            "setup": replace(order.setup, lost_limit=0.05),
            "plan": order.plan.model_copy(update={"boots": boots}),
        }
    )
    lines = [
        {"type": "trial_start", "trial": 0, "workload": "zombies", "params": {}},
        {"type": "sample", "trial": 0, "repetition": 0, "metric": "freeze_user_ns", "value": 5},
        {"type": "trial_end", "trial": 0, "status": "ok"},
    ]
    trial = FakeBoot(lines=tuple(json.dumps(line).encode() for line in lines))
    assert (
        _run(limited, monkeypatch, lambda job: trial if job.console.name[:4] == "0000" else GOOD)
        == 0
    )
    attempts = _journal(order).read("done", order.key).attempts(0)
    tried = [record for records in attempts for record in records if isinstance(record, TrialEnd)]
    assert [bool(record.disturbed) for record in tried] == [True, False]


def test_a_guest_that_forges_a_record_is_a_fault_on_a_node_too(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    forger = FakeBoot(lines=(b'{"type":"bye","trials":3}',))
    assert _run(order, monkeypatch, lambda job: forger) == 0
    for records in _journal(order).read("done", order.key).boots.values():
        end = records[-1]
        assert isinstance(end, BootEnd)
        assert (end.outcome, end.forged) == ("agent-error", True)


@pytest.mark.parametrize("asked", [True, False])
def test_the_limit_that_is_not_asked_for_needs_a_spare_cpu(
    order: Order, monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    setup = replace(order.setup, lost_limit=0.05, lost_asked=asked)
    assert _run(order.model_copy(update={"setup": setup}), monkeypatch, _good) == 0
    start = _journal(order).read("done", order.key).boots[0][0]
    assert isinstance(start, BootStart)
    assert start.lost_limit == (0.05 if asked else None)


def test_a_job_that_slurm_ends_leaves_no_image_behind(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(job: BootJob) -> FakeBoot:
        job.initramfs.with_suffix(".left.cpio").touch()
        os.kill(os.getpid(), signal.SIGTERM)
        return GOOD

    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit):
            _run(order, monkeypatch, ended)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not list(order.journal.rglob("*.cpio"))
    assert not _journal(order).published("done")


def test_another_build_of_qemu_is_refused(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    other = order.model_copy(update={"qemu": "0" * 64})
    assert _run(other, monkeypatch, lambda job: GOOD) == 1
    (failure,) = _failures(order)
    assert "this node has another build of QEMU" in failure.reason
    assert failure.host


def test_a_full_disk_is_reported(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    full = OSError(28, "No space left on device", "/var/tmp/x")
    assert _run(order, monkeypatch, lambda job: FakeBoot(raises=full)) == 1
    (failure,) = _failures(order)
    assert failure.reason == "/var/tmp/x: No space left on device"


def test_the_second_execution_is_put_aside(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [_run(order, monkeypatch, lambda job: GOOD) for _ in range(2)] == [0, 0]
    assert len(list((order.journal / "aside").iterdir())) == 1


def test_files_are_staged_by_their_hash(tmp_path: Path) -> None:
    shared, cache = tmp_path / "image", tmp_path / "cache"
    shared.write_text("kernel")
    hashes = {str(shared): _sha(shared)}
    copy = staged(shared, hashes, cache)
    assert copy.read_text() == "kernel"
    shared.unlink()
    assert staged(shared, hashes, cache) == copy
    shared.write_text("kernel")
    copy.write_text("damaged")
    assert staged(shared, hashes, cache).read_text() == "kernel"
    shared.write_text("another")
    copy.write_text("damaged")
    with pytest.raises(LabError, match="image is not the file that the run began with"):
        staged(shared, hashes, cache)


def test_a_file_that_is_not_on_the_node_is_a_fault_of_the_node(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="No such file"):
        staged(tmp_path / "x", {str(tmp_path / "x"): "0"}, None)


def test_guests_of_the_instruction_clock_share_the_host(tmp_path: Path) -> None:
    with (
        host_lock(tmp_path, exclusive=False, wait_s=0),
        host_lock(tmp_path, exclusive=False, wait_s=0),
    ):
        pass


def _refused(folder: Path, message: str) -> None:
    with pytest.raises(LabError, match=message), host_lock(folder, exclusive=True, wait_s=0):
        pass


def test_a_guest_of_the_wall_clock_has_the_host_for_itself(tmp_path: Path) -> None:
    with host_lock(tmp_path, exclusive=False, wait_s=0):
        _refused(tmp_path, "another guest has run on this host")
    with host_lock(tmp_path, exclusive=True, wait_s=0):
        pass


def test_a_guest_that_is_left_behind_keeps_the_lock(tmp_path: Path) -> None:
    with host_lock(tmp_path, exclusive=True, wait_s=0) as lock:
        orphan = subprocess.Popen(["sleep", "60"], pass_fds=(lock,))
    try:
        _refused(tmp_path, "another guest has run on this host")
    finally:
        orphan.kill()
        orphan.wait()
    with host_lock(tmp_path, exclusive=True, wait_s=5):
        pass


def test_a_lock_is_not_taken_through_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "kteardown-guests.lock").symlink_to(tmp_path / "elsewhere")
    _refused(tmp_path, "cannot be opened")


def test_another_user_can_take_the_lock_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with host_lock(tmp_path, exclusive=False, wait_s=0):
            assert (tmp_path / "kteardown-guests.lock").stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)
