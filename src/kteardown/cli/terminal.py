"""The terminal: progress that moves where someone watches, plain lines where it is piped."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from kteardown.progress import Task

_PLAIN_INTERVAL_S = 15.0


@dataclass
class _BarTask:
    progress: Progress
    task: TaskID

    def update(self, completed: float, detail: str = "", *, total: float | None = None) -> None:
        if total is not None:
            self.progress.update(self.task, total=total)
        self.progress.update(self.task, completed=completed, detail=detail)


@dataclass
class _LineTask:
    """One line at the start, then one at most every 15 seconds, with an estimate."""

    console: Console
    title: str
    total: float | None
    started: float = field(default_factory=time.monotonic)
    last_line: float = field(default_factory=time.monotonic)

    def update(self, completed: float, detail: str = "", *, total: float | None = None) -> None:
        self.total = total if total is not None else self.total
        now = time.monotonic()
        if now - self.last_line < _PLAIN_INTERVAL_S:
            return
        self.last_line = now
        spent = now - self.started
        text = f"{self.title}: {spent:.0f} s"
        if self.total and completed > 0:
            left = max(0.0, spent * (self.total - completed) / completed)
            text += f", {min(100.0, 100 * completed / self.total):.0f}%, about {left:.0f} s left"
        line = f"{text}{'; ' + detail if detail else ''}"
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)


class TerminalReporter:
    """The ``progress.Reporter`` of the command line; everything goes to standard error."""

    def __init__(self, console: Console, *, verbose: bool = False, quiet: bool = False) -> None:
        self._console = console
        self._verbose = verbose
        self._quiet = quiet
        self._progress: Progress | None = None

    def note(self, text: str) -> None:
        """One finished fact, on a line of its own, above a bar that may be moving."""
        if not self._quiet:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def command(self, argv: list[str]) -> None:
        """The command, as it could be typed, with ``-v``."""
        if self._verbose:
            self._console.print("+ " + shlex.join(argv), style="dim", highlight=False, markup=False)

    @contextmanager
    def task(self, title: str, total: float | None = None) -> Iterator[Task]:
        """A moving bar on a terminal, else lines; nested tasks share one display."""
        if self._quiet or not self._console.is_terminal:
            if not self._quiet:
                self._console.print(f"{title} ...", highlight=False, markup=False)
            yield _LineTask(self._console if not self._quiet else Console(quiet=True), title, total)
            return
        outermost = self._progress is None
        progress = self._progress or Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[detail]}", style="dim"),
            console=self._console,
            transient=True,
        )
        if outermost:
            self._progress = progress
            progress.start()
        bar = progress.add_task(title, total=total, detail="")
        try:
            yield _BarTask(progress, bar)
        finally:
            progress.remove_task(bar)
            if outermost:
                progress.stop()
                self._progress = None
