"""The record of the last full run: what it vouches for, when it is stale, when none is written."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import full_run
import journal

UNITS = {
    "agent/core/main.c": "agent",
    "kernels/base.config": "kernels",
    "agent/workloads/zombies/zombies.c": "agent/workloads/zombies",
    "agent/workloads/uffd_close.c": "agent/workloads/uffd_close",
    "agent/hunt/kinds/files.c": "agent/hunt",
    "workloads/zombies.toml": "workloads/zombies",
    "series/gate/0001-a.patch": "series/gate",
    "series/gate/0002-b.patch": "series/gate",
    "series/other/for-7.2/0001-a.patch": "series/other",
    "tests/data/series/gate-broken/0001-a.patch": "tests/data/series/gate-broken",
}
"""The files of the tree below, and what a full run calls the thing that each is part of."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree in git: what a full run vouches for, and a page for which it does not."""
    for name in (*UNITS, "docs/page.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


def journaled(tree: Path, name: str, **tests: str) -> str:
    """The journal of a suite, with the outcome of each of ``tests``."""
    file = full_run.begun_file(tree).parent / f"{name}.ndjson"
    entries = [
        {"test": test, "outcome": outcome, "duration_s": 30.8, "date": "2026-01-02"}
        for test, outcome in tests.items()
    ]
    file.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return name


def unit_passed(tree: Path) -> str:
    """The journal of a suite that passed."""
    return journaled(tree, "unit", a="passed", b="skipped")


@pytest.fixture
def recorded(tree: Path) -> Path:
    """The tree after a full run that passed."""
    assert full_run.begin(tree) == 0
    assert (
        full_run.record(tree, [unit_passed(tree), journaled(tree, "vm", a="passed", b="passed")])
        == 0
    )
    return tree


def test_the_result_has_counts_times_and_what_it_vouches_for(recorded: Path) -> None:
    result = json.loads(full_run.recorded_file(recorded).read_text())
    assert (result["date"], result["duration_s"]) == ("2026-01-02", 124)
    assert result["suites"]["unit"] == {"passed": 1, "failed": 0, "skipped": 1, "duration_s": 62}
    assert result["suites"]["vm"]["passed"] == 2
    assert list(result["vouches_for"]) == sorted(set(UNITS.values()))
    assert full_run.outdated(recorded) == ""


@pytest.mark.parametrize(("file", "unit"), UNITS.items())
def test_a_change_of_one_file_is_named(recorded: Path, file: str, unit: str) -> None:
    (recorded / file).write_text("changed")
    assert f"on 2026-01-02: {unit}; run `make test-all`" in full_run.outdated(recorded)


def test_new_moved_and_several_changes_are_named(recorded: Path) -> None:
    (recorded / "series/new").mkdir()
    (recorded / "series/new/0001-a.patch").write_text("new")
    (recorded / "agent/core/main.c").rename(recorded / "agent/core/moved.c")
    assert "on 2026-01-02: agent, series/new; run" in full_run.outdated(recorded)


def test_a_release_is_refused_where_the_full_run_is_older(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dry = subprocess.run(
        ["make", "-n", "-C", full_run.ROOT, "release-check"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "scripts/full_run.py check" in dry.stdout
    monkeypatch.setattr(full_run, "ROOT", recorded)
    assert full_run.main(["check"]) == 0
    assert "since 2026-01-02" in capsys.readouterr().out
    (recorded / "series/gate/0001-a.patch").write_text("changed")
    (recorded / "workloads/zombies.toml").write_text("changed")
    assert full_run.main(["check"]) == 1
    assert "on 2026-01-02: series/gate, workloads/zombies;" in capsys.readouterr().err


def test_what_is_not_vouched_for_or_is_removed_makes_nothing_stale(recorded: Path) -> None:
    (recorded / "docs/page.md").write_text("changed")
    (recorded / "series/README.md").write_text("new")
    (recorded / "tests/data/series/gate-broken/0001-a.patch").unlink()
    assert full_run.outdated(recorded) == ""


def test_a_tree_without_a_result_says_so(tree: Path) -> None:
    assert "`make test-all` was never run" in full_run.outdated(tree)


@pytest.mark.parametrize("vm", [{"a": "passed", "b": "failed"}, {"a": "skipped"}, {}])
def test_nothing_is_recorded_unless_every_test_passed(tree: Path, vm: dict[str, str]) -> None:
    full_run.begin(tree)
    assert full_run.record(tree, [unit_passed(tree), journaled(tree, "vm", **vm)]) == 1
    assert not full_run.recorded_file(tree).exists()


def test_nothing_is_recorded_where_files_changed_during_the_run(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full_run.begin(tree)
    (tree / "series/gate/0001-a.patch").write_text("changed")
    assert full_run.record(tree, [unit_passed(tree)]) == 1
    assert "series/gate changed while the tests ran" in capsys.readouterr().err
    assert not full_run.recorded_file(tree).exists()


def test_a_run_is_continued_on_the_same_content_alone(tree: Path) -> None:
    full_run.begin(tree)
    unit_passed(tree)
    folder = full_run.begun_file(tree).parent
    full_run.begin(tree)
    assert [file.name for file in folder.glob("*.ndjson")] == ["unit.ndjson"]
    (tree / "agent/core/main.c").write_text("changed")
    full_run.begin(tree)
    assert not list(folder.glob("*.ndjson"))


TESTS = {
    "tests/vm/test_zombies.py": 'run("freezer")',
    "tests/vm/test_gate.py": 'workload = "zombies"; on_top("gate", f"gate-{name}")',
    "tests/vm/test_other.py": 'kteardown("hunt")',
    "experiments/freezer.toml": 'workload = "zombies"\nvariants = ["other"]',
}


@pytest.mark.parametrize(
    ("file", "left"),
    [
        ("workloads/zombies.toml", {"other"}),
        ("agent/workloads/zombies/zombies.c", {"other"}),
        ("series/gate/0001-a.patch", {"zombies", "other"}),
        ("series/other/for-7.2/0001-a.patch", {"gate", "other"}),
        ("agent/hunt/kinds/files.c", {"zombies", "gate"}),
        # No test names it: it could concern any.
        ("tests/data/series/gate-broken/0001-a.patch", set()),
        ("kernels/base.config", set()),
        ("docs/page.md", {"zombies", "gate", "other"}),
    ],
)
def test_only_tests_that_a_change_concerns_run_again(tree: Path, file: str, left: set[str]) -> None:
    for name, text in TESTS.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    ids = {name: f"tests/vm/test_{name}.py::test_it" for name in ("zombies", "gate", "other")}
    full_run.begin(tree)
    journaled(tree, "vm", **dict.fromkeys(ids.values(), "passed"))
    unit_passed(tree)
    full_run.keep(tree)
    (tree / file).write_text("changed")
    expected = {ids[name] for name in left}
    folder = full_run.begun_file(tree).parent

    full_run.begin(tree)
    assert set(journal.read(folder / "vm.ndjson")) == expected
    assert bool(journal.read(folder / "unit.ndjson")) == (file == "docs/page.md")
    shutil.rmtree(folder)
    full_run.begin(tree)
    assert set(journal.read(folder / "vm.ndjson")) == expected


def test_after_a_recorded_run_a_change_runs_what_it_concerns(recorded: Path) -> None:
    (recorded / "kernels/base.config").write_text("changed")
    full_run.begin(recorded)
    assert not list(full_run.begun_file(recorded).parent.glob("*.ndjson"))


def test_after_a_recorded_run_all_tests_run_again(recorded: Path) -> None:
    assert not list(full_run.begun_file(recorded).parent.iterdir())


def test_a_run_is_continued_from_what_was_kept_in_the_tree(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full_run.begin(tree)
    journaled(tree, "vm", a="passed", b="failed", c="passed")
    assert full_run.keep(tree) == 0
    assert "2 tests of vm passed" in capsys.readouterr().out
    assert "is not complete: 2 tests of vm passed" in full_run.outdated(tree)

    shutil.rmtree(full_run.begun_file(tree).parent)
    full_run.begin(tree)
    file = full_run.begun_file(tree).parent / "vm.ndjson"
    assert {test: entry["outcome"] for test, entry in journal.read(file).items()} == {
        "a": "passed",
        "c": "passed",
    }
    with file.open("a") as stream:
        stream.write(
            json.dumps({"test": "b", "outcome": "passed", "duration_s": 1.0, "date": "2026-01-03"})
            + "\n"
        )
    full_run.begin(tree)
    assert full_run.record(tree, ["vm"]) == 0
    assert full_run.outdated(tree) == ""


def test_what_was_kept_of_other_content_is_not_gone_on_from(tree: Path) -> None:
    full_run.begin(tree)
    journaled(tree, "vm", a="passed")
    full_run.keep(tree)
    (tree / "agent/core/main.c").write_text("changed")
    assert "changed since the full run of the tests on 2026-01-02: agent" in full_run.outdated(tree)
    assert full_run.keep(tree) == 1
    full_run.begin(tree)
    assert not list(full_run.begun_file(tree).parent.glob("*.ndjson"))
