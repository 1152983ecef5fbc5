"""A run of a stranger, whose names are markup and control characters, in the verbs that show
runs."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kteardown import pipeline
from kteardown.cli import app
from kteardown.errors import InputError
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load
from kteardown.visible import visible
from unit.report.contexts import write_run

VARIANT = "[/bold]x\x1b[2J`@y`"
DETAIL = "CPU#0 stuck for 22s! [zombies:123] in [kworker/0:1]\x1b]0;t\x07"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.chdir(tmp_path)
    made = write_run(tmp_path / "runs")
    pipeline.analyse_and_save(load(made))
    for file in (*made.path.glob("*.json"), made.records_file.path):
        file.write_text(file.read_text().replace("freezer-skip-exited", json.dumps(VARIANT)[1:-1]))
    records = [json.loads(line) for line in made.records_file.path.read_text().splitlines()]
    next(one for one in records if "outcome" in one)["detail"] = DETAIL
    made.records_file.path.write_text("".join(f"{json.dumps(one)}\n" for one in records))
    return made


def printed(*words: str) -> str:
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert done.output == visible(done.output)
    return done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("list", "runs"),
        ("show", "last"),
        ("report", "last"),
        ("report", "last", "--format", "cover"),
        ("report", "last", "--format", "reply"),
    ],
)
def test_every_verb_shows_its_names_as_they_are(words: tuple[str, ...], run: RunDir) -> None:
    assert r"[/bold]x\u001b[2J`@y`" in printed(*words)


def test_the_detail_of_a_boot_is_whole(run: RunDir) -> None:
    assert visible(DETAIL) in printed("show", "last")


def test_a_query_shows_names_and_values_as_they_are(run: RunDir) -> None:
    assert printed("query", "SELECT '[/bold]' AS \"x\\[/b]\x1b[2J\"").split() == [
        r"x\[/b]\u001b[2J",
        "[/bold]",
    ]
    assert printed("query", "SELECT DISTINCT kernel FROM boots ORDER BY ALL").split()[1] == visible(
        VARIANT
    )
    assert (
        printed("query", "--csv", "SELECT '=1+1' AS a, -1 AS b, '@x' AS \"-c\"")
        == "a,b,'-c\n'=1+1,-1,'@x\n"
    )
    rows = json.loads(printed("query", "--json", "SELECT chr(133) || chr(8238) AS a"))
    assert rows == [{"a": "\x85\u202e"}]


@pytest.mark.parametrize("sql", ["", ";", " -- only a comment"])
def test_a_query_without_a_statement_is_refused(sql: str, run: RunDir) -> None:
    error = CliRunner().invoke(app, ["query", sql]).exception
    assert isinstance(error, InputError)
    assert error.message == "the query is empty"


def test_a_console_is_visible_on_a_terminal_and_unchanged_in_a_file(run: RunDir) -> None:
    content = b"a\x1b[2J\r\nb\xff\n"
    file = run.console_file(0, 0).path
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    assert CliRunner().invoke(app, ["show", "last", "--console", "0"]).stdout_bytes == content
    terminal, inside = pty.openpty()
    shown = [sys.executable, "-P", "-m", "kteardown", "show", "last", "--console", "0"]
    subprocess.run(shown, stdout=inside, check=True)
    with os.fdopen(terminal, "rb", buffering=0) as stream, os.fdopen(inside, "wb"):
        assert stream.read(1000) == "a\\u001b[2J\r\nb\ufffd\r\n".encode()
