"""Finding run directories: by id, by path, all of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kteardown.errors import InputError, LabError
from kteardown.paths import runs_dir
from kteardown.rundir.directory import RunDir


def find_run(name: str) -> RunDir:
    """A run by its id, by the beginning of one, by its path, or ``last``. Raises InputError."""
    if "/" in name or Path(name).is_dir():
        return RunDir.open(Path(name))
    runs = all_runs()
    found = runs[-1:] if name == "last" else [run for run in runs if run.name.startswith(name)]
    exact = [run for run in found if run.name == name]
    if len(exact or found) != 1:
        many = ", ".join(run.name for run in found)
        raise InputError(
            f"{name!r} could be any of {many}" if many else f"no run {name!r} in {runs_dir()}",
            hint="`kteardown list runs` shows the runs; `last` is the newest.",
        )
    return (exact or found)[0]


def all_runs() -> Sequence[RunDir]:
    """Every run directory, oldest first. Raises LabError if the folder of runs cannot be read."""
    root = runs_dir()
    try:
        paths = sorted(root.iterdir()) if root.is_dir() else []
        return [RunDir(path) for path in paths if (path / "experiment.json").is_file()]
    except OSError as error:
        raise LabError(
            f"{root}: cannot be read: {error.strerror}",
            hint="set KTEARDOWN_RUNS to a folder that you may read.",
        ) from error
