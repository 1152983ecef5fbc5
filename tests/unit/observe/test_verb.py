"""``kteardown observe``: this machine, documents of others, and what a gate asks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from unit.observe.documents import counted, document


def run(*words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command, and return how it ended."""
    command = [sys.executable, "-P", "-m", "kteardown", "observe", *map(str, words)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """The counts of a machine with 4,213 zombies that can suspend."""
    counts: dict[str, Any] = {
        "sleep_states": counted(2),
        "zombies": counted(4213, ("bash[123]", 4000)),
        "mounts": counted(30, ("init[1]", 30)),
    }
    file = tmp_path / "many.json"
    file.write_text(json.dumps(document(counts=counts)))
    return file


def test_this_machine_is_observed_and_its_counts_are_kept(tmp_path: Path) -> None:
    kept = tmp_path / "counts.json"
    first = run("--keep", kept)
    assert first.returncode == 0, first.stderr
    assert "problems" in first.stdout
    assert run(kept).stdout.splitlines()[0] == first.stdout.splitlines()[0]


def test_the_collector_runs_by_itself(tmp_path: Path) -> None:
    program = run("--collector").stdout
    printed = subprocess.run(
        [sys.executable, "-P", "-"], input=program, capture_output=True, text=True, check=True
    ).stdout
    (tmp_path / "counts.json").write_text(printed)
    assert run(tmp_path / "counts.json").returncode == 0
    assert run("-", stdin=printed).stdout == run(tmp_path / "counts.json").stdout


def test_each_format_is_written_and_the_page_printed(many: Path, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.json", "a.md", "a.prom")]
    done = run(many, "--json", files[0], "--markdown", files[1], "--openmetrics", files[2])
    assert "4,213" in done.stdout
    assert json.loads(files[0].read_text())["problems"][0]["name"] == "zombies_suspend"
    assert files[1].read_text().startswith("# Linux")
    assert files[2].read_text().endswith("# EOF\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.json",
        "a.md",
        "a.prom",
        "many.json",
    ]


def test_one_format_is_printed_in_place_of_the_page(many: Path) -> None:
    assert json.loads(run(many, "--json", "-").stdout)["kteardown_observe"] == 1


@pytest.mark.parametrize(
    ("limit", "code"),
    [("zombies_suspend=4214", 0), ("zombies_suspend=4000", 1), ("flocks=10", 1), ("mounts=50", 0)],
)
def test_a_limit_decides_the_exit_code(many: Path, limit: str, code: int) -> None:
    assert run(many, "--fail-on", limit).returncode == code


@pytest.mark.parametrize(
    ("limit", "code"), [("pid_max=92%", 0), ("pid_max=91%", 1), ("maxkeys=1%", 1)]
)
def test_a_share_of_a_limit_decides_the_exit_code(tmp_path: Path, limit: str, code: int) -> None:
    file = tmp_path / "tasks.json"
    limits = [{"name": "pid_max", "number": 30_000, "bound": 32_768}]
    missing = [{"counts": ["maxkeys"], "reason": "permission"}]
    file.write_text(json.dumps(document(limits=limits, missing=missing)))
    assert run(file, "--fail-on", limit).returncode == code


@pytest.mark.parametrize(
    "words",
    [
        ["--fail-on", "pid_max=90"],
        ["--fail-on", "zombies_suspend=90%"],
        ["--fail-on", "zombies=3"],
        ["--fail-on", "zombies_suspend"],
        ["--fail-on", "zombies_suspend=many"],
        ["--json", "-", "--markdown", "-"],
        ["--calibrate"],
        ["--for", "3s"],
        ["--keep", "/dev/null"],
    ],
)
def test_wrong_options_are_one_error(many: Path, words: list[str]) -> None:
    done = run(many, *words)
    assert done.returncode == 2
    assert "what to do" in done.stderr


def test_two_documents_are_compared_and_nothing_else(many: Path) -> None:
    assert "zombies_suspend" in run(many, many).stdout
    assert run(many, many, "--fail-on", "flocks=1").returncode == 2
    assert run(many, many, many).returncode == 2


def test_a_document_that_is_cut_is_an_error(many: Path) -> None:
    many.write_text(many.read_text()[:-10])
    done = run(many)
    assert done.returncode == 2
    assert not done.stdout


def test_times_that_are_no_times_are_an_error() -> None:
    assert run("--for", "3 hours").returncode == 2
