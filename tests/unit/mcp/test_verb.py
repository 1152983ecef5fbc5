"""``kteardown mcp``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kteardown.cli import app
from kteardown.errors import InputError


def refused(*arguments: str) -> InputError:
    error = CliRunner().invoke(app, ["mcp", *arguments]).exception
    assert isinstance(error, InputError)
    return error


def test_a_root_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "no such folder" in refused("--root", str(tmp_path / "x")).message


def test_the_home_folder_is_no_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "--root" in refused().hint


def test_another_version_of_the_sdk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "kteardown_mcp.server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    for name in ("kteardown_mcp.tools", "kteardown_mcp.server"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert "not of version 2" in refused().message
