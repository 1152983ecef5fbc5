"""Which tests a change can affect, in this tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from changed_tests import ROOT, affected_tests, changed


def split(*names: str) -> tuple[set[str], set[str]]:
    found = set(affected_tests(ROOT, names))
    guests = {name for name in found if not name.startswith("tests/unit/")}
    return found - guests, guests


@pytest.mark.parametrize(
    "names",
    [
        ("docs/glossary.md", "README.md"),
        ("src/kteardown/report/charts/forest.py",),
        ("results/freezer/result.json",),
    ],
)
def test_pages_reports_and_results_need_no_guest(names: tuple[str, ...]) -> None:
    unit, guests = split(*names)
    assert unit
    assert not guests


def test_a_page_affects_the_tests_that_name_it_only() -> None:
    unit, _ = split("docs/glossary.md")
    assert "tests/unit/test_docs.py" in unit
    assert "tests/unit/analysis/test_faults.py" not in unit


def test_a_module_affects_the_tests_that_import_it_through_others() -> None:
    unit, _ = split("src/kteardown/model/record.py")
    assert {"tests/unit/analysis/test_faults.py", "tests/unit/rundir/test_snapshot.py"} <= unit


@pytest.mark.parametrize("name", ["src/kteardown/vm/qemu.py", "agent/core/trial.c", "pyproject.toml"])
def test_what_decides_how_a_guest_runs_affects_all_guests(name: str) -> None:
    _, guests = split(name)
    assert {"tests/vm/test_run.py", "tests/vm/test_masskill.py", "tests/kvm/test_ends.py"} <= guests


def test_a_series_affects_the_guests_that_name_it() -> None:
    _, guests = split("series/userfaultfd-close-walk/0001-a.patch")
    assert "tests/vm/test_uffd_close.py" in guests
    assert "tests/vm/test_masskill.py" not in guests


def test_changed_are_new_files_and_those_of_the_last_commit_if_there_are_no_others(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True)

    git("init", "-q")
    for name in ("first", "second"):
        (tmp_path / name).write_text(name)
        git("add", name)
        git("commit", "-qm", name)
    assert changed(tmp_path, None) == ["second"]
    (tmp_path / "third").write_text("")
    assert changed(tmp_path, None) == ["third"]
    assert changed(tmp_path, "HEAD~1") == ["second", "third"]
