"""The analysis in a run directory: ``result.json`` and ``report.md``, written once, then only read."""

from __future__ import annotations

from pathlib import Path

from kteardown.model.result import Result
from kteardown.report.formats import json, markdown
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import Snapshot


def write(run: RunDir, result: Result, snapshot: Snapshot, folder: Path | None = None) -> None:
    """Save an analysis in the run directory, or in ``folder`` below it. Raises LabError."""
    folder = folder or run.path
    folder.mkdir(exist_ok=True)
    run.save(folder / run.result_file.name, json.dumps(result))
    report = markdown.render(result, snapshot.workloads, snapshot.published)
    run.save(folder / run.report_file.name, report)


def read(run: RunDir) -> Result | None:
    """The saved analysis; None if there is none, or if boots ended after it. Raises InputError."""
    if not run.result_file.is_file():
        return None
    result = json.loads(run.result_file.read_bytes())
    # Results of schema 1 did not say how many boots they are of.
    return result if result.ended_boots in (None, run.ended_boots()) else None


def next_folder(run: RunDir) -> Path:
    """Where a further analysis of the run goes: ``analysis-1``, ``analysis-2`` ..."""
    number = 1
    while (run.path / f"analysis-{number}").exists():
        number += 1
    return run.path / f"analysis-{number}"
