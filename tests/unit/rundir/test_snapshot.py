"""A run directory is complete: reports need nothing else, and write nothing into it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kteardown import pipeline
from kteardown.cli import app
from kteardown.errors import InputError, LabError
from kteardown.inputs import load as inputs_load
from kteardown.inputs.published import load_posting
from kteardown.kernels.request import Built, KernelImage, KernelRequest
from kteardown.report import saved
from kteardown.run import create
from kteardown.rundir.directory import RunDir
from kteardown.rundir.find import all_runs
from kteardown.rundir.snapshot import SCHEMA, load
from kteardown_history.sql.database import database
from outputs import result_in
from unit.report.contexts import write_run

RECORDED = Path(__file__).parents[2] / "data" / "runs" / "20261122-112017-freezer"
FORMATS = ("text", "html", "cover", "reply", "markdown", "json", "comment", "junit")
READING = (
    *(
        ("report", "last", "--format", form, *(("-o", "-") if form == "html" else ()))
        for form in FORMATS
    ),
    ("show", "last"),
    ("show", "freezer"),
    ("show", "last", "--console", "0"),
    ("report", "freezer", "--format", "json"),
    ("list", "runs"),
    ("diff", "last", "last"),
    ("query", "SELECT count(*) FROM samples"),
    ("query", "DESCRIBE samples"),
    ("history", "freezer"),
    ("export", "last", "--to", "exported"),
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def output(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def state(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(p): (p.stat().st_mtime_ns, p.stat().st_size) for p in sorted(folder.rglob("*"))}


def state_of_the_run() -> str:
    (row,) = json.loads(output("list", "runs", "--json"))["runs"]
    return str(row["state"])


def copy_of(run: Path, root: Path) -> Path:
    target = root / run.name
    shutil.copytree(run, target)
    return target


def with_names(path: Path, home: Path) -> Path:
    """Return the run at ``path``, with a console and a second name: that of an experiment."""
    console = path / "console" / "0000-0.log"
    console.parent.mkdir(exist_ok=True)
    if not console.is_file():
        console.write_text("Linux version 6.12\n")
    (home / "freezer").unlink(missing_ok=True)
    (home / "freezer").symlink_to(path)
    return path


def without_shipped_files(monkeypatch: pytest.MonkeyPatch, nowhere: Path) -> None:
    """Let every module that has been imported look for shipped files in a folder that does not
    exist."""
    for name, module in list(sys.modules.items()):
        if name.startswith("kteardown") and hasattr(module, "data_dir"):
            monkeypatch.setattr(module, "data_dir", lambda kind: nowhere / kind)


@pytest.mark.parametrize("kind", ["analysed", "not analysed"])
def test_reading_is_the_same_if_only_the_run_directory_exists(
    kind: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(home / "runs").path
    with_names(run, home)
    if kind == "analysed":
        output("analyse", "last")
    before = [output(*arguments) for arguments in READING]
    elsewhere = tmp_path / "elsewhere"
    with_names(copy_of(run, elsewhere), home)
    shutil.rmtree(home / "runs")
    monkeypatch.setenv("KTEARDOWN_RUNS", str(elsewhere))
    without_shipped_files(monkeypatch, tmp_path / "nowhere")
    for arguments, expected in zip(READING, before, strict=True):
        found = output(*arguments).replace(str(elsewhere), str(home / "runs"))
        assert (arguments, found) == (arguments, expected)


@pytest.mark.parametrize("arguments", READING, ids=lambda words: " ".join(words[:4]))
@pytest.mark.parametrize("kind", ["analysed", "not analysed"])
def test_reading_writes_nothing_into_the_run_directory(
    arguments: tuple[str, ...], kind: str, home: Path
) -> None:
    path = write_run(home / "runs").path
    if kind == "analysed":
        output("analyse", "last")
    with_names(path, home)
    before = state(path)
    assert output(*arguments)
    assert state(path) == before


def test_a_run_directory_that_cannot_be_written_to_can_be_read(home: Path) -> None:
    run = write_run(home / "runs")
    # A folder is in the way of the lock; root may write to a read-only folder.
    (run.path / "lock").mkdir()
    with_names(run.path, home)
    with pytest.raises(LabError, match="cannot be written") as refused:
        output("analyse", "last")
    assert refused.value.hint
    for arguments in READING:
        assert output(*arguments)


def test_an_analysis_whose_folder_cannot_be_made_is_an_error_with_a_hint(home: Path) -> None:
    run = write_run(home / "runs")
    result = pipeline.analyse_and_save(load(run))
    (run.path / "analysis-1").write_text("")
    with pytest.raises(LabError, match="analysis-1: cannot be written"):
        saved.write(run, result, load(run), run.folder / "analysis-1")


def test_a_later_change_of_a_workload_changes_no_report(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(home / "runs")
    output("analyse", "last")
    before = output("report", "last", "--format", "json")
    original = inputs_load.load_workload

    def upside_down(name: str, folder: str = "") -> object:
        workload = original(name, folder)
        metrics = {
            n: m.model_copy(update={"better": "higher"}) for n, m in workload.metrics.items()
        }
        return workload.model_copy(update={"metrics": metrics})

    monkeypatch.setattr(inputs_load, "load_workload", upside_down)
    assert output("report", "last", "--format", "json") == before
    assert output("analyse", "last").endswith(
        "nothing changed: both results are identical byte for byte\n"
    )


def test_a_new_analysis_of_a_run_keeps_the_first_result(home: Path) -> None:
    path = copy_of(RECORDED, home / "runs")
    old = (path / "result.json").read_bytes()
    output("analyse", "last")
    assert (path / "result.json").read_bytes() == old
    new = json.loads((path / "analysis-1" / "result.json").read_text())
    # The correction for the number of tests is of this version; the figures are the same.
    figures = ("workload", "variant", "metric", "point", "base", "changed", "ratio", "ci", "p")
    of_old, of_new = (
        [{name: c[name] for name in figures} for c in result["comparisons"]]
        for result in (json.loads(old), new)
    )
    assert of_new == of_old
    output("analyse", "last")
    assert (path / "analysis-2" / "report.md").is_file()


@pytest.mark.parametrize("schema", [SCHEMA - 1, SCHEMA + 1])
def test_a_run_of_another_schema_is_refused_with_one_line(schema: int, home: Path) -> None:
    run = write_run(home / "runs")
    run.save(run.run_file, json.dumps({"schema": schema}))
    with pytest.raises(InputError, match="written by another version of kteardown") as refused:
        load(run)
    assert "\n" not in refused.value.message


@pytest.mark.parametrize("name", ["plan.json", "kernels.json", "workloads.json", "experiment.json"])
@pytest.mark.parametrize("damage", ["missing", "{}x"])
def test_a_damaged_run_directory_names_the_file(name: str, damage: str, home: Path) -> None:
    run = write_run(home / "runs")
    file = run.path / name
    file.unlink() if damage == "missing" else file.write_text(damage)
    with pytest.raises(InputError, match=name) as refused:
        load(RunDir(run.path))
    assert refused.value.hint


@pytest.mark.parametrize("name", ["kernels.json", "workloads.json", "environment.json", "run.json"])
@pytest.mark.parametrize("damage", ["[]", "1", '{"base": []}'])
def test_a_file_that_has_other_json_names_itself(name: str, damage: str, home: Path) -> None:
    run = write_run(home / "runs")
    (run.path / name).write_text(damage)
    with pytest.raises(InputError, match=name) as refused:
        load(RunDir(run.path))
    assert "restore the run directory from a copy" in refused.value.hint


def with_unknown_key(file: Path, *where: str | int) -> None:
    whole = at = json.loads(file.read_bytes())
    for part in where:
        at = at[part]
    at["later"] = 1
    file.write_text(json.dumps(whole))


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("plan.json", ("boots", 0)),
        ("experiment.json", ()),
        ("workloads.json", ("zombies", "metrics", "freeze_user_ns")),
        ("profile/plan.json", ()),
    ],
)
def test_a_key_of_a_newer_version_is_named(
    name: str, where: tuple[str | int, ...], home: Path
) -> None:
    run = write_run(home / "runs")
    run.profile.path.mkdir(exist_ok=True)
    run.profile.plan_file.path.write_bytes(run.plan_file.path.read_bytes())
    with_unknown_key(run.path / name, *where)
    with pytest.raises(InputError) as refused:
        _ = load(run).profile_plan
    key = ".".join(map(str, (*where, "later")))
    assert refused.value.message == f"{run.path / name}: cannot be read: unknown key {key}"
    assert refused.value.hint == "a newer version of kteardown wrote this run; use that version."


def test_a_wrong_value_is_named_by_its_key(home: Path) -> None:
    run = write_run(home / "runs")
    fields = json.loads(run.plan_file.path.read_bytes())
    del fields["boots"][1]["kernel"]
    run.plan_file.path.write_text(json.dumps(fields))
    with pytest.raises(
        InputError, match=r"plan\.json: cannot be read: boots\.1\.kernel: Field required"
    ):
        load(run)


@pytest.mark.parametrize("value", ["1e400", "-1e400", "NaN", "Infinity", "1e300", "null", "[]"])
def test_published_figures_that_are_no_numbers_are_refused(value: str, home: Path) -> None:
    run = write_run(home / "runs")
    posting = load_posting("freezer")
    assert posting is not None
    fields = json.loads(posting.model_dump_json())
    place, _, key = posting.figures[0].base.rpartition(".")
    assert not place
    fields["result"][key][1] = "@"
    run.published_file.path.write_text(json.dumps(fields).replace('"@"', value))
    with pytest.raises(
        InputError, match=r"published\.json: cannot be read: .*figures\.0"
    ) as refused:
        load(run)
    assert "\n" not in refused.value.message


@pytest.mark.parametrize("damage", ["{", "[]"])
def test_damaged_requests_name_their_file(damage: str, home: Path) -> None:
    run = write_run(home / "runs")
    (run.path / "requests.json").write_text(damage)
    with pytest.raises(InputError, match=r"requests\.json: cannot be read"):
        create.missing_kernels(run)


def test_a_damaged_run_does_not_stop_the_list_of_runs(home: Path) -> None:
    first, second = (write_run(home / "runs") for _ in range(2))
    first.experiment_file.path.write_text("{}")
    rows = json.loads(output("list", "runs", "--json"))["runs"]
    assert [row["name"] for row in rows] == [first.name, second.name]
    assert rows[0]["state"].startswith("unreadable: ")


@pytest.mark.parametrize("damage", ["{}", "{", ""])
def test_a_damaged_result_is_named_in_the_list_of_runs(damage: str, home: Path) -> None:
    first, second = (write_run(home / "runs") for _ in range(2))
    for run in (first, second):
        output("analyse", run.name)
    first.result_file.path.write_text(damage)
    rows = json.loads(output("list", "runs", "--json"))["runs"]
    assert [row["name"] for row in rows] == [first.name, second.name]
    assert rows[0]["state"].startswith(f"unreadable: {first.result_file}: not a result.json: ")
    assert f"`kteardown analyse {first.name}` writes it again" in rows[0]["result"]
    assert rows[1]["state"] == "done"
    output("analyse", first.name)
    assert json.loads(output("list", "runs", "--json"))["runs"][0]["state"] == "done"


def test_a_listed_run_has_its_experiment_and_variants(home: Path) -> None:
    write_run(home / "runs")
    (row,) = json.loads(output("list", "runs", "--json"))["runs"]
    assert row["experiment"] == "freezer"
    assert row["variants"] == ["freezer-skip-exited", "freezer-skip-nofreeze"]
    assert row["result"] == "unfinished (of freezer-skip-exited, freezer-skip-nofreeze)"


@pytest.mark.parametrize("missing", ["run.json", "experiment.json"])
def test_a_half_written_folder_is_not_a_run(missing: str, home: Path) -> None:
    run = write_run(home / "runs")
    (run.path / missing).unlink()
    assert all_runs() == []
    with pytest.raises(InputError):
        RunDir.open(run.path)


@pytest.mark.parametrize("damage", ["{}", "{", ""])
def test_a_damaged_result_is_analysed_again(damage: str, home: Path) -> None:
    run = write_run(home / "runs")
    output("analyse", "last")
    before = run.result_file.path.read_bytes()
    run.result_file.path.write_text(damage)
    assert result_in(output("report", "last", "--format", "json")) == json.loads(before)
    assert (
        "kteardown replaces the saved result and does not compare it: not a result.json"
        in output("analyse", "last")
    )
    assert run.result_file.path.read_bytes() == before


def test_a_result_of_fewer_boots_is_not_reused(home: Path) -> None:
    run = write_run(home / "runs")
    lines = run.records_file.path.read_bytes().splitlines(keepends=True)
    ends = [number for number, line in enumerate(lines) if b'"boot_end"' in line]
    run.records_file.path.write_bytes(b"".join(lines[: ends[-4] + 1]))
    assert "replaced" not in output("analyse", "last")
    early = json.loads(run.result_file.path.read_bytes())
    assert state_of_the_run() == "done"
    run.records_file.path.write_bytes(b"".join(lines))
    assert state_of_the_run() == "unfinished"
    now = result_in(output("report", "last", "--format", "json"))
    assert now["boots"]["ok"] == early["boots"]["ok"] + 3
    printed = output("analyse", "last")
    assert (
        "kteardown replaces the saved result and does not compare it: boots have ended since it "
        "was written" in printed
    )
    assert json.loads(run.result_file.path.read_bytes()) == now
    assert not (run.path / "analysis-1").exists()
    assert "nothing changed" in output("analyse", "last")


def test_a_run_that_is_named_twice_is_counted_once(home: Path) -> None:
    run = write_run(home / "runs")
    counts = []
    for runs in ([run], [run, RunDir(run.path)]):
        with database(runs) as found:
            counts.append(list(found.query("SELECT count(*) FROM samples").rows))
    assert counts[0] == counts[1]


def test_kernels_are_in_the_order_of_the_report_whichever_was_built_first(home: Path) -> None:
    run = write_run(home / "runs")
    run.kernels_file.path.unlink()
    names = ("base", "first", "second")
    fields = {"patch_set": None}
    run.save(run.folder / "requests.json", json.dumps(dict.fromkeys(names, fields)))
    image = KernelImage(
        name="",
        image=home / "bzImage",
        source="s",
        series="",
        arch="x86_64",
        release="6",
        compiler="gcc",
        config_hash="c",
        image_hash="i",
    )
    create.save_built(run, Built({"base": image, "second": image}, {}))
    create.save_built(run, Built({"first": image}, {}))
    assert tuple(json.loads(run.kernels_file.path.read_bytes())) == names


def test_a_variant_of_another_state_of_the_source_is_refused(home: Path) -> None:
    run = write_run(home / "runs")
    snapshot = load(run)
    base = snapshot.kernels["base"]
    image = KernelImage(
        name="",
        image=home / "bzImage",
        source="git:/linux@2",
        series="x",
        arch="x86_64",
        release="6",
        compiler=base.compiler,
        config_hash="c",
        image_hash="i",
    )
    request = KernelRequest("x", snapshot.experiment.source)
    fields = {**asdict(request), "series": ""}
    run.save(run.folder / "requests.json", json.dumps({"base": fields}))
    with pytest.raises(InputError, match="cannot be compared"):
        create.check_same_source(snapshot, [request], Built({"x": image}, {}))
    same = replace(image, source=base.source)
    create.check_same_source(snapshot, [request], Built({"x": same}, {}))
