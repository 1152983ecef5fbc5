"""``kteardown show``: what a workload, a series, an experiment and a kernel are, and the boots of a
run."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kteardown import pipeline
from kteardown.cli import app
from kteardown.cli.things import THINGS, known_names
from kteardown.errors import InputError
from kteardown.paths import data_dir
from kteardown.rundir.snapshot import load
from kteardown.rundir.writer import open_writer
from unit.report.contexts import write_run
from unit.run import killable


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("KTEARDOWN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(*words: str) -> str:
    done = CliRunner().invoke(app, ["show", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def fields(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shown(*words, "--json"))
    return found


def refused(*words: str) -> InputError:
    error = CliRunner().invoke(app, ["show", *words]).exception
    assert isinstance(error, InputError)
    return error


def test_a_workload_has_its_metrics_in_words_and_what_it_executes() -> None:
    found = fields("workload", "zombies")
    metric = next(one for one in found["metrics"] if one["key"] == "freeze_user_ns")
    assert metric["name"] == "freezing user space"
    assert (metric["in"], metric["better"], metric["use"]) == (
        "instructions or time",
        "lower",
        "headline",
    )
    assert "the time between the kernel's two messages" in metric["help"]
    assert {row["key"] for row in found["parameters"]} == {"zombies", "make", "until"}
    assert "kernel/power/process.c" in {row["file"] for row in found["executes"]}
    assert {"page": "findings/freezer.md"} in found["more"]
    assert "freezing user space" in shown("workload", "zombies")


def test_a_series_has_what_it_changes_and_what_executes_that() -> None:
    found = fields("series", "freezer-skip-exited")
    assert len(found["patches"]) == 2
    assert found["changes"] == [
        {"file": "kernel/power/process.c", "functions": ["try_to_freeze_tasks", "thaw_processes"]}
    ]
    assert found["executed_by"][0]["name"] == "zombies"
    assert "freezer" in {row["name"] for row in found["experiments"]}


def test_an_experiment_has_its_last_result(home: Path) -> None:
    assert fields("experiment", "freezer")["last_run"] == []
    run = write_run(home / "runs")
    pipeline.analyse_and_save(load(run))
    (last,) = fields("experiment", "freezer")["last_run"]
    assert last["name"] == run.name
    assert last["result"].startswith("With freezer-skip-exited, freezing user space takes ")


def test_a_source_has_its_map() -> None:
    found = fields("kernel", "debian:6.12")
    assert found["coverage_source"].startswith("debian:6.12.")
    assert "zombies" in {row["workload"] for row in found["workloads"]}


def _keys(value: Any) -> Iterator[str]:
    for one in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from _keys(one)
    yield from value if isinstance(value, dict) else ()


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("workload", "zombies"),
        ("series", "freezer-skip-exited"),
        ("experiment", "freezer"),
        ("kernel", "debian:6.12"),
    ],
)
def test_the_json_has_keys_and_numbers_and_the_text_has_words(kind: str, name: str) -> None:
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", key) for key in _keys(fields(kind, name)))
    (first, *_) = fields("workload", "zombies")["executes"]
    assert 0 < first["share_of_instructions"] < 1
    assert fields("experiment", "freezer")["design"]["clock"] == "instructions"
    text = shown("workload", "zombies")
    assert "share of the instructions" in text
    assert f"{first['share_of_instructions']:.1%}" in text


@pytest.mark.parametrize("kind", list(THINGS))
def test_everything_that_is_listed_can_be_shown(kind: str) -> None:
    for name in known_names(kind):
        assert shown(kind, name).startswith(name)


def test_a_wrong_name_gets_the_right_one() -> None:
    assert "did you mean 'zombies'" in refused("workload", "zombie").message
    assert "did you mean 'freezer-skip-exited'" in refused("series", "freezer-skip-exite").message
    assert "did you mean 'freezer'" in refused("experiment", "freezr").message
    assert "no kernel 'debian612'" in refused("kernel", "debian612").message
    assert refused("workload").message == "no workload is named"
    assert "is not one of workload, series" in refused("worklod", "zombies").message


def test_the_boots_of_a_run_are_json_too(home: Path) -> None:
    run = write_run(home / "runs")
    rows = json.loads(shown("last", "--json"))
    assert {row["run"] for row in rows} == {run.name}
    assert {row["outcome"] for row in rows} == {"ok"}


def test_a_run_in_progress_says_how_far_it_is(home: Path) -> None:
    run = killable.make_run(home / "runs", "instructions")
    killable.measure(run.path)
    assert f"{run.path}: 6 of 6 boots done\n" in shown("last").replace("done ", "done")
    whole = run.records_file.path.read_text().splitlines(keepends=True)
    ends = [number for number, line in enumerate(whole) if '"boot_end"' in line]
    whole[ends[1]] = whole[ends[1]].replace('"outcome":"ok"', '"outcome":"panic"')
    run.records_file.path.write_text("".join(whole[: ends[1] + 1]))
    assert "2 of 6 boots done, 1 failed, 4 left" in shown("last")
    assert f"finish the run with: kteardown run --resume {run.name}" in shown("last")
    with open_writer(run):
        assert "the run is being measured now" in shown("last")
        assert "--resume" not in shown("last")


def test_a_console_that_is_missing_is_named(home: Path) -> None:
    run = write_run(home / "runs")
    file = run.console_file(0, 0).path
    file.unlink(missing_ok=True)
    error = refused("last", "--console", "0")
    assert error.message == f"{file}: cannot be read: No such file or directory"
    assert (
        error.hint == "restore the file from a copy of the run; nothing else of the run needs it."
    )
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"Linux version 6.12\r\n")
    assert shown("last", "--console", "0").strip() == "Linux version 6.12"


def test_a_run_in_a_folder_named_like_an_experiment_is_shown(home: Path) -> None:
    run = write_run(home / "runs")
    shutil.copytree(run.path, home / "freezer")
    done = CliRunner().invoke(app, ["show", "freezer", "--json"])
    assert {row["run"] for row in json.loads(done.stdout)} == {"freezer"}
    assert done.stderr == (
        "'freezer' is a run; `kteardown show experiment freezer` shows what else has this name\n"
    )
    (home / "zombies").mkdir()
    assert fields("zombies") == fields("workload", "zombies")


def test_a_name_that_only_one_thing_has_needs_no_kind() -> None:
    assert fields("zombies") == fields("workload", "zombies")
    assert fields("freezer") == fields("experiment", "freezer")
    assert shown("freezer-skip-exited") == shown("series", "freezer-skip-exited")


def test_a_name_that_several_things_have_needs_a_kind(home: Path) -> None:
    (home / "workloads").mkdir()
    shutil.copy(data_dir("workloads") / "zombies.toml", home / "workloads/freezer.toml")
    hint = refused("freezer").hint
    assert "kteardown show workload freezer" in hint
    assert "kteardown show experiment freezer" in hint
