"""A verb whose libraries are not installed prints the command that installs them."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kteardown.cli import app, extras
from kteardown.errors import InputError

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (["query", "SELECT 1"], "duckdb"),
        (["export", "--to", "."], "duckdb"),
        (["history"], "ruptures"),
        (["serve", "--port", "0"], "uvicorn"),
        (["report", "--format", "svg"], "kaleido"),
    ],
)
def test_the_command_that_adds_the_extra_is_printed(
    arguments: list[str], missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == missing else object())
    if arguments[0] == "report":
        with pytest.raises(InputError) as refused:
            extras.need("pictures", "--format svg")
    else:
        done = CliRunner().invoke(app, arguments)
        assert isinstance(done.exception, InputError)
        refused = pytest.ExceptionInfo.from_exception(done.exception)
    assert missing in refused.value.message
    assert refused.value.hint.endswith(f"-m pip install {missing}")


@pytest.mark.parametrize(
    ("prefix", "begins"),
    [
        ("/home/a/.local/share/pipx/venvs/kteardown", "pipx inject kteardown duckdb"),
        ("/home/a/.local/share/uv/tools/kteardown", "uv pip install --python"),
        ("/home/a/kteardown/.venv", f"{sys.executable} -m pip install duckdb"),
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
