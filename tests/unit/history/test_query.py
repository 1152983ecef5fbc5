"""Records and results on the command line: query, export, diff."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kteardown.model.result import Result
from kteardown.report import result_file
from unit.cli.test_main import kteardown
from unit.run import killable


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder whose subfolder ``runs`` has one finished run."""
    folder = tmp_path_factory.mktemp("home")
    killable.measure(killable.make_run(folder / "runs", "instructions").path)
    return folder


@pytest.mark.parametrize("verb", ["query", "export", "diff"])
def test_every_verb_has_help_with_an_example(verb: str, tmp_path: Path) -> None:
    done = kteardown(verb, "--help", home=tmp_path)
    assert done.returncode == 0
    assert "Example" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["query", "SELEC 1"], 'syntax error at or near "SELEC"'),
        (["query", "SELECT 1", "--json", "--csv"], "--json and --csv cannot be used together"),
        (["export", "never", "--to", "."], "no run 'never'"),
        (["export", "--to", "/dev/null"], "--to /dev/null: not a folder"),
        (["diff", "never", "ever"], "no run 'never'"),
        (["diff", "/dev/null", "ever"], "/dev/null is not a run directory"),
    ],
)
def test_wrong_input_exits_with_2(arguments: list[str], expected: str, tmp_path: Path) -> None:
    done = kteardown(*arguments, home=tmp_path)
    assert done.returncode == 2, done.stderr
    assert expected in done.stderr


def test_a_query_prints_a_table_csv_or_json(home: Path) -> None:
    of = "FROM samples WHERE NOT warmup GROUP BY ALL ORDER BY ALL LIMIT 2"
    sql = f"SELECT kernel, zombies, count(*) AS n {of}"
    table = kteardown("query", sql, home=home).stdout.splitlines()
    assert [line.split() for line in table] == [
        ["kernel", "zombies", "n"],
        ["base", "0", "18"],
        ["base", "300", "18"],
    ]
    assert (
        kteardown("query", "--csv", sql, home=home).stdout
        == "kernel,zombies,n\nbase,0,18\nbase,300,18\n"
    )
    rows = json.loads(kteardown("query", "--json", sql, home=home).stdout)
    assert rows[1] == {"kernel": "base", "zombies": 300, "n": 18}


def test_no_progress_is_printed_into_the_answer(home: Path) -> None:
    sql = "SELECT current_setting('enable_progress_bar') AS bar"
    assert json.loads(kteardown("query", "--json", sql, home=home).stdout) == [{"bar": False}]


def test_a_wide_column_is_not_cut_in_a_pipe(home: Path) -> None:
    done = kteardown("query", "SELECT repeat('x', 500) AS wide", home=home)
    assert "x" * 500 in done.stdout


def test_without_runs_a_query_has_no_rows(tmp_path: Path) -> None:
    done = kteardown("query", "--json", "SELECT zombies FROM samples", home=tmp_path)
    assert (done.returncode, json.loads(done.stdout)) == (0, [])


def test_the_columns_of_a_query_are_those_of_its_runs(home: Path, tmp_path: Path) -> None:
    broken = tmp_path / "workloads" / "mine.toml"
    broken.parent.mkdir()
    broken.write_text("name =")
    (tmp_path / "runs").mkdir()
    for run in (home / "runs").iterdir():
        shutil.copytree(run, tmp_path / "runs" / run.name)
    (run_dir,) = (tmp_path / "runs").iterdir()
    (run_dir / "records.ndjson").write_bytes(b"")
    done = kteardown("query", "--json", "DESCRIBE samples", home=tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    columns = {row["column_name"]: row["column_type"] for row in json.loads(done.stdout)}
    assert (columns["zombies"], columns["make"]) == ("BIGINT", "VARCHAR")
    shown = set(list(columns)[list(columns).index("params") + 1 :])
    assert shown == {"zombies", "make", "until"}
    (run_dir / "workloads.json").write_text("{")
    assert kteardown("query", "SELECT 1", home=tmp_path, cwd=tmp_path).returncode == 0


def test_an_export_lists_its_files(home: Path, tmp_path: Path) -> None:
    done = kteardown(
        "export", "last", "--format", "parquet", "--to", str(tmp_path / "data"), "--json", home=home
    )
    written = {entry["table"]: entry for entry in json.loads(done.stdout)}
    assert written["samples"]["rows"] == 6 * 3 * 3 * 3
    assert all(Path(entry["file"]).is_file() for entry in written.values())


def test_a_run_is_compared_with_a_file(home: Path, tmp_path: Path, freezer_result: Result) -> None:
    file = tmp_path / "theirs.json"
    file.write_text(result_file.dumps(freezer_result))
    done = kteardown("diff", "last", str(file), home=home)
    assert done.returncode == 0, done.stderr
    assert "experiment: killed / freezer" in done.stdout
    assert "freezing user space (freeze_user_ns), freezer-skip-exited against base" in done.stdout
    found = json.loads(kteardown("diff", "last", "last", "--json", home=home).stdout)
    assert found["rows"] and all(row["same_verdict"] for row in found["rows"])
    assert found["environment"] == []


def test_the_console_of_a_boot_that_is_not_planned_is_an_error(home: Path) -> None:
    done = kteardown("show", "last", "--console", "99", home=home)
    assert done.returncode == 2
    assert "has no boot 99" in done.stderr
