"""How long steps tell their user what they do, without knowing about terminals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Standing:
    """How the comparisons of one metric with one variant stand, in words.

    ``point`` is the last one, and ``base``, ``changed`` (medians over boots), ``change`` and ``verdict`` are
    of it; ``others`` counts the verdicts of all points.
    """

    metric: str
    point: str
    base: str
    variant: str
    changed: str
    change: str
    verdict: str
    others: str


class Task(Protocol):
    """One long step in progress."""

    def update(self, completed: float, detail: str = "", *, total: float | None = None) -> None:
        """Say that ``completed`` of ``total`` units are done, and what is being done now, a line for each."""


class Reporter(Protocol):
    """Receives what a stage has to say while it works."""

    def note(self, text: str) -> None:
        """One finished fact, worth a line."""

    def command(self, argv: list[str]) -> None:
        """A command about to be run; shown with ``-v``."""

    def standing(self, look: Callable[[], Sequence[Standing]]) -> None:
        """How the run stands after a boot ended. ``look`` takes time: it is called where somebody watches,
        and not after every boot."""

    def task(self, title: str, total: float | None = None) -> AbstractContextManager[Task]:
        """A step that takes longer than two seconds; ``total`` None where it is not known."""


class _SilentTask:
    def update(self, completed: float, detail: str = "", *, total: float | None = None) -> None:
        return


class SilentReporter:
    """Says nothing; for tests and for calls as a library."""

    def note(self, text: str) -> None:
        return

    def command(self, argv: list[str]) -> None:
        return

    def standing(self, look: Callable[[], Sequence[Standing]]) -> None:
        return

    @contextmanager
    def task(self, title: str, total: float | None = None) -> Iterator[Task]:
        yield _SilentTask()
