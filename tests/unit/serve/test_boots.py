"""The boots of a run and their consoles over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kteardown.model.record import KernelProblem
from kteardown.rundir.directory import RunDir
from kteardown.rundir.writer import open_writer
from kteardown.serve.app import console_lines, tail
from unit.run import killable
from unit.serve.test_serve import Site, serving

BOOT = 5
EXCERPT = (
    "BUG: kernel NULL pointer dereference, address: 0000000000000010",
    "RIP: 0010:freeze_task+0x31/0x90 (kernel/freezer.c:157)",
)
CONSOLE = (
    "[    0.500000] Linux version 6.12\r\n"
    "[    0.600000] kteardown: trial 0: zombies zombies=0\r\n"
    "[    0.700000] BUG: kernel NULL pointer dereference, address: 0000000000000010\r\n"
    "[    0.700001] RIP: 0010:freeze_task+0x31/0x90\r\n"
    "[    0.700002] Comm: <script>alert(1)</script>\x1b[31m\r\n"
    "[    0.800000] Kernel panic - not syncing: Fatal exception\r\n"
)


def panicked(home: Path) -> RunDir:
    """Make a finished run of which one boot panicked."""
    run = killable.make_run(home / "runs", "instructions")
    killable.measure(run.path)
    lines = run.records_file.read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if '"boot_end"' in line and json.loads(line)["boot"] == BOOT)
    end = json.loads(lines[at])
    problem = {"kind": "oops", "line": EXCERPT[0], "excerpt": EXCERPT, "trials": [0]}
    lines[at] = json.dumps({**end, "outcome": "panic", "detail": "Kernel panic", "problems": [problem]})
    run.records_file.write_text("\n".join(lines) + "\n")
    run.console_path(BOOT, 0).write_text(CONSOLE)
    return run


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("home")
    panicked(home)
    killable.make_run(home / "runs", "instructions")
    (home / "runs" / "secret.log").write_text("not for you")
    with serving(home) as found:
        yield found


def run_of(site: Site) -> str:
    return f"/runs/{min(path.name for path in site.runs.iterdir() if path.is_dir())}"


@pytest.mark.parametrize(
    ("query", "count"),
    [("", 6), ("outcome=panic", 1), ("outcome=failed", 1), ("outcome=ok", 5), ("kernel=base", 3)],
)
def test_boots_are_listed_and_filtered_by_the_address(query: str, count: int, site: Site) -> None:
    page = site.ask(f"{run_of(site)}/boots?{query}")
    assert page.status == 200
    assert page.text.count('<td class="why">') == count
    if not query.startswith("kernel"):
        assert (EXCERPT[0] in page.text) == (query != "outcome=ok")


def test_the_page_of_a_run_leads_to_the_boots_that_failed(site: Site) -> None:
    page = site.ask(run_of(site)).text
    assert "1 boot failed" in page
    assert f'href="{run_of(site)}/boots/5"' in page


def test_a_console_has_the_report_highlighted_with_its_source_lines(site: Site) -> None:
    page = site.ask(f"{run_of(site)}/boots/5")
    assert page.status == 200
    assert page.text.count(EXCERPT[1]) == 2
    assert f'<span class="problem" id="problem-0"><i>[    0.700000]</i> {EXCERPT[0]}</span>' in page.text
    assert '<span class="problem"><i>[    0.800000]</i> Kernel panic' in page.text
    assert '<span class="trial">' in page.text
    assert "&lt;script&gt;alert(1)" in page.text
    assert "<script>alert" not in page.text and "\x1b" not in page.text


def test_the_file_of_a_console_is_unchanged_and_plain_text(site: Site) -> None:
    answer = site.ask(f"{run_of(site)}/boots/5/console.log?attempt=0")
    assert (answer.status, answer.text) == (200, CONSOLE)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    unfinished = max(path.name for path in site.runs.iterdir() if path.is_dir())
    assert site.ask(f"/runs/{unfinished}/boots/0/console.log").status == 404
    assert "There is no console" in site.ask(f"/runs/{unfinished}/boots/0").text


@pytest.mark.parametrize(
    "path",
    [
        "/boots/99",
        "/boots/-1",
        "/boots/5?attempt=1",
        "/boots/5?attempt=../../secret",
        "/boots/5/console.log?attempt=0%2f..%2f..%2fsecret",
        "/boots/..%2f..%2fsecret.log",
        "/boots/5/..%2f..%2f..%2fsecret.log",
        "/boots/../../secret.log",
    ],
)
def test_no_address_of_a_console_reaches_another_file(path: str, site: Site) -> None:
    answer = site.ask(run_of(site) + path)
    assert answer.status == 404
    assert "not for you" not in answer.text


def test_a_boot_that_runs_and_those_to_do_are_listed(site: Site) -> None:
    run = RunDir(max(path for path in site.runs.iterdir() if path.is_dir()))
    assert site.ask(f"/runs/{run.name}/boots?outcome=to%20do").text.count("to do</span>") == 6
    whole = RunDir(site.runs / run_of(site).removeprefix("/runs/")).records_file.read_bytes()
    run.records_file.write_bytes(b"".join(whole.splitlines(keepends=True)[:3]))
    try:
        with open_writer(run):
            assert site.ask(f"/runs/{run.name}/boots").text.count("running</span>") >= 1
        assert site.ask(f"/runs/{run.name}/boots").text.count("cut short</span>") >= 1
    finally:
        run.records_file.unlink()


def test_every_repetition_of_a_problem_is_highlighted_and_the_first_has_the_anchor() -> None:
    problem = KernelProblem(kind="warning", line="WARNING: x", excerpt=("WARNING: x", "Call Trace:"))
    found = list(console_lines("WARNING: x\nCall Trace:\nWARNING: x\n\nplain", [problem]))
    assert [line.kind for line in found] == ["problem", "stack", "problem", "", ""]
    assert [line.problem for line in found] == [0, None, None, None, None]


def test_of_a_long_console_the_end_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kteardown.serve.app._MOST_BYTES", 12)
    file = tmp_path / "console.log"
    file.write_text("first\nsecond\nthird\n")
    assert tail(file) == ("third\n", False)
    file.write_text("short\n")
    assert tail(file) == ("short\n", True)
