"""A command that ends with what started it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from kteardown import spawn
from kteardown_mcp import guard

PATIENCE_S = 60
PYTHON = [sys.executable, "-P", "-c"]
CLEANS = """
import time
try:
    print("begun", flush=True)
    time.sleep(1000)
finally:
    print("cleaned")
"""
DEAF = """
import signal, time
signal.signal(2, 1)
print("begun", flush=True)
time.sleep(1000)
"""


def guarded(folder: Path, *command: str, program: str = "") -> subprocess.Popen[str]:
    words = spawn.python("-m", "kteardown_mcp.guard", str(folder), *command)
    if program:
        words = [*PYTHON, program, str(folder), *command]
    return subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def close(process: subprocess.Popen[str]) -> None:
    """Close the life line."""
    assert process.stdin is not None
    process.stdin.close()
    process.stdin = None


@pytest.mark.parametrize(
    ("command", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("exec sleep 0", 0)]
)
def test_the_exit_code_is_that_of_the_command(tmp_path: Path, command: str, code: int) -> None:
    with guarded(tmp_path, "sh", "-c", command) as process:
        assert process.wait(PATIENCE_S) == code
    assert tmp_path.is_dir()


def test_a_command_is_interrupted_as_by_ctrl_c_and_its_folder_removed(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    with guarded(folder, *PYTHON, CLEANS) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        close(process)
        assert process.stdout.read() == "cleaned\n"
        assert process.wait(PATIENCE_S) == 130
    assert not folder.exists()


def test_what_ignores_the_interrupt_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    # In a session of its own, without a parent, as a daemon.
    daemon = "(setsid sh -c \"trap '' INT TERM HUP; sleep 1000; sleep 1000\" &)"
    short = "import sys; from kteardown_mcp import guard; guard.GRACE_S = 0.5"
    program = f"{short}; sys.exit(guard.main(sys.argv[1:]))"
    command = ["sh", "-c", f"{daemon}; exec {sys.executable} -P -c '{DEAF}'"]
    with guarded(tmp_path / "job", *command, program=program) as process:
        assert process.stdout is not None
        end = time.monotonic() + PATIENCE_S
        while len(found := psutil.Process(process.pid).children(recursive=True)) < 3:
            assert time.monotonic() < end, found
            time.sleep(0.05)
        assert process.stdout.readline() == "begun\n"
        close(process)
        assert process.wait(PATIENCE_S) == 130
    assert not [left for left in found if left.is_running()]


def test_what_a_command_leaves_behind_is_killed(tmp_path: Path) -> None:
    with guarded(tmp_path, "sh", "-c", "(setsid sleep 1000 &); echo left") as process:
        assert process.wait(PATIENCE_S) == 0
        # The daemon would hold the other end open.
        assert process.stdout is not None
        assert process.stdout.read() == "left\n"


def test_there_is_time_to_clean_up() -> None:
    assert guard.GRACE_S >= 10
