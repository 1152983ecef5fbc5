"""The boots of a run and their consoles, as the pages show them."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kteardown.errors import KteardownError
from kteardown.model.plan import PlannedBoot
from kteardown.model.record import BootEnd, KernelProblem
from kteardown.rundir.counting import Attempt, attempts, trials
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load_plan
from kteardown.vm.kernel_log import TRIAL_MARK, kind_of, plain_line

_SOURCE_LINE = re.compile(r" \([^() ]+:\d+\)")
"""What is added to a line of a stack: the file and line of the source."""
_MOST_BYTES = 4_000_000


@dataclass(frozen=True)
class Boot:
    """One attempt at a boot, or a boot that was not yet attempted."""

    planned: PlannedBoot
    outcome: str
    """That of the record, or ``running``, ``cut short`` or ``to do``."""
    number: int = 0
    """The number of the attempt."""
    trials: str = ""
    """The trials by their status: ``12 ok, 1 void``."""
    end: BootEnd | None = None

    @property
    def problems(self) -> tuple[KernelProblem, ...]:
        """Return what the kernel reported in its log."""
        return self.end.problems if self.end else ()

    @property
    def has_failed(self) -> bool:
        """Return whether it ended in another way than ok, or its kernel reported a problem."""
        return self.end is not None and (self.outcome != "ok" or bool(self.problems))


@dataclass(frozen=True)
class ConsoleLine:
    """A line of a console: its time, its text, and ``kind``, which is empty for most lines.

    ``kind`` is ``problem`` for the first line of what the kernel reports, ``stack`` for the other lines of a
    report, and ``trial`` where a trial begins. ``problem`` is the number of the report that begins here.
    """

    time: str
    text: str
    kind: str = ""
    problem: int | None = None


def boots_of(run: RunDir, *, running: bool) -> list[Boot]:
    """Return every attempt and every boot that is to do, in the order of the plan.

    Raises KteardownError if the plan cannot be read.
    """
    by_boot: dict[int, list[Attempt]] = {}
    for attempt in attempts(run.records()):
        by_boot.setdefault(attempt.boot, []).append(attempt)
    found = []
    for planned in load_plan(run).boots:
        mine = by_boot.get(planned.index, [])
        if not mine:
            found.append(Boot(planned, "to do"))
        for attempt in mine:
            open_end = "running" if running and attempt is mine[-1] else "cut short"
            outcome = attempt.end.outcome if attempt.end else open_end
            counts = Counter(trial.status or "not ended" for trial in trials(attempt.records))
            listed = ", ".join(f"{count} {status}" for status, count in counts.items())
            found.append(Boot(planned, outcome, attempt.number, listed, attempt.end))
    return found


def failed_boots(run: RunDir, *, running: bool) -> list[Boot]:
    """Return the boots that failed; none if they cannot be read."""
    try:
        return [boot for boot in boots_of(run, running=running) if boot.has_failed]
    except (OSError, KteardownError):
        return []


def console_file(run: RunDir, boot: Boot) -> Path | None:
    """Return the file of the console of an attempt, if there is one."""
    file = run.console_path(boot.planned.index, boot.number)
    return file if boot.outcome != "to do" and file.is_file() else None


def console_lines(text: str, problems: Sequence[KernelProblem]) -> Iterator[ConsoleLine]:
    """Yield every line; the lines of a stack have the source lines that the record has."""
    # What the console has of a line of a report: the same without the source lines.
    known = {_SOURCE_LINE.sub("", line): line for problem in problems for line in problem.excerpt}
    first = {problem.line: number for number, problem in reversed(list(enumerate(problems)))}
    for raw in re.split(r"\r?\n", text):
        time, line = plain_line(raw)
        if line.startswith(TRIAL_MARK):
            yield ConsoleLine(time, line, "trial")
        elif line in first:
            yield ConsoleLine(time, line, "problem", first.pop(line))
        elif line and kind_of(line):
            yield ConsoleLine(time, line, "problem")
        elif line in known:
            yield ConsoleLine(time, known[line], "stack")
        else:
            yield ConsoleLine(time, line)


def tail(file: Path) -> tuple[str, bool]:
    """Return the text of a file, of a long one only the end, and whether it is whole."""
    with file.open("rb") as stream:
        size = file.stat().st_size
        stream.seek(max(0, size - _MOST_BYTES))
        content = stream.read(_MOST_BYTES)
    whole = size <= _MOST_BYTES
    return (content if whole else content.partition(b"\n")[2]).decode("utf-8", "replace"), whole
