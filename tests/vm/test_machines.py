"""Real kernels in QEMU: each way in which a boot ends has its outcome, and nothing is left
behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from kteardown.model.arch import Arch
from kteardown.model.record import BootEnd
from kteardown.vm import acceleration, qemu, qemu_library
from kteardown.vm.job import BootJob
from kteardown.vm.qemu import QemuMachine
from vm.ends import ENDS, SILENCE_S

pytestmark = pytest.mark.vm

MakeJob = Callable[..., BootJob]
PATIENCE_S = 300
"""For what takes less than a second, or a boot of a guest, on an idle host."""


def boot(job: BootJob) -> tuple[BootEnd, list[bytes]]:
    lines: list[bytes] = []
    return QemuMachine().boot(job, lines.append), lines


def guests() -> set[int]:
    """Process ids of the QEMU processes that this process started."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "qemu" in process.name():
                found.add(process.pid)
    return found


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_guest_that_says_bye_and_powers_off_is_ok(make_job: MakeJob, cpus: int) -> None:
    job = make_job("bye", cpus=cpus)
    result, lines = boot(job)
    assert (result.outcome, result.detail) == ("ok", "")
    assert lines[-1] == b'{"type":"bye","trials":0}'
    assert len(lines) == 102
    assert result.first_record_s is not None and 0 < result.first_record_s <= result.duration_s
    assert result.command[0] == "qemu-system-x86_64"
    assert b"Power down" in job.console.path.read_bytes()
    assert not guests()


@pytest.mark.parametrize(("how", "changes", "outcome", "detail"), ENDS)
def test_every_other_end_has_its_outcome(
    make_job: MakeJob, how: str, changes: dict[str, object], outcome: str, detail: str
) -> None:
    job = make_job(how, **changes)
    result, lines = boot(job)
    assert result.outcome == outcome
    assert detail in result.detail
    assert all(line.endswith(b"}") for line in lines)
    assert job.console.path.stat().st_size > 0
    assert not guests()


def test_a_guest_that_prints_for_ever_ends(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qemu, "_CONSOLE_MB", 1)
    job = make_job("print")
    result, _ = boot(job)
    assert result.outcome == "agent-error"
    # The last line is cut at any letter.
    assert result.detail.startswith("the guest printed more than 1 MB; last on the console: ")
    assert job.console.path.stat().st_size > 1 << 20
    assert not guests()


@pytest.mark.parametrize("acceleration", ["mttcg", "icount"])
def test_qemu_has_few_rights(make_job: MakeJob, acceleration: str) -> None:
    # After its first record the guest waits, so its QEMU cannot end while it is looked at.
    class SeenError(Exception):
        pass

    seen: list[dict[str, str]] = []

    def look(_: bytes) -> None:
        for pid in guests():
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            seen.append(dict(line.split(":\t", 1) for line in lines))
        raise SeenError

    job = make_job("hang", acceleration=acceleration)
    # Another user may read neither the file nor its folder.
    job.initramfs.chmod(0o600)
    with pytest.raises(SeenError):
        QemuMachine().boot(job, look)
    assert not guests()
    assert {status["NoNewPrivs"] for status in seen} == {"1"}
    assert {status["CapEff"] for status in seen} == {"0" * 16}
    user = qemu_library.USER if os.geteuid() == 0 else os.geteuid()
    assert {status["Uid"] for status in seen} == {"\t".join([str(user)] * 4)}
    _, sandbox = qemu_library.confinement(job.arch, job.acceleration)
    assert {status["Seccomp"] for status in seen} == {"2" if sandbox else "0"}


def test_a_hang_leaves_the_registers_on_the_console(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In real time a busy host might not have booted the guest when the silence is too long. On this
    # clock an idle guest goes through its silence in less than a second.
    monkeypatch.setattr(qemu, "_EVERY_S", 1.0)
    job = make_job("hang", acceleration="icount", cpus=2, silence_s=SILENCE_S)
    boot(job)
    note = job.console.path.read_text(errors="replace").partition("--- kteardown: ")[2]
    assert "QEMU says: running" in note
    assert "CPU#0" in note and "CPU#1" in note
    # The kernel's own answer to the lab's interrupt.
    assert (
        "Call Trace:"
        in job.console.path.read_text(errors="replace").partition("--- kteardown: ")[0]
    )


def test_the_same_seed_is_the_same_to_the_byte(make_job: MakeJob) -> None:
    # With one CPU: with QEMU 11.1 the turns of two CPUs differ from boot to boot.
    def run(seed: int) -> tuple[list[bytes], bytes]:
        job = make_job("bye", acceleration="icount", cpus=1, seed=seed)
        result, lines = boot(job)
        assert result.outcome == "ok", result.detail
        return lines, job.console.path.read_bytes()

    jobs = [1, 1, 2]
    with ThreadPoolExecutor(
        len(jobs)
    ) as pool:  # Each loads the host for the others, which must change nothing.
        first, again, other = pool.map(run, jobs)
    assert again == first
    assert other[0] != first[0]


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_guest_that_suspends_to_memory_is_woken(make_job: MakeJob, cpus: int) -> None:
    def run(seed: int) -> list[bytes]:
        result, lines = boot(
            make_job("suspend", acceleration="icount", cpus=cpus, seed=seed, has_own_programs=True)
        )
        assert result.outcome == "ok", result.detail
        return lines

    # They are not compared: with QEMU 10.0 the guest's clock goes on until it is woken.
    with ThreadPoolExecutor(2) as pool:
        assert [len(lines) for lines in pool.map(run, [1, 1])] == [8, 8]


def test_possible_cpus_beyond_those_online(make_job: MakeJob) -> None:
    job = make_job("bye", cpus=2, possible_cpus=32, memory_mb=256)
    job = replace(job, kernel_args=(*job.kernel_args, "loglevel=7"))
    result, _ = boot(job)
    console = job.console.path.read_text(errors="replace")
    assert result.outcome == "ok", result.detail
    assert "nr_cpu_ids:32" in console
    assert "Brought up 1 node, 2 CPUs" in console


def test_the_message_of_a_qemu_that_refuses_to_start_is_kept(make_job: MakeJob) -> None:
    result, lines = boot(make_job("bye", memory_mb=1 << 40))
    assert result.outcome == "infrastructure-error"
    assert "memory" in result.detail
    assert lines == []


def test_a_killed_qemu_is_an_infrastructure_error(make_job: MakeJob) -> None:
    def kill(_: bytes) -> None:
        for pid in guests():
            os.kill(pid, signal.SIGKILL)

    result = QemuMachine().boot(make_job("hang"), kill)
    assert result.outcome == "infrastructure-error"
    assert "killed by signal 9" in result.detail


def test_an_exception_of_the_listener_ends_the_guest(make_job: MakeJob) -> None:
    def full(_: bytes) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        QemuMachine().boot(make_job("hang"), full)
    assert not guests()


def test_stop_ends_a_boot_of_another_thread(make_job: MakeJob) -> None:
    machine, started = QemuMachine(), threading.Event()
    job = make_job("hang")
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(machine.boot, job, lambda _: started.set())
        assert started.wait(PATIENCE_S)
        machine.stop()
        assert isinstance(future.exception(PATIENCE_S), KeyboardInterrupt)
    assert not guests()
    with pytest.raises(KeyboardInterrupt):
        machine.boot(job, lambda _: None)


LAB = """
    import sys
    from kteardown.door import Entry
    from kteardown.vm.job import BootJob
    from kteardown.vm.qemu import QemuMachine
    from pathlib import PosixPath
    try:
        QemuMachine().boot({job!r}, lambda line: print(line, flush=True))
    except KeyboardInterrupt:
        print("interrupted")
        sys.exit(130)
"""


@pytest.mark.parametrize(
    ("sent", "status", "said"),
    [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, -15, ""), (signal.SIGKILL, -9, "")],
)
def test_the_guest_ends_when_its_lab_ends(
    make_job: MakeJob, tmp_path: Path, sent: signal.Signals, status: int, said: str
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    lab = subprocess.Popen(
        [sys.executable, "-P", "-c", textwrap.dedent(LAB.format(job=make_job("hang")))],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert lab.stdout is not None
    assert "started" in lab.stdout.readline()
    qemus = psutil.Process(lab.pid).children(recursive=True)
    assert [Path(q.exe()).name for q in qemus] == ["qemu-system-x86_64"]
    lab.send_signal(sent)
    assert lab.wait(PATIENCE_S) == status
    assert lab.stdout.read() == said
    assert not psutil.wait_procs(qemus, timeout=PATIENCE_S)[1]
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("arch", ["x86_64", "arm64"])
def test_the_probe_guest_runs_under_emulation(arch: Arch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceleration, "_LIMIT_S", PATIENCE_S)
    assert acceleration.probe_boot(arch, "mttcg") == ("", False)


def test_the_finding_of_the_probe_is_kept(tmp_path: Path) -> None:
    found = acceleration.best_wall_acceleration("x86_64", cache=tmp_path)
    assert (found.acceleration == "kvm") == (found.reason == "")
    for kept in tmp_path.iterdir():
        kept.write_text(kept.read_text()[:-5])
    assert (
        acceleration.best_wall_acceleration("x86_64", cache=tmp_path).acceleration
        == found.acceleration
    )
    for kept in tmp_path.iterdir():
        before = kept.stat().st_mtime_ns
        assert acceleration.best_wall_acceleration("x86_64", cache=tmp_path) == found
        assert kept.stat().st_mtime_ns == before
