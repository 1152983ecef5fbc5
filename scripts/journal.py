"""The journal of a test suite: one line of JSON for each test, so that an interrupted run can be
continued.

pytest --journal FILE ...      leaves out the tests that passed or were skipped, and adds to FILE
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import TypedDict

import pytest

OUTCOMES = ("passed", "failed", "skipped")
_DONE = ("passed", "skipped")


class Entry(TypedDict):
    """What a test did when it ran last."""

    test: str
    outcome: str
    duration_s: float
    date: str


def read(file: Path) -> dict[str, Entry]:
    """The last entry of each test, by its id. A line that an interruption cut does not count."""
    entries: dict[str, Entry] = {}
    for line in file.read_text().splitlines() if file.is_file() else ():
        try:
            entry: Entry = json.loads(line)
        except ValueError:
            continue
        entries[entry["test"]] = entry
    return entries


class Plugin:
    """Leaves out the tests that are done, and writes what the others did."""

    def __init__(self, file: Path, *, writes: bool) -> None:
        """``writes`` is false in the workers of pytest-xdist: the first process gets all their
        reports."""
        self._file = file
        self._writes = writes
        self._reports: dict[str, list[pytest.TestReport]] = {}

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out the tests that passed or were skipped."""
        ids = {test for test, entry in read(self._file).items() if entry["outcome"] in _DONE}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in ids])
        items[:] = [item for item in items if item.nodeid not in ids]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write an entry after the last phase of a test."""
        if not self._writes:
            return
        phases = self._reports.setdefault(report.nodeid, [])
        phases.append(report)
        if report.when != "teardown":
            return
        outcomes = {phase.outcome for phase in self._reports.pop(report.nodeid)}
        entry: Entry = {
            "test": report.nodeid,
            "outcome": next(
                outcome for outcome in ("failed", "skipped", "passed") if outcome in outcomes
            ),
            "duration_s": round(sum(phase.duration for phase in phases), 2),
            "date": date.today().isoformat(),
        }
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a") as stream:
            stream.write(json.dumps(entry) + "\n")
