"""Build kernels while others boot, and end the build at its next step if the boots have failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from kteardown.progress import InterimResult, Reporter, Task


class _BootsFailed(BaseException):
    """Ends a build. Not an Exception: a step of a build that handles its errors must not handle this one."""


def build_beside(booting: Future[None], build: Callable[[Reporter], None], reporter: Reporter) -> None:
    """Call ``build``, then wait for ``booting``. Raises what either of them raises, whichever is first."""
    with suppress(_BootsFailed):
        build(_Watching(reporter, booting))
    booting.result()


@dataclass(frozen=True)
class _Watching:
    """A reporter for ``build``, which reports every step."""

    reporter: Reporter
    booting: Future[None]

    def check(self) -> None:
        if self.booting.done() and self.booting.exception() is not None:
            raise _BootsFailed

    def note(self, text: str) -> None:
        self.reporter.note(text)

    def command(self, argv: list[str]) -> None:
        self.check()
        self.reporter.command(argv)

    def interim_results(self, compute: Callable[[], Sequence[InterimResult]]) -> None:
        self.reporter.interim_results(compute)

    @contextmanager
    def task(self, title: str, total: float | None = None) -> Iterator[Task]:
        self.check()
        with self.reporter.task(title, total) as task:
            yield _WatchedTask(task, self.check)


@dataclass(frozen=True)
class _WatchedTask:
    task: Task
    check: Callable[[], None]

    def update(self, completed: float, detail: str = "", *, total: float | None = None) -> None:
        self.check()
        self.task.update(completed, detail, total=total)
