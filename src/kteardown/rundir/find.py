"""Find run directories: by id, by path, or all of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kteardown.errors import InputError, LabError
from kteardown.paths import runs_dir
from kteardown.rundir.directory import RunDir


def find_run(name: str) -> RunDir:
    """Return a run by its id or the beginning of it, by its path, or ``last``.

    Raises InputError if there is no such run, or if the beginning of an id fits several.
    """
    if "/" in name or Path(name).is_dir():
        return RunDir.open(Path(name))
    runs = all_runs()
    found = runs[-1:] if name == "last" else [run for run in runs if run.name.startswith(name)]
    exact = [run for run in found if run.name == name]
    if len(exact or found) != 1:
        many = ", ".join(run.name for run in found)
        raise InputError(
            f"{name!r} fits several runs: {many}" if many else f"no run {name!r} in {runs_dir()}",
            hint="choose one of `kteardown list runs`, or `last` for the newest."
            if runs
            else "start a run, as in `kteardown run freezer --quick`, or set KTEARDOWN_RUNS to your runs.",
        )
    return (exact or found)[0]


def all_runs() -> Sequence[RunDir]:
    """Return every run directory, oldest first. Raises LabError if the folder of runs cannot be read."""
    root = runs_dir()
    try:
        paths = sorted(root.iterdir()) if root.is_dir() else []
        return [run for run in map(RunDir, paths) if run.is_whole]
    except OSError as error:
        raise LabError(
            f"{root}: cannot be read: {error.strerror}",
            hint="set KTEARDOWN_RUNS to a folder that you can read.",
        ) from error
