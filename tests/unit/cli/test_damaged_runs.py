"""A damaged run is named, and disables nothing for other runs."""

from __future__ import annotations

import errno
import functools
import json
import operator
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kteardown.errors import LabError
from kteardown.inputs.published import load_posting
from kteardown.model.record import parse
from kteardown.rundir.directory import RunDir, removed_unless_whole
from kteardown.rundir.writer import locked
from unit.cli.test_main import kteardown
from unit.run import killable

SAMPLE = (
    '{"boot":0,"attempt":0,"type":"sample","trial":0,"repetition":1,"metric":"x_ns","value":%s}'
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished run."""
    return killable.finished_run(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def home(good: Path, tmp_path: Path) -> Path:
    """Return a folder with two finished runs."""
    for name in ("good", "damaged"):
        shutil.copytree(good, tmp_path / "runs" / name)
    return tmp_path


def sub(pattern: str, to: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        records = run / "records.ndjson"
        records.write_text(re.sub(pattern, to, records.read_text()))

    return change


def write(file: str, text: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        (run / file).write_text(text)

    return change


@pytest.mark.parametrize(
    "damage",
    [
        sub('"started_at":"[^"]*"', '"started_at":"yesterday"'),
        sub('"started_at":"[^"]*"', '"started_at":"0001-01-01T00:00:00+23:59"'),
        sub('"value":[0-9.]+', '"value":1e999'),
        sub('"value":[0-9.]+', '"value":NaN'),
        sub('"value":[0-9.]+', '"value":"x"'),
        sub('"value":[0-9.]+', f'"value":{"9" * 400}'),
        sub('"params":{"zombies":0', '"params":{"zombies":1,"zombies":0'),
        write("records.ndjson", "\0\n"),
        write("experiment.json", "[" * 200_000),
        write("environment.json", "[" * 200_000),
        write("experiment.json", ""),
    ],
)
def test_a_damaged_run_is_left_out_and_named(home: Path, damage: Callable[[Path], None]) -> None:
    damage(home / "runs" / "damaged")
    query = kteardown(
        "query", "--json", "SELECT DISTINCT run FROM samples JOIN boots USING (run)", home=home
    )
    assert (query.returncode, json.loads(query.stdout)) == (0, [{"run": "good"}])
    assert query.stderr.count("damaged:") == 1, query.stderr
    export = kteardown("export", "--to", str(home / "to"), home=home)
    assert export.returncode == 0 and "damaged:" in export.stderr
    history = kteardown("history", "--json", home=home)
    found = json.loads(history.stdout)
    assert found["unread"] == ["damaged"] and found["lines"]
    listed = kteardown("list", "runs", "--json", home=home)
    assert [row["name"] for row in json.loads(listed.stdout)["runs"]] == ["damaged", "good"]


def test_a_folder_whose_name_is_a_pattern_is_queried(home: Path) -> None:
    (home / "runs" / "good").rename(home / "runs" / "r[1]")
    (home / "runs" / "damaged").rename(home / "runs" / "r1")
    done = kteardown(
        "query", "--json", "SELECT run, count(*) AS n FROM samples GROUP BY run", home=home
    )
    assert {row["run"] for row in json.loads(done.stdout)} == {"r[1]", "r1"}


@pytest.mark.parametrize(
    "damage", [lambda values: values[:-1], lambda values: [*values[:-1], 1e999]]
)
def test_with_posted_values_that_do_not_fit_a_run_is_refused(
    home: Path, damage: Callable[[list[float]], list[float]]
) -> None:
    posting = load_posting("freezer")
    assert posting
    fields = posting.model_dump(mode="json")
    *way, last = fields["figures"][0]["base"].split(".")
    place = functools.reduce(operator.getitem, way, fields["result"])
    place[last] = damage(place[last])
    (home / "runs" / "damaged" / "published.json").write_text(json.dumps(fields))
    done = kteardown("report", "damaged", "--format", "html", home=home)
    assert done.returncode == 2 and "published.json: cannot be read" in done.stderr, done.stderr


@pytest.mark.parametrize("verb", ["report", "analyse"])
@pytest.mark.parametrize("text", ["{}", "", "[" * 200_000, '{"zombies": 1}'])
def test_without_its_workloads_a_run_is_refused(home: Path, verb: str, text: str) -> None:
    run = home / "runs" / "damaged"
    (run / "result.json").unlink()
    (run / "workloads.json").write_text(text)
    done = kteardown(verb, "damaged", home=home)
    assert done.returncode == 2 and "workloads.json: cannot be read" in done.stderr, done.stderr


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "-Infinity", "1e999", "1e308", "1e-320", "9" * 400, '"7"', "true"]
)
def test_a_value_that_is_no_measurement_is_no_record(value: str) -> None:
    with pytest.raises(ValueError, match="value"):
        parse(SAMPLE % value)


@pytest.mark.parametrize("value", ["0", "-5", "6e-20", "1.5", str(2**63 - 1)])
def test_any_other_value_is_one(value: str) -> None:
    assert getattr(parse(SAMPLE % value), "value") == json.loads(value)  # noqa: B009


def test_a_run_in_progress_is_not_analysed(home: Path) -> None:
    with locked(RunDir(home / "runs" / "damaged")):
        done = kteardown("analyse", "damaged", home=home)
    assert done.returncode == 2 and "another kteardown is writing to this run" in done.stderr
    assert not (home / "runs" / "damaged" / "analysis-1").exists()


def test_of_a_run_that_cannot_be_written_whole_nothing_is_left(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path, "x")
    with pytest.raises(LabError, match="full") as caught, removed_unless_whole(run.path):
        raise LabError(
            "the disk is full",
            hint="free some space and continue with `kteardown run --resume RUN`.",
        )
    assert (
        not run.path.exists() and caught.value.hint == "free some space, then start the run anew."
    )
    other = RunDir.create(tmp_path, "y")
    with pytest.raises(OSError, match="x"), removed_unless_whole(other.path):
        raise OSError(errno.EIO, "x")
    assert not other.path.exists()
    kept = RunDir.create(tmp_path, "z")
    with removed_unless_whole(kept.path):
        pass
    assert kept.path.is_dir()
