"""The runs as the pages show them: read from their directories, and cached until their files change."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock

from kteardown.errors import KteardownError
from kteardown.model.clock import CLOCKS
from kteardown.model.experiment import Experiment
from kteardown.model.result import Verdict
from kteardown.report import saved
from kteardown.report.formats import json as result_json
from kteardown.report.formats.html import html_report
from kteardown.report.formatting import without_options
from kteardown.report.material import BothMaterial, Material, material_of, side_by_side
from kteardown.run.live_progress import Follower, Progress
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import RunFolder, all_runs
from kteardown.rundir.snapshot import load

_LOCKS = Path("/proc/locks")
_KEPT = 512
_NAMED = 3
_STARTED = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-.*")


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


class Runs:
    """All runs. Safe to call from several threads."""

    def __init__(self) -> None:
        self._followers: dict[str, Follower] = {}
        self._lock = Lock()

    def all(self) -> Iterator[ListedRun]:
        """Yield every run that can be read, newest first."""
        for run in reversed(all_runs()):
            with suppress(OSError, ValueError, KteardownError):
                yield self.listed(run)

    def unreadable(self) -> list[str]:
        """Return the names of the runs that ``all`` leaves out, newest first."""
        readable = {run.name for run in self.all()}
        return [run.name for run in reversed(all_runs()) if run.name not in readable]

    def find(self, name: str) -> RunDir | None:
        """Return the run with exactly this name, so that a request can never open another folder."""
        return next((run for run in all_runs() if run.name == name), None)

    def listed(self, run: RunDir) -> ListedRun:
        """Return a run as it is listed.

        Raises OSError, ValueError or KteardownError if the run cannot be read.
        """
        running = is_locked(run)
        done = not running and is_current(run)
        return ListedRun(
            name=run.name,
            experiment=_experiment(run.experiment_file, _stamp(run.experiment_file)),
            state="running" if running else "done" if done else "unfinished",
            verdicts=_verdicts(run.result_file, _stamp(run.result_file)) if done else {},
            answer=_answer(run, tuple(_stamp(one.result_file) for one in _folder(run).runs)) if done else "",
            progress=self.progress(run) if running else None,
            damage="" if running or done else saved.damage_of(RunFolder.of(run)),
        )

    def progress(self, run: RunDir) -> Progress:
        """Return the progress of a run. Raises OSError or ValueError if its records cannot be read."""
        with self._lock:
            return self._followers.setdefault(run.name, Follower(run)).look()


def short(variant: str) -> str:
    """Return the name of a variant; of a path, the last part."""
    return variant.rstrip("/").rpartition("/")[2]


def is_current(run: RunDir) -> bool:
    """Return whether the run has a result of all its boots that have ended."""
    files = (run.result_file, run.records_file, run.profile.records_file)
    return _current(run.path, tuple(map(_stamp, files)))


def has_result(run: RunDir) -> bool:
    """Return whether there is a result to show: a current one, or an early one of a run in progress."""
    return run.result_file.is_file() and (is_locked(run) or is_current(run))


def finished(run: RunDir) -> Material | None:
    """Return the run with the result that is shown, or None if there is none yet. Raises KteardownError."""
    return _finished(run.result_file, _stamp(run.result_file)) if has_result(run) else None


def on_both_clocks(run: RunDir) -> BothMaterial | None:
    """Return both clocks side by side if ``run`` is one of them and both have a result.

    Raises KteardownError if a result cannot be read.
    """
    folder = _folder(run)
    materials = list(filter(None, map(finished, folder.runs)))
    return side_by_side(folder.name, *materials) if len(materials) == len(CLOCKS) else None


def charts(run: RunDir) -> str:
    """Return the report with charts of a run with a result, as one HTML file. Raises KteardownError."""
    return _charts(run.result_file, _stamp(run.result_file))


def _folder(run: RunDir) -> RunFolder:
    """Return the folder with both clocks, if ``run`` is one of them."""
    return RunFolder.open(run.path.parent) if "/" in run.name else RunFolder.of(run)


_Stamp = tuple[int, int] | None


def _stamp(file: Path) -> _Stamp:
    """Return what changes when the file is written again; None without the file."""
    if not file.is_file():
        return None
    found = file.stat()
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=_KEPT)
def _current(folder: Path, _stamped: tuple[_Stamp, ...]) -> bool:
    return RunDir(folder).current_result() is not None


@lru_cache(maxsize=_KEPT)
def _experiment(file: Path, _stamped: _Stamp) -> Experiment:
    return Experiment.model_validate_json(file.read_bytes())


@lru_cache(maxsize=_KEPT)
def _verdicts(file: Path, _stamped: _Stamp) -> Mapping[Verdict, int]:
    """Return the verdicts of a run; empty if its result is missing or of an unknown schema."""
    try:
        return Counter(metric.verdict for metric in _read(file).result.metric_verdicts)
    except (OSError, KteardownError):
        return {}


@lru_cache(maxsize=_KEPT)
def _answer(run: RunDir, _stamped: tuple[_Stamp, ...]) -> str:
    """Return the sentence of a run, of both clocks if both are done; empty if its result cannot be read."""
    try:
        return without_options(saved.answer_of(_folder(run)) or saved.answer(run))
    except (OSError, KteardownError):
        return ""


@lru_cache(maxsize=4)
def _finished(file: Path, _stamped: _Stamp) -> Material:
    return _read(file)


@lru_cache(maxsize=2)
def _charts(file: Path, _stamped: _Stamp) -> str:
    return html_report(material_of(load(RunDir(file.parent)), _read(file).result))


def _read(file: Path) -> Material:
    snapshot = load(RunDir(file.parent))
    result = result_json.loads(file.read_bytes())
    return Material(snapshot.run.name, result, snapshot.workloads, snapshot.published)


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
