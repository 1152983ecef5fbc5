"""The recording of the demo: what is kept of it, and how fast it plays."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import recording


def test_a_program_is_recorded_in_a_terminal(tmp_path: Path) -> None:
    file = tmp_path / "x.cast"
    code = "import os, sys; print(os.get_terminal_size().columns, sys.stdout.isatty()); sys.exit(3)"
    assert recording.record(file, [sys.executable, "-c", code]) == 3
    header = json.loads(file.read_text().splitlines()[0])
    assert (header["version"], header["width"]) == (2, recording.COLUMNS)
    command, events = recording.read(file)
    assert command.startswith(sys.executable)
    assert "".join(text for _, text in events) == f"{recording.COLUMNS} True\r\n"


def test_of_the_report_the_first_paragraphs_are_kept() -> None:
    events = [(0.0, "progress\x1b[?25h"), (1.0, "one\r\n\r\ntwo\r\n"), (1.1, "\r\nthree\r\n\r\nfour")]
    assert recording.cut(events, 2) == [events[0], (1.1, "one\r\n\r\ntwo")]


def test_pauses_are_shortened_and_close_events_joined() -> None:
    events = [(0.0, "a"), (100.0, "b"), (100.01, "c"), (101.0, "d")]
    found = recording.hasten(events, 5.0)
    assert "".join(text for _, text in found) == "abcd"
    assert [text for _, text in found] == ["a", "bc", "d"]
    assert found[-1][0] == pytest.approx(5.0)


def test_the_picture_in_the_documentation_is_small() -> None:
    file = Path(__file__).parents[3] / "docs/images/demo.svg"
    assert 10_000 < file.stat().st_size < 300_000
    assert "kteardown" in file.read_text(encoding="utf-8")
