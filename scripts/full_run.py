"""Keeps the last result of `make test-all` in tests/full-run.json, and says what has changed since.

    full_run.py begin             before the tests: notes what they are about to test
    full_run.py keep              during them: keeps which tests have passed, for another day or
                                  machine
    full_run.py record SUITE...   after them: writes the result, from the journal of each suite
    full_run.py check             fails, and says why, if the recorded run is not one of this tree

A result is recorded only if every test passed and nothing that it vouches for changed while the
tests ran. A run that failed or was interrupted is continued: tests that passed on the same content
are not run again. Its hours need not be those of one day: what ``keep`` wrote is in the tree, and
``begin`` goes on from there.

After a change of one workload or series, or of the agent of the hunt, a suite runs the tests in
files that name it, or an experiment that has it; if none of its files does, it runs all its tests.
After any other change every suite runs all. The tests of ``AGAIN`` take minutes only and are not
kept in the tree.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any

import journal
from contents import files_id, is_text, listed

ROOT = Path(__file__).parents[1]
WHOLE = ("agent", "kernels")
"""Folders that the run vouches for as a whole, but for what ``EACH`` has of them."""
EACH = (
    "agent/workloads",
    "agent/stress",
    "workloads/stress",
    "workloads",
    "series",
    "tests/data/series",
)
"""Folders in which it vouches for each entry by itself: one series may change and not the
others."""
APART = ("agent/hunt",)
"""Folders that make a program of their own, which only tests use that name it."""
AGAIN = ("unit",)

Ids = dict[str, str]
"""Content ids by path."""


def recorded_file(root: Path) -> Path:
    """Where the last result is kept."""
    return root / "tests" / "full-run.json"


def begun_file(root: Path) -> Path:
    """Where the content ids are kept while the tests run."""
    return root / "build" / "full-run" / "begun.json"


def unit_of(name: str) -> str:
    """What a file belongs to: one of ``WHOLE`` or ``APART``, or a folder of one of ``EACH``."""
    for folder in APART:
        if name.startswith(f"{folder}/"):
            return folder
    for folder in EACH:
        if name.startswith(f"{folder}/"):
            entry = name.removeprefix(f"{folder}/").split("/")[0]
            return f"{folder}/{Path(entry).stem}"
    return name.split("/", maxsplit=1)[0]


def content_ids(root: Path) -> Ids:
    """The content id of each unit."""
    units: dict[str, list[str]] = {}
    for name in listed(root, (*WHOLE, *EACH)):
        if not is_text(name):
            units.setdefault(unit_of(name), []).append(name)
    return {unit: files_id(root, names) for unit, names in sorted(units.items())}


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The units that are new or have another content now; what was removed needs no test."""
    return [unit for unit, content in now.items() if before.get(unit) != content]


def affected(root: Path, units: Sequence[str], tests: Collection[str]) -> set[str]:
    """Those of ``tests``, ids as ``FILE::TEST``, that a change of ``units`` may concern."""
    texts = {test: root / test.split("::")[0] for test in tests}
    read = {file: file.read_text() for file in set(texts.values()) if file.is_file()}
    concerned: set[str] = set()
    for unit in units:
        if unit not in APART and unit.rpartition("/")[0] not in EACH:
            return set(tests)
        names = _names(root, unit.rpartition("/")[2])
        files = {file for file, text in read.items() if any(name in text for name in names)}
        if not files:
            return set(tests)
        concerned |= {test for test, file in texts.items() if file in files or file not in read}
    return concerned


def _names(root: Path, name: str) -> set[str]:
    """A workload or series, and the experiments that have it."""
    having = (file.stem for file in root.glob("experiments/*.toml") if name in file.read_text())
    return {name, *having}


def counts(entries: Mapping[str, journal.Entry]) -> dict[str, Any]:
    """What one suite did."""
    outcomes = [entry["outcome"] for entry in entries.values()]
    return {
        "date": max((entry["date"] for entry in entries.values()), default=""),
        **{outcome: outcomes.count(outcome) for outcome in journal.OUTCOMES},
        "duration_s": round(sum(entry["duration_s"] for entry in entries.values())),
    }


def begin(root: Path) -> int:
    """Note the content ids, and drop from the journals what may be different on the present
    content."""
    begun = begun_file(root)
    begun.parent.mkdir(parents=True, exist_ok=True)
    now = content_ids(root)
    before: Ids = json.loads(begun.read_text()) if begun.is_file() else {}
    for file in begun.parent.glob("*.ndjson"):
        _write(root, file, journal.read(file), changed(before, now))
    begun.write_text(json.dumps(now))
    _restore(root, now)
    return 0


def _write(
    root: Path, file: Path, entries: Mapping[str, journal.Entry], moved: Sequence[str]
) -> None:
    """Write those entries of a journal that a change of the units ``moved`` does not concern."""
    again = set(entries) if moved and file.stem in AGAIN else affected(root, moved, entries)
    left = [entry for test, entry in entries.items() if test not in again]
    if left:
        file.write_text("".join(json.dumps(entry) + "\n" for entry in left))
    else:
        file.unlink(missing_ok=True)


def _restore(root: Path, now: Ids) -> None:
    """Write the journals that do not exist yet, from the kept or recorded run."""
    kept = _recorded(root)
    moved = changed(kept.get("vouches_for", {}), now)
    if "suites" in kept and not moved:
        return
    for suite, tests in kept.get("passed", {}).items():
        file = begun_file(root).parent / f"{suite}.ndjson"
        entries: dict[str, journal.Entry] = {
            test: {
                "test": test,
                "outcome": "passed",
                "duration_s": duration_s,
                "date": kept["date"],
            }
            for test, duration_s in tests.items()
        }
        if not file.exists():
            _write(root, file, entries, moved)


def keep(root: Path) -> int:
    """Write which tests have passed on the present content, or say why they are not kept."""
    if moved := _moved(root):
        print(moved, file=sys.stderr)
        return 1
    journals = {
        file.stem: journal.read(file) for file in sorted(begun_file(root).parent.glob("*.ndjson"))
    }
    passed = _passed(journals)
    dates = [entry["date"] for entries in journals.values() for entry in entries.values()]
    result = {"date": max(dates, default=""), "passed": passed, "vouches_for": content_ids(root)}
    recorded_file(root).write_text(json.dumps(result, indent=1) + "\n")
    print(f"full run: kept, {_counted(passed)}; `make test-all` runs the others")
    return 0


def _passed(journals: Mapping[str, Mapping[str, journal.Entry]]) -> dict[str, dict[str, float]]:
    """The durations of the tests that passed, by suite and test."""
    return {
        suite: {
            test: entry["duration_s"]
            for test, entry in sorted(entries.items())
            if entry["outcome"] == "passed"
        }
        for suite, entries in journals.items()
        if suite not in AGAIN
    }


def _counted(passed: Mapping[str, Sized]) -> str:
    return ", ".join(f"{len(tests)} tests of {suite} passed" for suite, tests in passed.items())


def _recorded(root: Path) -> dict[str, Any]:
    """Read the recorded or kept run; empty without one."""
    file = recorded_file(root)
    return dict(json.loads(file.read_text())) if file.is_file() else {}


def _moved(root: Path) -> str:
    """Say what changed since the run began; empty if nothing did."""
    moved = changed(json.loads(begun_file(root).read_text()), content_ids(root))
    return (
        f"full run: not recorded, {', '.join(moved)} changed while the tests ran; run `make "
        "test-all` again"
        if moved
        else ""
    )


def record(root: Path, names: list[str]) -> int:
    """Write the result of the suites ``names``, or say why it is not recorded."""
    folder = begun_file(root).parent
    journals = {name: journal.read(folder / f"{name}.ndjson") for name in names}
    suites = {name: counts(entries) for name, entries in journals.items()}
    if bad := [name for name, suite in suites.items() if suite["failed"] or not suite["passed"]]:
        print(f"full run: not recorded, tests failed in {', '.join(bad)}", file=sys.stderr)
        return 1
    if moved := _moved(root):
        print(moved, file=sys.stderr)
        return 1
    result = {
        "date": max(suite.pop("date") for suite in suites.values()),
        "duration_s": sum(suite["duration_s"] for suite in suites.values()),
        "suites": suites,
        "passed": _passed(journals),
        "vouches_for": content_ids(root),
    }
    recorded_file(root).write_text(json.dumps(result, indent=1) + "\n")
    for done in folder.iterdir():
        done.unlink()
    print(f"full run: recorded in {recorded_file(root).relative_to(root)}")
    return 0


def outdated(root: Path) -> str:
    """Why the recorded run is not one of this tree; empty if nothing that it vouches for has
    changed."""
    recorded = _recorded(root)
    if not recorded:
        return "no full run of the tests is recorded: `make test-all` was never run on this tree"
    if stale := changed(recorded["vouches_for"], content_ids(root)):
        return (
            f"changed since the full run of the tests on {recorded['date']}: {', '.join(stale)}; "
            "run `make test-all` before this is handed over"
        )
    if "suites" not in recorded:
        so_far = _counted(recorded["passed"])
        return f"the full run of the tests is not complete: {so_far}; `make test-all` goes on"
    return ""


def check(root: Path) -> int:
    """Say whether the recorded run is one of this tree."""
    if why := outdated(root):
        print(f"full run: {why}", file=sys.stderr)
        return 1
    print(f"full run: nothing that it vouches for has changed since {_recorded(root)['date']}")
    return 0


def main(arguments: list[str]) -> int:
    """Run one of the commands."""
    match arguments:
        case ["begin"]:
            return begin(ROOT)
        case ["keep"]:
            return keep(ROOT)
        case ["record", *names] if names:
            return record(ROOT, names)
        case ["check"]:
            return check(ROOT)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
