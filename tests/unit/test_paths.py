"""How a reader starts this program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kteardown.paths import program


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "venv/bin/kteardown"
    file.parent.mkdir(parents=True)
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(file), "list"])
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return file


def test_a_program_that_the_shell_does_not_find_has_its_path(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert program() == "venv/bin/kteardown"
    monkeypatch.chdir("/usr")
    assert program() == str(script)


def test_a_program_that_the_shell_finds_has_its_name(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(script.parent))
    assert program() == "kteardown"


def test_another_program_of_that_name_is_not_this_one(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other/kteardown"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    assert program() == "venv/bin/kteardown"


def test_a_program_that_only_imports_it_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/pytest"])
    assert program() == "kteardown"
