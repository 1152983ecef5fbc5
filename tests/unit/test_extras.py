"""A verb whose libraries are not installed prints the command that installs them."""

from __future__ import annotations

import shlex
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kteardown import extras
from kteardown.cli import app
from kteardown.errors import InputError, LabError
from kteardown.patches import posted
from kteardown.progress import SilentReporter

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (["query", "SELECT 1"], "duckdb"),
        (["export", "--to", "."], "duckdb"),
        (["history"], "duckdb"),
        (["site", "--to", "./site"], "duckdb"),
        (["report", "--format", "png"], "resvg_py"),
        (["mcp"], "mcp"),
    ],
)
def test_the_command_that_adds_the_extra_is_printed(
    arguments: list[str], missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == missing else object())
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path))
    refused = CliRunner().invoke(app, arguments).exception
    assert isinstance(refused, InputError)
    assert missing in refused.message
    assert refused.hint.endswith(f"-m pip install {missing}")


def test_the_command_that_adds_b4_is_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "prefix", "/home/a/.local/share/pipx/venvs/kteardown")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(LabError) as missing:
        posted.fetch("a@b", tmp_path, SilentReporter())
    assert missing.value.hint.startswith("install it: pipx inject kteardown b4; or")


def test_every_extra_of_users_is_known() -> None:
    assert {*PROJECT["optional-dependencies"]} - {"all", "dev", "docs"} == {*extras.EXTRAS}


@pytest.mark.parametrize(
    ("prefix", "begins"),
    [
        ("/home/a/.local/share/pipx/venvs/kteardown", "pipx inject kteardown duckdb"),
        ("/home/a/.local/share/uv/tools/kteardown", "uv pip install --python"),
        ("/home/a/kteardown/.venv", f"{shlex.quote(sys.executable)} -P -m pip install duckdb"),
    ],
)
def test_the_command_depends_on_how_kteardown_was_installed(
    prefix: str, begins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)
    assert extras.install_command(["duckdb"]).startswith(begins)


def test_the_extras_are_those_of_pyproject_toml() -> None:
    declared = PROJECT["optional-dependencies"]
    plain = " ".join(PROJECT["dependencies"])
    for extra, modules in extras.EXTRAS.items():
        for module in modules:
            assert module not in plain
            assert any(module in line for line in declared[extra] + declared["history"])
