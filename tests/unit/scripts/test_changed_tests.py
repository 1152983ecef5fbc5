"""Which tests a change can affect, in this tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from changed_tests import ABOUT, LINT, ROOT, affected_tests, changed, lint_steps


def split(*names: str) -> tuple[set[str], set[str]]:
    found = set(affected_tests(ROOT, names))
    guests = {name for name in found if not name.startswith("tests/unit/")}
    return found - guests, guests


@pytest.mark.parametrize(
    "names",
    [
        ("docs/glossary.md", "README.md"),
        ("src/kteardown/report/charts/forest.py",),
        ("findings/masskill.md",),
        ("series/freezer-skip-exited/0000-cover-letter.md",),
    ],
)
def test_pages_reports_and_results_need_no_guest(names: tuple[str, ...]) -> None:
    unit, guests = split(*names)
    assert unit
    assert not guests


def test_a_figure_and_its_scripts_need_no_test_of_the_tool() -> None:
    names = ("findings/results/freezer/result.json", "findings/scripts/claims.py")
    assert split(*names) == (set(), set())


def test_a_page_affects_the_tests_that_name_it_only() -> None:
    unit, _ = split("docs/glossary.md")
    assert "tests/unit/test_docs.py" in unit
    assert "tests/unit/analysis/test_faults.py" not in unit


def test_a_module_affects_the_tests_that_import_it_through_others() -> None:
    unit, _ = split("src/kteardown/model/record.py")
    assert {"tests/unit/analysis/test_faults.py", "tests/unit/rundir/test_snapshot.py"} <= unit


@pytest.mark.parametrize("name", ["agent/core/trial.c", "tests/vm/guest_init.c", "pyproject.toml"])
def test_what_decides_how_a_guest_runs_affects_all_guests(name: str) -> None:
    _, guests = split(name)
    assert {"tests/vm/test_run.py", "tests/vm/test_masskill.py", "tests/kvm/test_ends.py"} <= guests


def test_a_module_affects_the_guests_that_are_about_it() -> None:
    _, guests = split("src/kteardown/vm/qemu.py")
    assert guests == {f"tests/vm/test_{name}.py" for name in ABOUT["vm"]}
    about = {f"tests/vm/test_{name}.py" for names in ABOUT.values() for name in names}
    assert about == {name for name in about if (ROOT / name).is_file()}
    packages = {path.stem for path in (ROOT / "src/kteardown").iterdir()}
    packages |= {path.name.partition("_")[2] for path in (ROOT / "src").iterdir()}
    assert packages >= set(ABOUT)


def test_a_file_of_the_tests_with_guests_affects_those_that_use_it() -> None:
    _, guests = split("tests/vm/test_run.py")
    assert {"tests/vm/test_run.py", "tests/vm/test_profile.py"} <= guests
    assert "tests/vm/test_machines.py" not in guests
    assert split("tests/vm/test_crowd.py")[1] == {"tests/vm/test_crowd.py"}


def test_a_text_needs_few_steps_of_lint_and_a_module_no_compiler() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"LINT := {' '.join(LINT)}\n" in makefile
    assert lint_steps(["docs/glossary.md", "findings/scripts/claims.py"]) == []
    assert {"agent", "plugins"} & set(lint_steps(["src/kteardown/vm/qemu.py"])) == set()
    assert {"agent", "sizes", "coverage"} <= set(lint_steps(["agent/core/trial.c"]))
    assert set(lint_steps(["docs/glossary.md", "pyproject.toml"])) == set(LINT)


def test_a_series_affects_the_guests_that_name_it() -> None:
    _, guests = split("series/memcg-swap-reparent/0001-a.patch")
    assert "tests/vm/test_memcg_swap.py" in guests
    assert "tests/vm/test_masskill.py" not in guests


def test_changed_are_new_files_and_those_of_the_last_commit_if_there_are_no_others(
    tmp_path: Path,
) -> None:
    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True
        )

    git("init", "-q")
    for name in ("first", "second"):
        (tmp_path / name).write_text(name)
        git("add", name)
        git("commit", "-qm", name)
    assert changed(tmp_path, None) == ["second"]
    (tmp_path / "third").write_text("")
    assert changed(tmp_path, None) == ["third"]
    assert changed(tmp_path, "HEAD~1") == ["second", "third"]
