"""Text from outside is printed by one module, without characters that a terminal obeys."""

from __future__ import annotations

import io
import json
import re

import pytest
from rich.table import Table
from rich.text import Text

from kteardown.cli import _print_error
from kteardown.cli.terminal import TerminalReporter
from kteardown.report.console import TextConsole
from kteardown.visible import echo, on_one_line, visible
from sources import named, source_files

OWN: dict[str, set[str]] = {
    r"(?<![A-Za-z])Console\(|from_markup|markup=True|force_terminal=True": set(),
    r"\b(?:typer|click)\.s?echo\(|(?<![\w.])print\(": {
        "visible.py",
        "kteardown_cluster/node_job.py",
        "kteardown_observe/collector/main.py",
        "kteardown_observe/programs/pins.py",
    },
    r"sys\.std(?:out|err)\.(?:write|buffer)": {"cli/show.py"},
}
"""What prints, and the only modules that may have it; the program on a node writes into a file of
Slurm, the collector prints JSON in ASCII, and the program for drgn only printable characters."""
HOSTILE = "a\x1b]52;c;eA==\x07\x1b[2J\x9b31m\x7f\u202eb\udc80[/bold]:smile:"


@pytest.mark.parametrize("pattern", OWN)
def test_everything_is_printed_by_one_module(pattern: str) -> None:
    files = {named(file): file.read_text(encoding="utf-8") for file in source_files()}
    assert {name for name, text in files.items() if re.search(pattern, text)} == (
        OWN[pattern] & {*files}
    )


def test_what_acts_is_shown() -> None:
    assert visible("\x1b[2J\x9b\x7f\r\u202e\u2069\udc80\ufffe") == (
        r"\u001b[2J\u009b\u007f\u000d\u202e\u2069\udc80\ufffe"
    )
    assert visible("a\n\tü€😀 [x]") == "a\n\tü€😀 [x]"
    assert on_one_line("<a\n\tBcc: b\r\nc\u2028d>") == "<a  Bcc: b c d>"


def test_json_keeps_its_meaning() -> None:
    values = [HOSTILE, "\\\x85", "\\u0085\x85"]
    assert json.loads(visible(json.dumps(values, ensure_ascii=False))) == values


def test_a_console_takes_no_markup_and_no_control_characters() -> None:
    out = TextConsole(file=io.StringIO(), width=200, force_terminal=True, color_system=None)
    table = Table(HOSTILE, title=HOSTILE, box=None)
    table.add_row(HOSTILE)
    for thing in (table, HOSTILE, Text(HOSTILE)):
        out.print(thing)
    reporter = TerminalReporter(out, verbose=True)
    reporter.note(HOSTILE)
    reporter.command(["x", HOSTILE])
    assert isinstance(out.file, io.StringIO)
    made = out.file.getvalue()
    assert made == visible(made)
    assert made.count("[/bold]:smile:") == 7


def test_the_live_display_shows_a_title_as_it_is() -> None:
    out = TextConsole(file=io.StringIO(), width=200, force_terminal=True)
    reporter = TerminalReporter(out)
    with reporter.task(HOSTILE) as task:
        task.update(1, HOSTILE)
        reporter.interim_results(list)
    assert isinstance(out.file, io.StringIO)
    assert out.file.getvalue().count(r"a\u001b]52;c;eA==\u001b[2J\u009b3") == 2
    assert not re.search(r"\x1b\]|\x1b\[2J|[\x07\x9b\u202e]", out.file.getvalue())


def test_errors_and_pages_are_visible(capsys: pytest.CaptureFixture[str]) -> None:
    _print_error(f"root:x:0:0 {HOSTILE}", HOSTILE)
    echo(HOSTILE)
    done = capsys.readouterr()
    assert visible(done.err) == done.err
    assert done.err.startswith(r"kteardown: root:x:0:0 a\u001b")
    assert done.out == visible(HOSTILE) + "\n"
