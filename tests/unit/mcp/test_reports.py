"""What the tools say of jobs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown_mcp import reports
from kteardown_mcp.commands import ToolCommand
from kteardown_mcp.jobs import ServerJob

CI = Path(__file__).parents[3] / "docs/ci.md"


def ended(code: int | None, printed: str = "") -> ServerJob:
    job = ServerJob("job-1", "measure", ToolCommand(("measure",)), state="ended", exit_code=code)
    job.printed = printed
    job.add_line("a line \x1b[2J")
    return job


def test_every_exit_code_that_is_documented_has_a_meaning() -> None:
    documented = {int(code) for code in re.findall(r"(?m)^\| (\d+) \|", CI.read_text())}
    assert documented == {*reports.MEANINGS}


def test_only_a_command_that_failed_has_its_log() -> None:
    assert reports.ending(ended(0)) == {"exit_code": 0, "meaning": "done"}
    failed = reports.ending(ended(5))
    assert failed["log"] == {"from_outside": True, "text": "a line \\u001b[2J"}
    assert "signal 9" in reports.ending(ended(137))["meaning"]
    assert reports.ending(ended(None))["meaning"] == "it was stopped"


def test_json_that_a_command_printed_is_data() -> None:
    job = ended(0, '{"boots": [{"outcome": "\\u001b ok"}]}')
    assert reports.printed_json(job, "boots/0/outcome")["value"] == {
        "from_outside": True,
        "at": "boots/0/outcome",
        "value": "\\u001b ok",
    }
    with pytest.raises(InputError, match="there is no 'x'"):
        reports.printed_json(job, "x")
    with pytest.raises(InputError, match="too large"):
        reports.printed_json(ended(0, '{"a'), "")


def test_a_page_can_be_read_further() -> None:
    job = ended(0, "begin" + "x" * 20_000 + "end")
    assert reports.answer(job)["page"]["characters"] == 20_008
    assert reports.answer_at(job, "", 20_000)["page"]["text"] == "xxxxxend"
    assert reports.printed_text(job, -3)["text"]["text"] == "end"
    running = ServerJob("job-1", "measure", ToolCommand(("measure",)), state="running")
    assert reports.answer_at(running, "runs", 0) == reports.answer(running) == {}


def test_the_newest_runs_are_listed() -> None:
    job = ended(0, '{"runs": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}')
    listed = reports.listed(job, 2)
    assert listed["runs"] == 3
    assert listed["newest"]["value"] == [{"name": "c"}, {"name": "b"}]
