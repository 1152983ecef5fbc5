"""What a program in the sandbox can reach, change and use up: real programs that try it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kteardown import limits as host_limits
from kteardown import sandbox
from kteardown.errors import BuildError
from kteardown.limits import Limits
from kteardown.sandbox import Mount, Sandbox

SECRET = "a-secret-of-the-host"
# Files that a walk of the folder does not find.
FILL = "n=1; while fallocate -l 50M big$n; do n=$((n + 1)); sleep 0.1; done; sleep 600"
DEEP = f"for i in $(seq 30); do mkdir {'d' * 200}; cd -P {'d' * 200}; done"
DELETED = "while fallocate -l 50M big; do sleep 600 < big & rm big; sleep 0.1; done; sleep 600"
# A file each time: one of more than 2 GB would exceed the limit of a file first.
IN_MEMORY = """import os, time
for n in range(1, 600):
    os.posix_fallocate(os.memfd_create("memory"), 0, 1 << 26)
    time.sleep(0.1)"""


@pytest.fixture(autouse=True)
def in_a_sandbox() -> None:
    assert sandbox.problem() == ""


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "work"
    folder.mkdir()
    yield folder
    # Some tests write hundreds of megabytes, and pytest keeps folders of tests.
    subprocess.run(["rm", "-rf", folder], check=True)


def shell(
    work: Path,
    script: str,
    *,
    limits: Limits | None = None,
    environment: dict[str, str] | None = None,
) -> str:
    """Run ``script`` where only ``work`` can be written; return what it printed."""
    box = Sandbox([Mount(work, Path("/work"), writable=True)], limits or Limits())
    with box.running(["sh", "-c", script], environment or {}, Path("/work")) as (_, lines):
        return "".join(lines)


def test_a_program_may_end_before_it_is_watched(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(pid: int) -> int:
        while Path(f"/proc/{pid}").exists():
            time.sleep(0.01)
        return pidfd_open(pid)

    pidfd_open = os.pidfd_open
    monkeypatch.setattr(os, "pidfd_open", late)
    assert shell(work, "echo done") == "done\n"


def test_it_writes_to_its_folder_and_not_elsewhere(work: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    pattern = "/proc/sys/kernel/core_pattern"
    tried = ["/here", "/usr/here", "/etc/here", "/dev/here", pattern, f"{tmp_path}/mine"]
    shell(work, "; ".join(f"echo x > {name}" for name in ("/work/made", "/tmp/made", *tried)))
    assert (work / "made").read_text() == "x\n"
    assert (tmp_path / "mine").read_text() == "mine"
    assert not any(Path(name).exists() for name in (*tried[:4], "/tmp/made"))
    assert "core" in Path(pattern).read_text()


def test_it_sees_no_file_of_the_user(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text(SECRET)
    monkeypatch.setenv("TOKEN", SECRET)
    script = (
        f"env; cat {tmp_path}/key ~/key /etc/shadow /proc/*/environ /proc/1/root{tmp_path}/key; ls "
        "~ / /home"
    )
    printed = shell(work, script, environment={"GIVEN": "yes"})
    assert "GIVEN=yes" in printed
    assert SECRET not in printed


def test_it_sees_no_path_and_no_argument_of_the_host(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}:/usr/bin")
    monkeypatch.setenv("HOME", f"{tmp_path}/home")
    files = "/proc/[0-9]*/cmdline /proc/[0-9]*/environ /proc/cmdline /proc/bootconfig /proc/swaps"
    printed = shell(
        work,
        f"env; set -- {files}; cat $@ | tr '\\0' ' '; tr '\\0' ' ' < /proc/1/cmdline; wc -c "
        "/proc/cmdline",
    )
    assert "bwrap" in printed
    assert str(tmp_path) not in printed
    assert printed.endswith("0 /proc/cmdline\n")
    assert "/usr/bin" in printed


def test_it_is_not_root_and_cannot_become_it(work: Path) -> None:
    script = (
        "id -u; grep -E 'NoNewPrivs|CapEff|CapBnd' /proc/self/status; setpriv --reuid 0 id -u; "
        "chroot / id -u"
    )
    lines = shell(work, script).splitlines()
    assert lines[0] == str(sandbox.USER if os.geteuid() == 0 else os.geteuid())
    assert "NoNewPrivs:\t1" in lines
    assert "CapEff:\t0000000000000000" in lines
    assert "0" not in lines


def test_it_reaches_no_network_and_no_socket_of_the_host(work: Path, tmp_path: Path) -> None:
    reached = []
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{tmp_path.name}-{os.getpid()}")
        abstract.listen()
        for server in (tcp, abstract):
            server.settimeout(0.5)
        places = ((2, tcp.getsockname()), (1, abstract.getsockname()))
        program = (
            "import socket\n"
            f"for family, place in {places}:\n"
            " try: socket.socket(family).connect(place); print('connected')\n"
            " except OSError as error: print(type(error).__name__)\n"
        )
        (work / "connect.py").write_text(program)
        printed = shell(work, "python3 /work/connect.py")
        for server in (tcp, abstract):
            try:
                reached.append(server.accept())
            except TimeoutError:
                continue
    assert reached == []
    assert printed == "ConnectionRefusedError\nConnectionRefusedError\n"


def test_it_sees_and_ends_no_process_of_the_host(work: Path) -> None:
    printed = shell(
        work, "ls /proc | grep -c '^[0-9]'; kill -9 1 $PPID -1 2>/dev/null; echo still here"
    )
    assert int(printed.split()[0]) < 10
    assert psutil.pid_exists(os.getpid())


def test_all_that_it_started_is_killed(work: Path) -> None:
    mark = f"left-{work.parent.name}-{os.getpid()}"
    daemons = (
        f"{way} sh -c ': {mark}; sleep 600' >/dev/null 2>&1 & " for way in ("setsid", "nohup", "")
    )
    shell(work, "".join(daemons) + "sleep 0.2")
    commands = [
        " ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])
    ]
    assert commands and not any(mark in command for command in commands)


@pytest.mark.parametrize(
    ("script", "limits", "reason"),
    [
        ("sleep 600", Limits(silence_s=2), "it printed nothing for 2 s"),
        ("yes", Limits(output_mb=1), "it printed more than 1 MB"),
        ("tr '\\0' x < /dev/zero", Limits(output_mb=1), "it printed more than 1 MB"),
        (
            "head -c 60M /dev/zero > big; head -c 60M /dev/zero > bigger; sleep 600",
            Limits(disk_mb=100),
            "it wrote more",
        ),
        ("tail /dev/zero", Limits(memory_mb=400), "MB of the host's memory were left"),
        (
            f"python3 -c '{IN_MEMORY}'; sleep 600",
            Limits(memory_mb=400),
            "MB of the host's memory were left",
        ),
        # A walk may find the file before it is removed.
        (DELETED, Limits(disk_mb=200), "MB of the disk were left|it wrote more"),
        (f"{DEEP}; {FILL}", Limits(disk_mb=200), "MB of the disk were left"),
        (
            f"mkdir shut; cd shut; chmod 300 .; {FILL}",
            Limits(disk_mb=200),
            "MB of the disk were|it wrote more",
        ),
        (
            "seq -f f%g 8000 | xargs touch; sleep 600",
            Limits(disk_mb=20),
            "it wrote more than 20 MB",
        ),
    ],
)
def test_a_program_that_exceeds_a_limit_is_stopped_and_named(
    work: Path, monkeypatch: pytest.MonkeyPatch, script: str, limits: Limits, reason: str
) -> None:
    if "disk" in reason:  # Else the program writes a quarter of what is free before it is stopped.
        monkeypatch.setattr(host_limits, "_OTHERS_USE", 0)
    with pytest.raises(BuildError, match=reason):
        shell(work, script, limits=limits)


def test_a_lower_limit_of_the_user_is_kept(work: Path) -> None:
    program = (
        "import resource; from kteardown import sandbox\n"
        "for kind, most in ((resource.RLIMIT_NPROC, 500), (resource.RLIMIT_FSIZE, 8 << 20)):\n"
        " resource.setrlimit(kind, (most, most))\n"
        "argv = ['prlimit', '--raw', '--noheadings', '-o', 'HARD']\n"
        "print(sandbox.problem() or sandbox.capture(argv, []))\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True
    )
    assert {"500", str(8 << 20)} <= set(done.stdout.split())


def test_it_has_no_other_user_namespace(work: Path) -> None:
    (work / "try.py").write_text(
        "import ctypes, os\n"
        "library = ctypes.CDLL(None, use_errno=True)\n"
        "calls = (272, 308, 56, 435) if os.uname().machine == 'x86_64' else (97, 268, 220, 435)\n"
        "for call, first in zip(calls, (0x10000000, 0, 0x10000011, 0), strict=True):\n"
        " print(library.syscall(call, first, 0, 0, 0, 0), ctypes.get_errno(), flush=True)\n"
    )
    printed = shell(work, "python3 /work/try.py; unshare -U true || echo refused")
    assert printed.split()[:8] == ["-1", "1"] * 3 + ["-1", "38"]
    assert printed.endswith("refused\n")


@pytest.mark.parametrize("least", ["_FREE_MB", "_FREE_FILES", "_FREE_MEMORY"])
def test_a_program_is_stopped_when_the_host_has_little_left(
    work: Path, monkeypatch: pytest.MonkeyPatch, least: str
) -> None:
    monkeypatch.setattr(host_limits, least, 1 << 60)
    if least == "_FREE_FILES" and not os.statvfs(work).f_files:
        pytest.skip("this file system has no limit of files")
    with pytest.raises(BuildError, match="less than"):
        shell(work, "sleep 600")


def test_threads_compilers_and_jobs_of_make_work(work: Path) -> None:
    (work / "Makefile").write_text(
        "all: a b c\na b c: t\n\t./t\nt: t.c\n\tgcc -pthread -flto=2 -o t t.c\n"
    )
    (work / "t.c").write_text(
        "#include <pthread.h>\nstatic void *run(void *at) { return at; }\n"
        "int main(void) { pthread_t t; return pthread_create(&t, 0, run, 0) || pthread_join(t, 0); "
        "}\n"
    )
    pool = (
        "from concurrent.futures import *; print(list(ProcessPoolExecutor(2).map(abs, [-1, -2])))"
    )
    script = f"make -j4 >&2 && python3 -c '{pool}' && perl -e 'print `echo perl`' && echo all"
    assert shell(work, script).splitlines()[-3:] == ["[1, 2]", "perl", "all"]


def test_a_file_and_the_number_of_processes_are_limited(work: Path) -> None:
    shell(work, "head -c 3M /dev/zero > big", limits=Limits(file_mb=2))
    assert (work / "big").stat().st_size <= 2 << 20
    bomb = (
        "import os, time\nfor n in range(1000):\n try: child = os.fork()\n"
        " except OSError: print('no more'); break\n if child == 0: time.sleep(60)\n"
    )
    (work / "bomb.py").write_text(bomb)
    assert shell(work, "python3 /work/bomb.py", limits=Limits(processes=200)) == "no more\n"


def test_what_it_wrote_is_files_and_folders(work: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(SECRET)
    script = (
        f"ln -s {tmp_path}/key link; ln -s . here; mkfifo pipe; mknod device c 1 3; ln "
        f"{tmp_path}/key hard; mkdir deep; for i in $(seq 300); do mkdir -p deep/deep || break; cd "
        "deep; done; cd /work; echo x > file; chmod 0 file deep"
    )
    shell(work, script)
    assert sorted(path.name for path in work.iterdir()) == ["deep", "file"]
    assert (work / "file").read_text() == "x\n"
    assert not (tmp_path / "key").is_symlink()
    subprocess.run(["rm", "-r", work / "deep"], check=True)


def test_it_is_killed_with_the_block(work: Path) -> None:
    box = Sandbox([Mount(work, Path("/work"), writable=True)])
    folder = Path("/work")
    with (
        pytest.raises(KeyboardInterrupt),
        box.running(["sh", "-c", "echo; sleep 600"], {}, folder) as (process, lines),
    ):
        assert next(lines) == "\n"
        raise KeyboardInterrupt
    assert process.poll() is not None


def test_an_analysis_reads_its_files_and_no_others(work: Path, tmp_path: Path) -> None:
    (work / "given").write_text("given")
    (tmp_path / "key").write_text(SECRET)
    argv = ["sh", "-c", f"cat {work}/given {tmp_path}/key; echo x > {work}/made; cat"]
    assert sandbox.capture(argv, [work / "given"], text_in="input") == "giveninput"
    assert not (work / "made").exists()


@pytest.mark.parametrize("there_is_none", [False, True])
def test_an_analysis_prints_no_more_than_a_limit(
    monkeypatch: pytest.MonkeyPatch, there_is_none: bool
) -> None:
    if there_is_none:
        monkeypatch.setattr("kteardown.sandbox.problem", lambda: "bwrap is not installed")
    limits = Limits(output_mb=1)
    assert len(sandbox.capture(["head", "-c", "1M", "/dev/zero"], [], limits=limits)) == 1 << 20
    with pytest.raises(
        BuildError, match="the analysis with yes was stopped: it printed more than 1 MB"
    ):
        sandbox.capture(["yes"], [], limits=limits)


def test_an_analysis_ends_and_its_memory_is_limited() -> None:
    kilobytes = int(sandbox.capture(["sh", "-c", "ulimit -v"], []))
    assert kilobytes <= 4 << 20
    with pytest.raises(BuildError, match="it took more than 2 s"):
        sandbox.capture(
            ["sh", "-c", "while sleep 0.1; do echo; done"], [], limits=Limits(total_s=2)
        )


def test_nothing_runs_on_that_could_replace_what_was_checked(work: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(SECRET)
    daemon = f"while :; do rm -f image; ln -s {tmp_path}/key image; done"
    shell(work, f"for i in 1 2 3 4; do setsid sh -c '{daemon}' >/dev/null 2>&1 & done; sleep 0.2")
    assert not any(path.is_symlink() for path in work.iterdir())


def test_it_has_no_keys_and_no_other_sockets(work: Path) -> None:
    (work / "try.py").write_text(
        "import ctypes, os, socket\n"
        "for family in (socket.AF_VSOCK, socket.AF_ALG, socket.AF_PACKET):\n"
        " try: socket.socket(family, socket.SOCK_STREAM); print('a socket')\n"
        " except OSError as error: print(error.errno)\n"
        "library = ctypes.CDLL(None, use_errno=True)\n"
        "for call in (250, 101, 425) if os.uname().machine == 'x86_64' else (219, 117, 425):\n"
        " print(library.syscall(call, 0, 0, 0, 0), ctypes.get_errno())\n"
    )
    assert shell(work, "python3 /work/try.py").split() == ["1"] * 3 + ["-1", "1"] * 3


def test_memory_is_limited_beside_processes_that_come_and_go(work: Path) -> None:
    script = "(while :; do true & true & done) & exec tail /dev/zero"
    with pytest.raises(BuildError, match="MB of the host's memory were left"):
        shell(work, script, limits=Limits(memory_mb=400))


def test_texts_that_would_fill_the_memory_are_removed(work: Path) -> None:
    shell(work, "truncate -s 1G .config .a.o.cmd kernel.release vmlinux")
    assert [path.name for path in work.iterdir()] == ["vmlinux"]
