"""Progress on standard error: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table
from rich.text import Text

from kteardown.progress import InterimResult, Task

_PLAIN_INTERVAL_S = 15.0
_LOOK_INTERVAL_S = 5.0
_LOOK_SHARE = 20
"""The table of intermediate verdicts may take at most 1/20 of the time."""
_REFRESHES_PER_S = 2
"""Few, because drawing takes host CPU time while a guest is measured."""
COLOURS = {
    "broken": "bold white on red",
    "better": "green",
    "worse": "red",
    "mixed": "magenta",
    "same": "cyan",
    "inconclusive": "yellow",
}


@dataclass
class _BarTask:
    display: _Display
    task: TaskID

    def update(self, completed: float, detail: str = "", *, total: float | None = None) -> None:
        progress = self.display.progress
        if total is not None:
            progress.update(self.task, total=total)
        self.display.doing[self.task] = detail
        progress.update(self.task, completed=completed)


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
        what = "; ".join(detail.split("\n"))
        line = f"{text}{'; ' + what if what else ''}"
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)


class _Display:
    """The live display: progress bars, one line for each guest, and the comparisons so far."""

    def __init__(self, console: Console, rows: Sequence[InterimResult]) -> None:
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
        )
        self.doing: dict[TaskID, str] = {}
        self.rows = rows
        self.live = Live(
            console=console,
            get_renderable=self.render,
            refresh_per_second=_REFRESHES_PER_S,
            transient=True,
        )

    def render(self) -> RenderableType:
        """Return the whole display in its current state."""
        parts: list[RenderableType] = [self.progress]
        # Each guest that runs has its own line.
        lines = [line for text in list(self.doing.values()) for line in text.splitlines()]
        parts += [Text(f"    {line}", style="dim", no_wrap=True, overflow="ellipsis") for line in lines]
        if self.rows:
            parts += [Text(), interim_table(self.rows)]
        return Group(*parts)


def interim_table(rows: Sequence[InterimResult]) -> Table:
    """Return the comparisons so far as a table, one row for each variant of a metric."""
    table = Table(
        title="so far, at the last point; the final verdicts are in the report",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    for name in ("metric", "point", "base", "variant", "changed", "change", "verdict", "all points"):
        table.add_column(name, justify="right" if name in ("base", "changed", "change") else "left")
    shown = ""
    for row in rows:
        metric = ("", "", "") if row.metric == shown else (row.metric, row.point, row.base)
        shown = row.metric
        words = (*metric, row.variant, row.changed, row.change, row.verdict, row.others)
        table.add_row(
            *map(Text, words[:-2]), Text(row.verdict, COLOURS.get(row.verdict, "")), Text(words[-1])
        )
    return table


class TerminalReporter:
    """The ``progress.Reporter`` of the command line; everything goes to standard error."""

    def __init__(self, console: Console, *, verbose: bool = False, quiet: bool = False) -> None:
        self._console = console
        self._verbose = verbose
        self._quiet = quiet
        self._display: _Display | None = None
        self._tasks = 0
        self._lock = threading.Lock()
        # A run with --until boots in several stages; the table stays on the screen between them.
        self._rows: Sequence[InterimResult] = ()
        self._next_look = 0.0

    def note(self, text: str) -> None:
        """Print a line above the live display, if there is one."""
        if not self._quiet:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def command(self, argv: list[str]) -> None:
        """Print a command as it could be typed, if ``verbose``."""
        if self._verbose:
            line = "+ " + shlex.join(argv)
            self._console.print(line, style="dim", highlight=False, markup=False, soft_wrap=True)

    def interim_results(self, compute: Callable[[], Sequence[InterimResult]]) -> None:
        """Show the comparisons so far on the live display.

        ``compute`` is called at most every five seconds and takes at most 1/20 of the time.
        """
        began = time.monotonic()
        if self._display is None or began < self._next_look:
            return
        self._rows = self._display.rows = compute()
        self._display.live.refresh()
        ended = time.monotonic()
        # The first call imports the statistics, so its duration says nothing about the next one.
        share = _LOOK_SHARE * (ended - began) if self._next_look else 0.0
        self._next_look = ended + max(_LOOK_INTERVAL_S, share)

    @contextmanager
    def task(self, title: str, total: float | None = None) -> Iterator[Task]:
        """Show a task: a bar on a terminal, lines elsewhere. Nested tasks share one display."""
        if self._quiet or not self._console.is_terminal or self._console.is_dumb_terminal:
            if not self._quiet:
                self._console.print(f"{title} ...", highlight=False, markup=False)
            yield _LineTask(self._console if not self._quiet else Console(quiet=True), title, total)
            return
        # Tasks of several threads overlap; the last one closes the display.
        with self._lock:
            if self._display is None:
                self._display = _Display(self._console, self._rows)
                self._display.live.start()
            display = self._display
            bar = display.progress.add_task(title, total=total)
            self._tasks += 1
        try:
            yield _BarTask(display, bar)
        finally:
            with self._lock:
                display.progress.remove_task(bar)
                display.doing.pop(bar, None)
                self._tasks -= 1
                if not self._tasks:
                    display.live.stop()
                    self._display = None
