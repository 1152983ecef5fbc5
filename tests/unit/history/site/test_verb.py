"""``kteardown site``: the folder of pages, of good runs, damaged runs, and runs of a stranger."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kteardown import pipeline
from kteardown.cli import app
from kteardown.errors import GuestError, InputError
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import all_folders
from kteardown.rundir.snapshot import load
from kteardown.rundir.writer import open_writer
from kteardown.visible import visible
from unit.report.contexts import write_run
from unit.run import killable

ONCE = ("index", "compare", "problems", "history")
"""The pages that a site has once."""
KINDS = ("js", "json")
EVIL = "<img src=x onerror=alert(1)>\"'[/bold]\x1b"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = write_run(tmp_path_factory.mktemp("runs"))
    pipeline.analyse_and_save(load(made))
    return made.path


@pytest.fixture
def run(measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    """A finished run that a test may change."""
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    return RunDir(Path(shutil.copytree(measured, tmp_path / "runs" / measured.name)))


def another(run: RunDir, name: str) -> RunDir:
    return RunDir(Path(shutil.copytree(run.path, run.path.with_name(name))))


def written() -> str:
    """Write the pages and return what is printed."""
    done = CliRunner().invoke(app, ["site", "--to", "site"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def index() -> str:
    return Path("site/index.html").read_text(encoding="utf-8")


def report(run: RunDir) -> str:
    words = ["report", str(run.path), "--format", "html", "--output", "-"]
    return CliRunner().invoke(app, words, catch_exceptions=False).stdout


def refused(*words: str) -> InputError:
    error = CliRunner().invoke(app, ["site", *words]).exception
    assert isinstance(error, InputError)
    return error


def test_a_run_with_a_result_has_a_page_and_its_lines_in_the_index(run: RunDir) -> None:
    assert written() == "site/index.html: runs: 1, pages written: 1, runs with an error: 0\n"
    page = index()
    assert f'<a href="run-{run.name}.html">{run.name}</a>' in page
    for text in (
        "freezer-skip-exited, freezer-skip-nofreeze · freezer on debian:6.12 · instructions · 2",
        " UTC · done</p>",
        '<p class="line">With freezer-skip-exited, freezing user space takes ',
        "4 better</span>",
    ):
        assert text in page
    assert Path(f"site/run-{run.name}.html").read_text(encoding="utf-8") == report(run)


def test_runs_are_newest_first_and_an_unfinished_one_says_how_far_it_is(run: RunDir) -> None:
    unfinished = killable.make_run(run.path.parent, "instructions")
    written()
    names = re.findall(r"<h2>(?:<a [^>]*>)?([^<]*)", index())
    assert names == [found.name for found in reversed(all_folders())]
    assert {unfinished.name, run.name} == {*names}
    assert "unfinished</p>" in index() and "0 of 6 boots done, 6 left" in index()
    assert not Path(f"site/run-{unfinished.name}.html").exists()
    with open_writer(unfinished):
        written()
    assert "running</p>" in index()


def test_only_the_page_of_a_run_with_a_newer_result_is_written_again(run: RunDir) -> None:
    other = another(run, "other")
    written()
    page = Path("site/run-other.html")
    page.write_text("as it was")
    os.utime(page, ns=(other.result_file.path.stat().st_mtime_ns,) * 2)
    assert "pages written: 0," in written()
    assert page.read_text() == "as it was"
    changed = other.result_file.path.stat().st_mtime_ns + 1
    os.utime(other.result_file.path, ns=(changed, changed))
    assert "pages written: 1," in written()
    assert page.read_text() == report(other)


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("result.json", "{", "damaged/result.json: not a result.json"),
        ("experiment.json", "", "damaged/experiment.json"),
        ("experiment.json", "[" * 200_000, "damaged/experiment.json"),
        ("workloads.json", "[]", "damaged/workloads.json"),
        ("records.ndjson", '{"type":"boot_end"}\n', "damaged/records.ndjson"),
    ],
)
def test_a_damaged_run_is_named_with_its_error_and_the_others_are_written(
    file: str, content: str, reason: str, run: RunDir
) -> None:
    bad = another(run, "damaged")
    ended = bad.ended_boots()
    (bad.path / file).write_text(content * (ended if file == "records.ndjson" else 1))
    assert "pages written: 1, runs with an error: 1" in written()
    assert f'<p class="line worse">{reason}' in index()
    assert str(run.path.parent) not in index()
    assert re.findall(r'href="(run-[^"]*)"', index()) == [f"run-{run.name}.html"]
    assert not Path("site/run-damaged.html").exists()


def test_what_a_run_raises_is_about_this_run_alone(run: RunDir) -> None:
    bad = another(run, "damaged")
    about = json.loads(bad.run_file.path.read_bytes())
    bad.run_file.path.write_text(json.dumps({**about, "started": "9999-12-31T23:59:00-23:59"}))
    assert "pages written: 1, runs with an error: 1" in written()
    assert '<p class="line worse">the run is damaged: ' in index()


def test_a_run_of_which_no_boot_was_ok_is_named(run: RunDir) -> None:
    killed = killable.make_run(run.path.parent, "instructions")
    killable.measure(killed.path)
    text = killed.records_file.path.read_text()
    lines = [line for line in text.splitlines(keepends=True) if '"boot_' in line]
    killed.records_file.path.write_text(
        "".join(lines).replace('"outcome":"ok"', '"outcome":"panic"')
    )
    with pytest.raises(GuestError):
        pipeline.analyse_and_save(load(killed))
    assert "pages written: 1, runs with an error: 1" in written()
    assert f"no boot of {killed.name} was ok: 6 panic" in index()


def test_nothing_in_a_run_is_markup(run: RunDir) -> None:
    for file in (*run.path.glob("*.json"), run.records_file.path):
        text = file.read_text().replace("freezer-skip-exited", json.dumps(EVIL)[1:-1])
        file.write_text(text.replace("6.12.117", json.dumps(EVIL)[1:-1]))
    another(run, "again")
    assert "runs with an error: 0" in written()
    for page in Path("site").glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "<img" not in text and "\x1b" not in text, page
    assert "&lt;img src=x onerror=alert(1)&gt;&#34;&#39;[/bold]\\u001b" in index()


@pytest.mark.parametrize(
    "name",
    [
        "a b",
        '"><script>alert(1)<',
        "javascript:alert(1)",
        "-x",
        ".hidden",
        "ü",
        "x" * 201,
        "x\udcff",
    ],
)
def test_a_name_that_is_not_plain_gets_no_page(name: str, run: RunDir) -> None:
    another(run, name)
    assert "pages written: 1, runs with an error: 1" in written()
    assert "the name of this run cannot be the name of a page" in index()
    assert visible(index()) == index() and "<script>alert" not in index()
    links = re.findall(r'href="([^"]*)"', index())
    own = {link for link in links if not link.startswith("#")}
    pages = {f"{page}.html" for page in (*ONCE, f"run-{run.name}")}
    assert own == {"data:,", f"compare.html?a={run.name}", *pages}
    data = {f"{name}.{kind}" for name in ("results", f"result-{run.name}") for kind in KINDS}
    assert {file.name for file in Path("site").iterdir()} == {".kteardown-site", *pages, *data}


def test_a_folder_of_something_else_is_refused_and_kept(run: RunDir, tmp_path: Path) -> None:
    Path("site").mkdir()
    Path("site/index.html").write_text("mine")
    error = refused("--to", "site")
    assert error.message == "--to site: the folder has files, and `kteardown site` did not make it"
    assert error.hint == "name a new or an empty folder, or one that `kteardown site` made."
    assert [file.name for file in Path("site").iterdir()] == ["index.html"]
    assert "mine" in index()
    assert refused("--to", "site/index.html").message.endswith("not a folder")
    assert "there is no folder nowhere" in refused("--to", "nowhere/site").message
    for inside in (run.path / "site", run.path / "console"):
        assert "is inside of the run directory" in refused("--to", str(inside)).message
    assert "did not make it" in refused("--to", str(run.path.parent)).message
    Path("empty").mkdir()
    assert CliRunner().invoke(app, ["site", "--to", "empty"]).exit_code == 0


def test_a_symbolic_link_is_replaced_and_not_followed(run: RunDir) -> None:
    written()
    other = Path("other.txt")
    other.write_text("mine")
    os.utime(other, (4e9, 4e9))
    pages = [f"{name}.html" for name in (*ONCE, f"run-{run.name}")]
    names = [*pages, ".kteardown-site", f"result-{run.name}.js", "results.json"]
    for name in names:
        (Path("site") / name).unlink()
        (Path("site") / name).symlink_to(other.absolute())
    assert "pages written: 1," in written()
    assert other.read_text() == "mine" and other.stat().st_mtime == 4e9
    assert not any((Path("site") / name).is_symlink() for name in names)


def test_the_history_has_what_the_verb_prints_and_pictures(run: RunDir) -> None:
    another(run, "later")
    written()
    page = Path("site/history.html").read_text(encoding="utf-8")
    printed = CliRunner().invoke(app, ["history", "--json"]).stdout
    shown = [line for line in json.loads(printed)["lines"] if line["headline"]]
    assert len(shown) > 3
    assert page.count('<div class="plot"') == len(
        {(line["metric"], line["kernel"]) for line in shown}
    )
    assert page.count("<title>6.12.117, ") == sum(len(line["figures"]) for line in shown)
    assert "(freeze_user_ns) of unpatched kernels in instructions, lower is better, 1 CPU" in page


def test_a_run_whose_figures_are_no_measurement_is_left_out_of_the_history(run: RunDir) -> None:
    other = another(run, "later")
    text = other.records_file.path.read_text()
    other.records_file.path.write_text(re.sub('"value":[0-9.e+]+', '"value":1.7e308', text))
    written()
    assert "later cannot be read and is not shown" in Path("site/history.html").read_text()
    assert f"run-{run.name}.html" in index()


def test_without_runs_the_index_says_how_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    assert "runs: 0, pages written: 0" in written()
    assert "There are no runs yet" in index()
    assert "no run has figures yet" in Path("site/history.html").read_text()
