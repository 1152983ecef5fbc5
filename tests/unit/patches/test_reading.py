"""Reading in a process of its own: its answers, its errors, its limits, and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from pydantic import TypeAdapter

from kteardown.errors import BuildError, InputError, LabError, MissingError
from kteardown.patches import reading

TEXT = TypeAdapter(str)
PATHS = TypeAdapter(tuple[Path, ...])


def raising(error: BaseException) -> Callable[[], str]:
    def work() -> str:
        raise error

    return work


def test_the_answer_is_that_of_the_function() -> None:
    assert reading.limited("x", lambda: (Path("/a"), Path("ö")), PATHS) == (Path("/a"), Path("ö"))
    assert reading.limited("x", lambda: str(os.getpid()), TEXT) != str(os.getpid())


@pytest.mark.parametrize("kind", [InputError, LabError, BuildError])
def test_an_error_is_raised_here(kind: type[InputError]) -> None:
    with pytest.raises(kind, match="what is wrong") as caught:
        reading.limited("x", raising(kind("what is wrong", hint="do this.")), TEXT)
    assert caught.value.hint == "do this."


def test_missing_programs_and_full_disks_are_errors_of_the_host() -> None:
    with pytest.raises(LabError, match="not installed"):
        reading.limited("x", raising(MissingError("b4 is not installed", ["b4"])), TEXT)
    with pytest.raises(OSError, match="No space left") as caught:
        reading.limited("x", lambda: str(Path("/dev/full").write_text("x")), TEXT)
    assert caught.value.strerror == "No space left on device"


def test_a_fault_of_the_program_has_its_trace() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        reading.limited("x", lambda: str(1 // 0), TEXT)


def test_an_answer_of_another_form_is_not_accepted() -> None:
    wrong: Callable[[], str] = lambda: 7  # type: ignore[assignment,return-value]  # noqa: E731
    with pytest.raises((ValueError, InputError)):
        reading.limited("x", wrong, TEXT)


def endless() -> str:
    while True:
        pass


def killed() -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


def greedy() -> str:
    return str(len([bytes(1_000_000) for _ in range(100_000)]))


@pytest.mark.parametrize("work", [endless, greedy, killed])
def test_a_limit_is_one_clear_error(
    work: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CPU_SECONDS", 1)
    monkeypatch.setattr(reading, "MEGABYTES", 300)
    with pytest.raises(
        InputError, match=r"reading x\.mbox took more than 1 s or 300 MB: it is damaged"
    ):
        reading.limited("x.mbox", work, TEXT)


def test_a_program_that_waits_for_ever_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_WALL_SECONDS", 1)
    # Other checkouts on this host may run the same test.
    period = f"4321.{os.getpid()}"

    def waiting() -> str:
        subprocess.run(["sleep", period], check=False)
        return ""

    with pytest.raises(InputError, match="took more than"):
        reading.limited("x", waiting, TEXT)
    assert not [
        one for one in psutil.process_iter(["cmdline"]) if period in (one.info["cmdline"] or [])
    ]


def test_temporary_files_of_a_process_that_was_killed_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def writing() -> str:
        Path(tempfile.mkdtemp(prefix="kteardown-"), "file").write_text("x")
        return killed()

    with pytest.raises(InputError):
        reading.limited("x", writing, TEXT)
    assert not list(tmp_path.rglob("file"))


def test_other_threads_do_not_stop_it() -> None:
    """As the one that draws the progress, which holds locks most of the time."""
    lock, ended = threading.Lock(), threading.Event()

    def drawing() -> None:
        while not ended.is_set():
            with lock:
                print("", end="", flush=True)

    thread = threading.Thread(target=drawing)
    thread.start()
    try:
        assert [reading.limited("x", lambda: "read", TEXT) for _ in range(10)] == 10 * ["read"]
    finally:
        ended.set()
        thread.join()


PROGRAM = """
import sys, time
from pydantic import TypeAdapter
from kteardown.patches.reading import limited

def slow():
    print("started", flush=True)
    while True:
        pass

try:
    limited("x", slow, TypeAdapter(str))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_both_silently() -> None:
    program = subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "started\n"
    children = psutil.Process(program.pid).children()
    os.killpg(program.pid, signal.SIGINT)
    out, said = program.communicate(timeout=60)
    assert (out, said) == ("interrupted\n", "")
    _, alive = psutil.wait_procs(children, timeout=60)
    assert len(children) == 1
    assert not alive
