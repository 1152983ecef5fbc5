"""The man pages have every verb and every option, and no text that roff reads as a request."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from kteardown.cli import app

ROOT = Path(__file__).parents[3]
_REQUEST = re.compile(r"\.(TH|SH|PP|TP|B|nf|fi)\b")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("man")
    subprocess.run([sys.executable, ROOT / "scripts/man.py", made], check=True)
    return made


def test_every_verb_has_a_page_with_its_options(folder: Path) -> None:
    verbs = get_command(app).commands  # type: ignore[attr-defined]
    assert len(verbs) > 10
    assert {path.stem for path in folder.iterdir()} == {
        "kteardown",
        *(f"kteardown-{name}" for name in verbs),
    }
    for name, verb in verbs.items():
        text = (folder / f"kteardown-{name}.1").read_text().replace(r"\-", "-")
        for option in (option for parameter in verb.params for option in parameter.opts):
            assert option in text, (name, option)


def test_the_main_page_names_the_other_pages_and_the_exit_codes(folder: Path) -> None:
    text = (folder / "kteardown.1").read_text()
    assert r"\fBkteardown-compare(1)\fP" in text
    assert "130 interrupted" in text


def test_no_text_is_read_as_a_roff_request(folder: Path) -> None:
    lines = [line for path in folder.iterdir() for line in path.read_text().splitlines()]
    assert [line for line in lines if line[:1] in (".", "'") and not _REQUEST.match(line)] == []
    assert any(line.startswith("  kteardown compare zombies") for line in lines)
