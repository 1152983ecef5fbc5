"""Every verb on a run that was measured on both clocks."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kteardown.cli import app
from kteardown.rundir.find import RunFolder
from outputs import result_in, run_in
from unit.cli.test_complete import offered
from unit.report.contexts import write_both, write_run


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("home")
    write_both(home / "runs")
    yield home


@pytest.fixture
def both(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RunFolder:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(home / "runs"))
    monkeypatch.chdir(tmp_path)
    (path,) = (home / "runs").iterdir()
    return RunFolder.open(path)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """A run that a test may change."""
    found = write_both(tmp_path)
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path))
    output_of("analyse", "last")
    return found


def output_of(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, (done.stderr, done.exception)
    return done.stdout


def refused(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code != 0
    return f"{done.exception} {getattr(done.exception, 'hint', '')}"


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("text", "With freezer-skip-exited, freez"),
        ("markdown", "- **With freezer-skip-exited, freez"),
        ("cover", "- With freezer-skip-exited, freez"),
        ("json", "{"),
        ("html", "<!doctype html>"),
        ("comment", "- **With freezer-skip-exited, freez"),
        (
            "junit",
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<testsuites name="kteardown: With freezer-skip-exited, ',
        ),
    ],
)
def test_every_format_of_the_report(both: RunFolder, form: str, begins: str) -> None:
    more = ("--output", "-") if form == "html" else ()
    assert output_of("report", "last", "--format", form, *more).startswith(begins)


@pytest.mark.parametrize("clock", ["instructions", "wall"])
def test_each_clock_has_its_own_report(both: RunFolder, clock: str) -> None:
    printed = result_in(output_of("report", f"last/{clock}", "--format", "json"))
    assert printed["clock"] == clock
    file = output_of("report", f"last/{clock}", "--format", "html").strip()
    assert file == f"{both.name}-{clock}.html"
    assert Path(file).is_file()


def test_the_cover_letter_fits_and_has_the_limits_of_both_clocks(both: RunFolder) -> None:
    text = output_of("report", "last", "--format", "cover")
    assert max(map(len, text.splitlines())) <= 72
    words = " ".join(text.split())
    for sentence in (
        "- With freezer-skip-exited, freezing user space takes",
        "An instruction count shows path length, growth and memory.",
        "Real time on one machine; another machine can differ.",
        "Smallest change that the wall clock could have seen (80% power):",
        "One instruction of freezing user space took 1.00",
    ):
        assert sentence in words


@pytest.mark.parametrize("form", ["text", "markdown", "cover", "reply", "html"])
def test_what_the_other_clock_would_add_is_said_only_where_it_was_not_measured(
    both: RunFolder, form: str
) -> None:
    more = ("--output", "-") if form == "html" else ()
    assert "clock would add" not in output_of("report", "last", "--format", form, *more)
    alone = " ".join(output_of("report", "last/wall", "--format", form, *more).split())
    # The readers of a reply do not know the clocks.
    assert ("instruction clock would add the exact" in alone) == (form != "reply")


def test_the_page_has_both_clocks_first_and_no_name_twice(both: RunFolder) -> None:
    page = output_of("report", "last", "--format", "html", "--output", "-")
    ids = re.findall(r'<section id="([^"]+)"', page)
    assert ids[:2] == ["clocks", "verdict"]
    assert "wall-verdict" in ids and "wall-changes" in ids
    every = re.findall(r' id="([^"]+)"', page)
    assert len(every) == len(set(every))
    summary = "Headline metrics over all their points, change on both clocks"
    assert page.index(summary) < page.index('<section id="verdict"')


def test_each_side_has_the_unit_that_its_clock_gives(both: RunFolder) -> None:
    found = run_in(output_of("report", "last", "--format", "json"))["both_clocks"]
    crossed = json.loads(output_of("diff", "last/instructions", "last/wall", "--json"))
    for clock, side, unit in (("instructions", "a", "instructions"), ("wall", "b", "ns")):
        assert {row[clock]["value_unit"] for row in found["readings"] + found["metrics"]} == {unit}
        assert {row[side]["value_unit"] for row in crossed["rows"]} == {unit}


def test_charts_are_of_one_clock(both: RunFolder) -> None:
    assert f"name one run: {both.name}/instructions" in refused("report", "last", "--format", "svg")


def test_a_gate_reads_both_clocks(both: RunFolder) -> None:
    assert "headline comparisons are inconclusive" not in output_of(
        "report", "--fail-on", "inconclusive"
    )


def test_it_is_listed_once_with_the_sentence_of_its_report(own: RunFolder) -> None:
    (row,) = json.loads(output_of("list", "runs", "--json"))["runs"]
    assert (row["name"], row["clock"], row["state"]) == (own.name, ["instructions", "wall"], "done")
    assert row["result"] == json.loads(output_of("report", "last", "--format", "json"))["headline"]
    own.runs[1].result_file.path.unlink()
    (row,) = json.loads(output_of("list", "runs", "--json"))["runs"]
    assert row["state"] == "unfinished"


def test_the_folder_of_pages_has_one_page_with_the_sentence_of_both(
    own: RunFolder, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    output_of("site", "--to", str(site))
    index = (site / "index.html").read_text()
    said = json.loads(output_of("report", "last", "--format", "json"))["headline"]
    assert all(f'<p class="line">{line}</p>' in index for line in said.splitlines())
    assert "instructions and wall" in index
    assert [file.name for file in site.glob("run-*")] == [f"run-{own.name}.html"]
    page = (site / f"run-{own.name}.html").read_text()
    assert page == output_of("report", "last", "--format", "html", "--output", "-")
    own.runs[1].result_file.path.unlink()
    output_of("site", "--to", str(site))
    index = (site / "index.html").read_text()
    assert '<a href="run-' not in index
    assert "instructions: 9 of 9 boots done" in index


def test_the_boots_of_both_are_shown_and_a_console_is_of_one(both: RunFolder) -> None:
    shown = output_of("show", "last").replace("\n", "")
    assert str(both.path / "instructions") in shown
    assert str(both.path / "wall") in shown
    assert "was measured on both clocks" in refused("show", "last", "--console", "0")
    assert "no such file" in refused("show", "last/wall", "--console", "0").lower()


def test_both_are_exported_and_queried(both: RunFolder, tmp_path: Path) -> None:
    output_of("export", "last", "--to", str(tmp_path / "data"))
    rows = list(csv.DictReader((tmp_path / "data/runs.csv").open()))
    answer = json.loads(output_of("query", "--json", "SELECT run, clock FROM runs ORDER BY clock"))
    expected = [(f"{both.name}/{clock}", clock) for clock in ("instructions", "wall")]
    assert [(row["run"], row["clock"]) for row in rows] == expected
    assert [(row["run"], row["clock"]) for row in answer] == expected
    one = tmp_path / "one"
    output_of("export", "last/wall", "--to", str(one))
    assert [row["clock"] for row in csv.DictReader((one / "runs.csv").open())] == ["wall"]


def test_the_history_has_a_line_for_each_clock(both: RunFolder) -> None:
    found = json.loads(output_of("history", "freezer", "--json"))
    assert {line["clock"] for line in found["lines"]} == {"instructions", "wall"}
    only = json.loads(output_of("history", "freezer", "--clock", "wall", "--json"))
    assert {line["clock"] for line in only["lines"]} == {"wall"}


def test_each_clock_is_compared_with_the_same_clock(both: RunFolder, tmp_path: Path) -> None:
    found = json.loads(output_of("diff", "last", both.name, "--json"))
    assert list(found) == ["instructions", "wall"]
    assert all(row["same_verdict"] for each in found.values() for row in each["rows"])
    one = json.loads(output_of("diff", "last", f"{both.name}/wall", "--json"))
    assert (one["a"], one["b"]) == (f"{both.name}/wall", f"{both.name}/wall")
    file = tmp_path / "both.json"
    output_of("report", "last", "--format", "json", "--output", str(file))
    assert list(json.loads(output_of("diff", str(file), "last", "--json"))) == [
        "instructions",
        "wall",
    ]
    assert output_of("diff", "last", str(file)).count("\nB: ") == 2
    crossed = output_of("diff", "last/instructions", "last/wall")
    assert "which measure different things" in crossed


def test_both_are_analysed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    found = write_both(tmp_path / "runs")
    output_of("analyse")
    assert all(run.result_file.path.is_file() for run in found.runs)
    assert output_of("analyse").count("identical byte for byte") == 2


def test_both_and_each_are_completed(home: Path, both: RunFolder) -> None:
    expected = ["last", both.name, f"{both.name}/instructions", f"{both.name}/wall"]
    assert offered(home, "report ") == expected
    assert offered(home, "run freezer --clock b") == ["both"]


def test_the_plan_has_both_clocks(both: RunFolder) -> None:
    plan = json.loads(
        output_of(
            *("plan", "freezer", "--clock", "both", "--quick", "--seeds", "2", "--boots", "5"),
            *("--layout-twin", "--json"),
        )
    )
    assert list(plan) == ["instructions", "wall"]
    kernels = {clock: {boot["kernel"] for boot in each["boots"]} for clock, each in plan.items()}
    assert kernels["wall"] - kernels["instructions"] == {"base-twin", "base-layout"}
    blocks = {clock: {boot["block"] for boot in each["boots"]} for clock, each in plan.items()}
    assert (len(blocks["instructions"]), len(blocks["wall"])) == (2, 5)


def test_a_run_that_has_begun_on_one_clock_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    found = write_both(tmp_path / "runs")
    found.runs[1].records_file.path.unlink()
    words = " ".join(output_of("report").split())
    assert "So far, with 24 boots left: " in words
    assert "undecided: the wall clock has no such comparison" in words


def test_a_run_on_one_clock_keeps_its_plain_formats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    run = write_run(tmp_path / "runs")
    assert "comparisons" in result_in(output_of("report", run.name, "--format", "json"))
