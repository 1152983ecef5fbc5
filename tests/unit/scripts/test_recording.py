"""The recording of the demo: what is kept of it, and how fast it plays."""

from __future__ import annotations

import io
import json
import shlex
import sys
from pathlib import Path

import pytest
from rich.console import Console

import recording
from kteardown.inputs.load import load_workload
from kteardown.model.result import Result
from kteardown.report import result_file
from kteardown.report.formats import text
from kteardown.report.material import Material

ROOT = Path(__file__).parents[3]


def test_a_program_is_recorded_in_a_terminal(tmp_path: Path) -> None:
    file = tmp_path / "x.cast"
    code = "import os, sys; print(os.get_terminal_size().columns, sys.stdout.isatty()); sys.exit(3)"
    assert recording.record(file, [sys.executable, "-P", "-c", code]) == 3
    header = json.loads(file.read_text().splitlines()[0])
    assert (header["version"], header["width"]) == (2, recording.COLUMNS)
    command, events = recording.read(file)
    assert shlex.split(command)[0] == sys.executable
    assert "".join(text for _, text in events) == f"{recording.COLUMNS} True\r\n"


def test_of_the_report_the_first_paragraphs_are_kept() -> None:
    events = [
        (0.0, "progress\x1b[?25h"),
        (1.0, "one\r\n\r\ntwo\r\n"),
        (1.1, "\r\nthree\r\n\r\nfour"),
    ]
    assert recording.cut(events, 2) == [events[0], (1.1, "one\r\n\r\ntwo")]
    joined = [(0.0, "a"), (1.0, "progress\x1b[?25hone\r\n\r\ntwo"), (1.1, "\r\n\r\nthree")]
    assert recording.cut(joined, 2) == [
        joined[0],
        (1.0, "progress\x1b[?25h"),
        (1.1, "one\r\n\r\ntwo"),
    ]


def of_the_demo(result: Result) -> Result:
    """What the demo measures of the freezer: base and one series."""
    kernels = ("base", "freezer-skip-exited")
    return result.model_copy(
        update={
            "kernels": {name: result.kernels[name] for name in kernels},
            "comparisons": tuple(c for c in result.comparisons if c.variant in kernels),
            "metric_verdicts": tuple(v for v in result.metric_verdicts if v.variant in kernels),
            "laws": tuple(law for law in result.laws if law.kernel in kernels),
        }
    )


def test_what_is_kept_of_the_report_is_on_one_screen_with_its_verdicts() -> None:
    result = of_the_demo(
        result_file.loads(
            (ROOT / "findings/results/freezer/result.json").read_text(encoding="utf-8")
        )
    )
    workloads = {c.workload: load_workload(c.workload) for c in result.comparisons}
    out = io.StringIO()
    text.report(
        Material("", result, workloads),
        Console(file=out, width=recording.COLUMNS, force_terminal=False),
    )
    kept = out.getvalue().split("\n\n")[: recording.PARAGRAPHS]
    table = kept[-1].splitlines()
    assert table[0].startswith("Headline metrics")
    assert table[1].split()[-1] == "verdict"
    # Above it are the command and the lines with the run directory and the forecast.
    assert len("\n\n".join(kept).splitlines()) + 4 <= recording.ROWS


def test_the_recording_shows_what_make_demo_runs() -> None:
    rule = (ROOT / "Makefile").read_text(encoding="utf-8").split("\ndemo: ")[1].split("\n\n")[0]
    command = f" .venv/bin/{shlex.join(recording.DEMO)}"
    assert [line for line in rule.splitlines() if line.endswith(command)]


def test_pauses_are_shortened_and_close_events_joined() -> None:
    events = [(0.0, "a"), (100.0, "b"), (100.01, "c"), (101.0, "d")]
    found = recording.hasten(events, 5.0)
    assert "".join(text for _, text in found) == "abcd"
    assert [text for _, text in found] == ["a", "bc", "d"]
    assert found[-1][0] == pytest.approx(5.0)


def test_the_picture_in_the_documentation_is_small() -> None:
    file = ROOT / "docs/images/demo.svg"
    assert 10_000 < file.stat().st_size < 300_000
    assert "kteardown" in file.read_text(encoding="utf-8")
