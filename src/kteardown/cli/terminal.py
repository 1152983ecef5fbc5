"""Progress on standard error: a live display on a terminal, plain lines elsewhere."""

import shlex
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TaskID, TextColumn
from rich.progress import Task as Bar
from rich.table import Column, Table
from rich.text import Text

from kteardown.judge.verdicts import STYLES
from kteardown.progress import InterimResult, Reporter, Task
from kteardown.report.forecast_text import duration

_PLAIN_INTERVAL_S = 15.0
_LOOK_INTERVAL_S = 5.0
_LOOK_SHARE = 20
"""The table of intermediate verdicts may take at most 1/20 of the time."""
_WIDE = 100
_GAP = 2
_LAST = 14
"""Columns of the terminal: between two columns of the table, and what its last column has at
least."""
_REFRESHES_PER_S = 2
"""Few, because drawing takes host CPU time while a guest is measured."""


@dataclass
class _Pace:
    """How long a step takes in all, forecast whenever a part of it was completed."""

    total: float | None
    completed: float = 0.0
    forecast_s: float | None = None

    def update(self, spent_s: float, completed: float, total: float | None) -> None:
        """Take note of what was completed after ``spent_s``. ``total``: None if it is unchanged."""
        total = self.total if total is None else total
        changed = (completed, total) != (self.completed, self.total)
        self.completed, self.total = completed, total
        # Nothing says how much is left at the end of a step whose total was too small, and little
        # in the first hundredth of any step.
        if changed and total is not None and total / 100 <= completed < total:
            self.forecast_s = spent_s * total / completed

    def words(self, spent_s: float) -> str:
        """Return how long the rest takes, or that the forecast was too short; empty if there is
        none."""
        if self.forecast_s is None:
            return ""
        if spent_s < self.forecast_s:
            return f"about {duration(self.forecast_s - spent_s)} left"
        return f"longer than the forecast of {duration(self.forecast_s)}"


@dataclass
class _BarTask(Task):
    display: "_Display"
    task: TaskID
    pace: _Pace

    def update(self, completed: float, detail: str = "", *, total: float | None = None) -> None:
        progress = self.display.progress
        self.pace.update(
            progress.tasks[progress.task_ids.index(self.task)].elapsed or 0.0, completed, total
        )
        self.display.doing[self.task] = detail
        progress.update(self.task, completed=completed, total=self.pace.total)


class _TimeColumn(ProgressColumn):
    def render(self, task: Bar) -> Text:
        spent_s = task.elapsed or 0.0
        words = task.fields["pace"].words(spent_s)
        return Text(f"{timedelta(seconds=int(spent_s))}{', ' + words if words else ''}")


@dataclass
class _LineTask(Task):
    """One line at the start, then one at most every 15 seconds, with an estimate."""

    console: Console
    title: str
    pace: _Pace
    started: float
    last_line: float

    def update(self, completed: float, detail: str = "", *, total: float | None = None) -> None:
        now = time.monotonic()
        spent_s = now - self.started
        self.pace.update(spent_s, completed, total)
        if now - self.last_line < _PLAIN_INTERVAL_S:
            return
        self.last_line = now
        text = f"{self.title}: {spent_s:.0f} s"
        if self.pace.total and 0 < completed < self.pace.total:
            text += f", {100 * completed / self.pace.total:.0f}%"
        words = self.pace.words(spent_s)
        what = "; ".join(detail.split("\n"))
        line = f"{text}{', ' + words if words else ''}{'; ' + what if what else ''}"
        self.console.print(line, soft_wrap=True)


class _Display:
    """The live display: progress bars, one line for each guest, and the comparisons so far."""

    def __init__(self, console: Console, rows: Sequence[InterimResult]) -> None:
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(no_wrap=True, overflow="ellipsis"),
            ),
            BarColumn(bar_width=20),
            _TimeColumn(),
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
        parts: list[RenderableType] = [self.progress]
        # Each guest that runs has its own line.
        lines = [line for text in list(self.doing.values()) for line in text.splitlines()]
        parts += [
            Text(f"    {line}", style="dim", no_wrap=True, overflow="ellipsis") for line in lines
        ]
        if self.rows:
            parts += [Text(), interim_table(self.rows, self.progress.console.width)]
        return Group(*parts)


def interim_table(rows: Sequence[InterimResult], width: int = _WIDE) -> RenderableType:
    """Return the comparisons so far: each metric with its last point and base, and a line for each
    variant.

    A terminal of less than ``_WIDE`` columns has no values of the variants. All lines have the same
    columns: only the last one is wrapped, between words, and the names of variants if they leave it
    no room.
    """
    names = ("variant", "changed", "change", "verdict", "all points")
    cells = [
        names,
        *((row.variant, row.changed, row.change, row.verdict, row.others) for row in rows),
    ]
    kept = [n for n, name in enumerate(names) if width >= _WIDE or name != "changed"]
    widths = [max(len(line[n]) for line in cells) for n in kept]
    left = width - sum(widths[1:-1]) - _GAP * len(kept)
    widths[0] = min(widths[0], max(left - _LAST, _LAST))
    widths[-1] = min(widths[-1], max(left - widths[0], _LAST))

    def line(texts: Sequence[str], style: str) -> Table:
        grid = Table.grid(padding=(0, _GAP, 0, 0))
        grid.add_column(width=0)  # Indents the line: the gap follows it.
        for n, columns in zip(kept, widths, strict=True):
            right = names[n] in ("changed", "change")
            grid.add_column(justify="right" if right else "left", overflow="fold", width=columns)
        styles = {"verdict": STYLES.get(texts[3], style)}
        # The name of a variant is one word with hyphens.
        shown = ("\n".join(textwrap.wrap(texts[0], widths[0])), *texts[1:])
        grid.add_row("", *(Text(shown[n], styles.get(names[n], style)) for n in kept))
        return grid

    title = "so far, at the last point; the final verdicts are in the report"
    parts: list[RenderableType] = [Text(title, "italic"), line(names, "bold")]
    for n, row in enumerate(rows):
        if not n or row.metric != rows[n - 1].metric:
            parts.append(Text(f"{row.metric}, {row.point}: base {row.base}"))
        parts.append(line(cells[n + 1], ""))
    return Group(*parts)


class TerminalReporter(Reporter):
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
        self._noted: set[str] = set()

    def note(self, text: str) -> None:
        self._noted.add(text)
        if not self._quiet:
            self._console.print(text, soft_wrap=True)

    def note_once(self, text: str) -> None:
        if text not in self._noted:
            self.note(text)

    def command(self, argv: list[str]) -> None:
        if self._verbose:
            self._console.print(f"+ {shlex.join(argv)}", style="dim", soft_wrap=True)

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
        if self._quiet:
            yield Task()
            return
        pace = _Pace(total)
        if not self._console.is_terminal or self._console.is_dumb_terminal:
            self._console.print(f"{title} ...")
            now = time.monotonic()
            yield _LineTask(self._console, title, pace, now, now)
            return
        # Tasks of several threads overlap; the last one closes the display.
        with self._lock:
            if self._display is None:
                self._display = _Display(self._console, self._rows)
                self._display.live.start()
            display = self._display
            bar = display.progress.add_task(title, total=total, pace=pace)
            self._tasks += 1
        try:
            yield _BarTask(display, bar, pace)
        finally:
            with self._lock:
                display.progress.remove_task(bar)
                display.doing.pop(bar, None)
                self._tasks -= 1
                if not self._tasks:
                    display.live.stop()
                    self._display = None
