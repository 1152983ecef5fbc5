"""What a problem is, and the process that has its objects."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NoReturn

OWN_FILES: list[int] = []
"""What this process has open, and its children must not have."""

_SAID = "/tmp/planted-said-"
_POLL_S = 0.002


@dataclass
class Expected:
    """What the collector must count because of one problem."""

    count: str
    number: int | None
    """What it adds to the whole machine; None: other processes have more than a few of it."""
    largest: int | None = None
    """The number of its owner, exactly; None: the count has no owners, or another one has more."""
    owner: str = ""
    """Is in the name of that owner."""
    within: float = 0
    """The share by which the number may differ."""


class Problem:
    """Objects of one kind: ``make`` makes ``n`` of them, and one ``release`` ends all of them."""

    modules: ClassVar[tuple[str, ...]] = ()
    """Of a prebuilt kernel."""
    objects: ClassVar[int] = 100
    """At the scale of 1."""
    release_is: ClassVar[str] = "exit of their process"

    def __init__(self, n: int, calls: int | None = None) -> None:
        self.n = n
        self.calls = n if calls is None else calls
        """How many calls a release makes that is one call for each object. Without objects, they
        cost what Python costs."""

    def make(self) -> None:
        raise NotImplementedError

    def expected(self) -> list[Expected]:
        """What the collector must count; called after ``make``."""
        raise NotImplementedError

    def tasks(self) -> tuple[int, ...]:
        """The processes that release the objects, which may be none."""
        return ()

    def release(self) -> None:
        raise NotImplementedError

    def clean(self) -> None:
        """Remove what is no object, after the release was measured."""


class Held(Problem):
    """Objects of one process, which makes them in ``build`` and is killed."""

    pid = 0

    def undo(self) -> None:
        """Release the objects in their process, if ``release`` asks for it by SIGUSR1."""

    def build(self) -> object:
        """Make the objects, in their process; what it returns becomes the text ``said``."""
        raise NotImplementedError

    def make(self) -> None:
        self.pid, self.said = holder(self.build, self.undo)

    def tasks(self) -> tuple[int, ...]:
        return (self.pid,)

    def release(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def process(self, tasks: int = 0, threads: int = 0) -> list[Expected]:
        """The process itself, with further processes and threads."""
        return [
            Expected("processes", 1 + tasks),
            Expected("threads", 1 + tasks + threads),
        ]

    def by_process(self, count: str, per_object: int = 1) -> Expected:
        return Expected(count, per_object * self.n, per_object * self.n, f"[{self.pid}]")


class Undone(Held):
    """Objects that their process itself releases, one by one in ``undo``."""

    release_is = "one call for each in their process"

    def release(self) -> None:
        os.kill(self.pid, signal.SIGUSR1)
        signal.sigwait([signal.SIGUSR2])

    def clean(self) -> None:
        Held.release(self)


def holder(build: Callable[[], object], undo: Callable[[], None]) -> tuple[int, str]:
    """Return a child that called ``build`` and sleeps, and what ``build`` returned, as text.

    At SIGUSR1 the child calls ``undo`` and sends SIGUSR2, which this process must have blocked.
    Raises RuntimeError with the child's traceback if that failed. The child says it in a file: a
    pipe would stay open in the processes that the child makes.
    """
    pid = os.fork()
    if not pid:
        _hold(build, undo)
    path = f"{_SAID}{pid}"
    while not os.path.exists(path):
        time.sleep(_POLL_S)
    with open(path, encoding="utf-8") as stream:
        said = stream.read()
    os.unlink(path)
    if not said.startswith("+"):
        os.waitpid(pid, 0)
        raise RuntimeError(said)
    return pid, said[1:]


def _hold(build: Callable[[], object], undo: Callable[[], None]) -> NoReturn:
    path = f"{_SAID}{os.getpid()}"
    try:
        for fd in OWN_FILES:
            os.close(fd)
        os.setpgid(0, 0)
        said = f"+{build()}"
    except BaseException:
        said = traceback.format_exc()
    with open(f"{path}-new", "w", encoding="utf-8") as stream:
        stream.write(said)
    os.rename(f"{path}-new", path)
    if not said.startswith("+"):
        os._exit(1)
    while True:
        signal.sigwait([signal.SIGUSR1])
        undo()
        os.kill(os.getppid(), signal.SIGUSR2)
