"""The journal of a test suite: what a run that continues leaves out, and what counts as passed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import journal

SUITE = """
import pytest
from pathlib import Path

@pytest.fixture
def ends_badly():
    yield
    assert Path("fixed").exists()

def test_good(): pass
def test_bad(): assert Path("fixed").exists()
def test_teardown(ends_badly): pass
@pytest.mark.skipif(True, reason="never")
def test_skipped(): pass
@pytest.mark.skipif(Path("fixed").exists(), reason="only before")
def test_ran_before(): pass
"""
"""Two of its tests fail until the file ``fixed`` exists."""


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    """The exit status and the output of pytest on the suite, with the options of this project's
    tests."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "pytest",
        "-q",
        "--journal",
        "journal",
        *arguments,
        "test_suite.py",
    ]
    # Load only the plugin that the options need, not all that are installed.
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
    done = subprocess.run(
        command, cwd=folder, env=alone, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("processes", [[], ["-n", "2"]])
def test_a_run_continues_with_what_did_not_pass(tmp_path: Path, processes: list[str]) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    tests = Path(__file__).parents[2]
    (tmp_path / "conftest.py").write_text((tests / "conftest.py").read_text())
    (tmp_path / "journal.py").write_text((tests.parent / "scripts/journal.py").read_text())
    status, _ = run(tmp_path, *processes)
    outcomes = {
        name.split("::")[1]: entry["outcome"]
        for name, entry in journal.read(tmp_path / "journal").items()
    }
    assert status == 1
    assert outcomes == {
        "test_good": "passed",
        "test_bad": "failed",
        "test_teardown": "failed",
        "test_skipped": "skipped",
        "test_ran_before": "passed",
    }
    (tmp_path / "fixed").touch()
    status, output = run(tmp_path, *processes)
    assert (status, output.count("2 passed")) == (0, 1)
    status, output = run(tmp_path, *processes)
    assert (status, "passed" in output) == (0, False)


def test_a_line_that_was_cut_does_not_count(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    whole = '{"test": "a", "outcome": "passed", "duration_s": 1, "date": "2026-01-02"}\n'
    file.write_text(whole + '{"test": "b", "outc' + whole)
    assert list(journal.read(file)) == ["a"]
    assert journal.read(tmp_path / "none") == {}
