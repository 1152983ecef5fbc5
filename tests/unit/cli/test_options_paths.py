"""Options that name a file which is missing, a folder, empty or unreadable: one error, and nothing
is run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kteardown.errors import InputError
from unit.cli.test_first_hour import failure
from unit.cli.test_main import without_privileges
from unit.conftest import MISSING

PROBLEMS = {
    "absent": "there is no such file",
    "folder": "is a folder, not a file",
    "empty": "is empty",
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "secret").write_text("x")
    (tmp_path / "secret").chmod(0)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "plan freezer --source",
        "plan freezer --variant",
        *(() if "hunt" in MISSING else ("hunt --source",)),
    ],
)
@pytest.mark.parametrize("form", ["image", "tar"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_source_that_is_not_a_file_is_refused(
    files: Path, name: str, form: str, command: str
) -> None:
    spec = f"{form}:{files / name}"
    error = failure(*command.split(), spec)
    assert isinstance(error, InputError)
    assert error.message == f"{spec}: {PROBLEMS[name]}"


@pytest.mark.parametrize("form", ["image", "tar"])
def test_a_source_that_may_not_be_read_is_refused(files: Path, form: str) -> None:
    spec = f"{form}:{files / 'secret'}"
    done = without_privileges("plan", "freezer", "--source", spec, home=files)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[0] == f"kteardown: {spec}: cannot be read: Permission denied"
    assert len(done.stderr.splitlines()) == 2


def test_a_folder_that_is_not_a_git_tree_is_refused(files: Path) -> None:
    error = failure("plan", "freezer", "--source", f"git:{files / 'folder'}")
    assert error.message.startswith(f"{files / 'folder'} is not a git tree: not a git repository")


@pytest.mark.parametrize("option", ["--json", "--markdown"])
def test_a_folder_as_the_file_to_write_is_refused_before_the_run(files: Path, option: str) -> None:
    error = failure(
        "run", "freezer", "--source", f"image:{files / 'absent'}", option, str(files / "folder")
    )
    assert error.message == f"{files / 'folder'}: cannot be written: it is a folder"


def test_a_folder_that_may_not_be_written_is_refused(files: Path) -> None:
    (files / "folder").chmod(0o500)
    file = files / "folder/r.json"
    done = without_privileges(
        "run", "freezer", "--source", "image:/absent", "--json", str(file), home=files
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"kteardown: {file}: cannot be written: permission denied")
    assert not os.access(files / "runs", os.F_OK)
