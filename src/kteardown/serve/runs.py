"""The runs and boots as the pages show them: read from their directories, cached until their files change."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, wraps
from pathlib import Path
from threading import Lock
from typing import TypeVar

from kteardown.errors import KteardownError
from kteardown.model.clock import CLOCKS
from kteardown.model.experiment import Experiment
from kteardown.model.plan import PlannedBoot
from kteardown.model.record import BootEnd, KernelProblem
from kteardown.model.result import Verdict
from kteardown.report import saved
from kteardown.report.formats import json as result_json
from kteardown.report.formats.html import html_report
from kteardown.report.formatting import without_options
from kteardown.report.material import BothMaterial, Material, material_of, side_by_side
from kteardown.run.live_progress import Follower, Progress
from kteardown.rundir.counting import Attempt, attempts, trials
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import RunFolder, all_runs
from kteardown.rundir.snapshot import load, load_plan
from kteardown.vm.kernel_log import TRIAL_MARK, kind_of, plain_line

_LOCKS = Path("/proc/locks")
_KEPT = 512
_NAMED = 3
_STARTED = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-.*")
_SOURCE_LINE = re.compile(r" \([^() ]+:\d+\)")
"""What is added to a line of a stack: the file and line of the source."""
_MOST_BYTES = 4_000_000
_Made = TypeVar("_Made")
_following = Lock()


@dataclass(frozen=True)
class ListedRun:
    """A run in the list of runs. ``state`` is ``running``, ``done`` or ``unfinished``."""

    name: str
    experiment: Experiment
    state: str
    verdicts: Mapping[Verdict, int]
    """How many headline metrics have each verdict; empty unless the state is ``done``."""
    answer: str
    """The result in one sentence, of both clocks if both are done; empty unless the state is ``done``."""
    progress: Progress | None
    """The progress of a run whose state is ``running``."""
    damage: str = ""
    """Why its saved result cannot be read; empty if it can be, or if there is none."""

    @property
    def variants(self) -> list[str]:
        """Return the names of the variants; of a path, the last part."""
        return [short(variant) for variant in self.experiment.variants]

    @property
    def title(self) -> str:
        """Return what the run compares: its variants, or base alone, and the experiment."""
        first, more = self.variants[:_NAMED], len(self.variants) - _NAMED
        names = ", ".join(first) + (f" and {more} more" if more > 0 else "")
        return f"{names or 'base alone'} · {self.experiment.name}"

    @property
    def label(self) -> str:
        """Return one line for a menu: what was compared, on what, what was found, and when."""
        found = ", ".join(f"{count} {verdict}" for verdict, count in self.verdicts.items())
        where = f"{self.experiment.source}, {self.experiment.design.clock}"
        return f"{self.title} on {where}: {found or 'no comparisons'} ({self.name})"

    @property
    def started(self) -> str:
        """The local time in the name of the run directory; empty if it has none."""
        found = _STARTED.fullmatch(self.name)
        return "{}-{}-{} {}:{}".format(*found.groups()) if found else ""


def listed_runs() -> Iterator[ListedRun]:
    """Yield every run that can be read, newest first."""
    for run in reversed(all_runs()):
        with suppress(OSError, ValueError, KteardownError):
            yield listed_run(run)


def listed_run(run: RunDir) -> ListedRun:
    """Return a run as it is listed.

    Raises OSError, ValueError or KteardownError if the run cannot be read.
    """
    running = is_locked(run)
    done = not running and is_current(run)
    return ListedRun(
        name=run.name,
        experiment=_experiment(run),
        state="running" if running else "done" if done else "unfinished",
        verdicts=_verdicts(run) if done else {},
        answer=_answer(run) if done else "",
        progress=progress(run) if running else None,
        damage="" if running or done else saved.damage_of(RunFolder.of(run)),
    )


def progress(run: RunDir) -> Progress:
    """Return the progress of a run. Raises OSError or ValueError if its records cannot be read."""
    with _following:
        return _follower(run.path).look()


@lru_cache(maxsize=_KEPT)
def _follower(folder: Path) -> Follower:
    return Follower(RunDir(folder))


def short(variant: str) -> str:
    """Return the name of a variant; of a path, the last part."""
    return variant.rstrip("/").rpartition("/")[2]


def _until_changed(
    most: int, files: Callable[[RunDir], Sequence[Path]] = lambda run: [run.result_file]
) -> Callable[[Callable[[RunDir], _Made]], Callable[[RunDir], _Made]]:
    """Keep what a function makes of up to ``most`` runs, each until one of its ``files`` changes."""

    def decorate(make: Callable[[RunDir], _Made]) -> Callable[[RunDir], _Made]:
        @lru_cache(maxsize=most)
        def kept(folder: Path, _stamps: tuple[tuple[int, int] | None, ...]) -> _Made:
            return make(RunDir(folder))

        @wraps(make)
        def look(run: RunDir) -> _Made:
            found = [file.stat() if file.is_file() else None for file in files(run)]
            return kept(run.path, tuple(stat and (stat.st_mtime_ns, stat.st_size) for stat in found))

        return look

    return decorate


@_until_changed(_KEPT, lambda run: [run.result_file, run.records_file, run.profile.records_file])
def is_current(run: RunDir) -> bool:
    """Return whether the run has a result of all its boots that have ended."""
    return run.current_result() is not None


def has_result(run: RunDir) -> bool:
    """Return whether there is a result to show: a current one, or an early one of a run in progress."""
    return run.result_file.is_file() and (is_locked(run) or is_current(run))


def finished(run: RunDir) -> Material | None:
    """Return the run with the result that is shown, or None if there is none yet. Raises KteardownError."""
    return _finished(run) if has_result(run) else None


def on_both_clocks(run: RunDir) -> BothMaterial | None:
    """Return both clocks side by side if ``run`` is one of them and both have a result.

    Raises KteardownError if a result cannot be read.
    """
    folder = _folder(run)
    materials = list(filter(None, map(finished, folder.runs)))
    return side_by_side(folder.name, *materials) if len(materials) == len(CLOCKS) else None


@_until_changed(2)
def charts(run: RunDir) -> str:
    """Return the report with charts of a run with a result, as one HTML file. Raises KteardownError."""
    return html_report(material_of(load(run), _read(run).result))


def _folder(run: RunDir) -> RunFolder:
    """Return the folder with both clocks, if ``run`` is one of them."""
    return RunFolder.open(run.path.parent) if "/" in run.name else RunFolder.of(run)


@_until_changed(_KEPT, lambda run: [run.experiment_file])
def _experiment(run: RunDir) -> Experiment:
    return Experiment.model_validate_json(run.experiment_file.read_bytes())


@_until_changed(_KEPT)
def _verdicts(run: RunDir) -> Mapping[Verdict, int]:
    """Return the verdicts of a run; empty if its result is missing or of an unknown schema."""
    try:
        return Counter(metric.verdict for metric in _read(run).result.metric_verdicts)
    except (OSError, KteardownError):
        return {}


@_until_changed(_KEPT, lambda run: [one.result_file for one in _folder(run).runs])
def _answer(run: RunDir) -> str:
    """Return the sentence of a run, of both clocks if both are done; empty if its result cannot be read."""
    try:
        return without_options(saved.answer_of(_folder(run)) or saved.answer(run))
    except (OSError, KteardownError):
        return ""


def _read(run: RunDir) -> Material:
    snapshot = load(run)
    result = result_json.loads(run.result_file.read_bytes())
    return Material(run.name, result, snapshot.workloads, snapshot.published)


_finished = _until_changed(4)(_read)


def is_locked(run: RunDir) -> bool:
    """Return whether a process holds the lock of ``run``, according to ``/proc/locks``.

    Taking the lock, even for a moment, would make a kteardown that starts in this moment fail.
    Only the inode is compared: on stacked file systems the device in /proc/locks is not that of stat(2).
    """
    try:
        inode = str((run.path / "lock").stat().st_ino)
        lines = _LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    # "1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF"; a waiting process has "->" after the number.
    held = (line.split() for line in lines if " -> " not in line)
    return any(len(words) > 5 and words[1] == "FLOCK" and words[5].split(":")[-1] == inode for words in held)


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
            found.append(Boot(planned, outcome, attempt.attempt, listed, attempt.end))
    return found


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
