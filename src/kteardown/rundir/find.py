"""Find runs: by id, by path, or all of them.

A run on both clocks is a folder with ``clocks.json``, which is written last, and a whole run
directory for each clock: ``instructions`` and ``wall``. Each of the two is a run of its own
wherever one run is asked for.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kteardown import version
from kteardown.door import Entry
from kteardown.errors import InputError, LabError, failing
from kteardown.model.clock import BOTH
from kteardown.paths import runs_dir
from kteardown.rundir.directory import CLOCKS_FILE, RunDir, started


@dataclass(frozen=True)
class RunFolder:
    """What one command measured: one run, or one for each clock in the order of ``BOTH``."""

    path: Path
    runs: tuple[RunDir, ...]

    @property
    def name(self) -> str:
        """The id by which all of it is found."""
        return self.runs[0].name if len(self.runs) == 1 else self.path.name

    @property
    def both_clocks(self) -> bool:
        return len(self.runs) > 1

    @classmethod
    def of(cls, run: RunDir) -> "RunFolder":
        """Return a run that has its folder for itself, or one clock alone of a run on both."""
        return cls(run.path, (run,))

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """Return the run at ``path``, on one clock or both. Raises InputError if there is none."""
        return _read(path) or cls.of(RunDir.open(path))


def mark_both_clocks(folder: Path) -> RunFolder:
    """Write ``clocks.json``, last: a folder that has it has a whole run for each clock. Raises
    LabError."""
    text = json.dumps({"schema": 1, "kteardown": version(), "clocks": [*BOTH]}, indent=1)
    RunDir(folder).save(Entry(folder) / CLOCKS_FILE, text)
    return RunFolder.open(folder)


def find_run(name: str) -> RunDir:
    """Return one run by its id or the beginning of it, by its path, or ``last``.

    ``ID/wall`` is one clock of a run on both. Raises InputError if there is no such run, if the
    beginning of an id fits several, or if the run was measured on both clocks.
    """
    folder = find_runs(name)
    if folder.both_clocks:
        raise InputError(
            f"{folder.name} was measured on both clocks, and only one run can be used here",
            hint=f"name one clock: {' or '.join(run.name for run in folder.runs)}.",
        )
    return folder.runs[0]


def find_runs(name: str) -> RunFolder:
    """Return a run, on one clock or both, by its id or the beginning of it, by its path, or
    ``last``.

    Raises InputError if there is no such run, or if the beginning of an id fits several.
    """
    if Path(name).is_dir():
        return RunFolder.open(Path(name))
    whole, _, clock = name.partition("/")
    if clock in BOTH and whole:
        folder = find_runs(whole)
        of_clock = [run for run in folder.runs if run.path.name == clock]
        if not of_clock or not folder.both_clocks:
            raise InputError(
                f"{folder.name} was not measured on both clocks",
                hint=f"name the run without a clock: {folder.name}.",
            )
        return RunFolder.of(of_clock[0])
    if "/" in name:
        return RunFolder.open(Path(name))
    runs = all_folders()
    fitting = runs[-1:] if name == "last" else [run for run in runs if run.name.startswith(name)]
    exact = [run for run in fitting if run.name == name]
    if len(exact or fitting) != 1:
        many = ", ".join(run.name for run in fitting)
        raise InputError(
            f"{name!r} fits several runs: {many}"
            if many
            else f"there is no run {name!r} in {runs_dir()}",
            hint="choose one of `kteardown list runs`, or `last` for the newest."
            if runs
            else "start a run, as in `kteardown run freezer --quick`, "
            "or set KTEARDOWN_RUNS to the folder of your runs.",
        )
    return RunFolder.open((exact or fitting)[0].path)


def all_runs() -> Sequence[RunDir]:
    """Return every run directory, oldest first, those of both clocks one after the other. Raises
    LabError."""
    return [run for folder in all_folders() for run in folder.runs]


def all_folders() -> Sequence[RunFolder]:
    """Return every run, on one clock or both, oldest first. Raises LabError if they cannot be
    read."""
    root = runs_dir()
    if root.is_file():
        raise LabError(
            f"{root} is not a folder", hint="set KTEARDOWN_RUNS to the folder of your runs."
        )
    hint = "set KTEARDOWN_RUNS to a folder that you can read."
    with failing(f"{root}: cannot be read", hint=hint, kind=LabError):
        paths = sorted(root.iterdir()) if root.is_dir() else []
        folders = [run for run in map(_read, paths) if run is not None]
        return sorted(folders, key=lambda run: started(run.runs[0].run_file))


def _read(path: Path) -> RunFolder | None:
    if RunDir(path).is_whole:
        return RunFolder(path, (RunDir(path),))
    if not (Entry(path) / CLOCKS_FILE).exists():
        return None
    runs = tuple(run for clock in BOTH if (run := RunDir(Entry(path) / clock)).is_whole)
    return RunFolder(path, runs) if runs else None
