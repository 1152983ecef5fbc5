"""Runs by id, by path, and all of them: on one clock, and on both."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.rundir.directory import CLOCKS_FILE, RunDir
from kteardown.rundir.find import RunFolder, all_runs, find_run, find_runs
from unit.report.contexts import write_both, write_run


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    return write_both(tmp_path / "runs")


def began(run: RunDir, when: str | None) -> None:
    """Change when a run began, or remove it."""
    fields = json.loads(run.run_file.path.read_bytes()) | {"started": when}
    run.run_file.path.write_text(
        json.dumps({key: value for key, value in fields.items() if value is not None})
    )


def names(found: RunFolder) -> list[str]:
    return [run.name for run in found.runs]


def test_a_run_on_both_clocks_is_found_by_every_name(both: RunFolder) -> None:
    parts = [f"{both.path.name}/instructions", f"{both.path.name}/wall"]
    assert (both.name, both.both_clocks, names(both)) == (both.path.name, True, parts)
    for name in ("last", both.name, both.name[:8], str(both.path), f"runs/{both.name}"):
        found = find_runs(name)
        assert (found.name, found.both_clocks, names(found)) == (both.name, True, parts)


@pytest.mark.parametrize("clock", ["instructions", "wall"])
def test_one_clock_of_both_is_a_run(both: RunFolder, clock: str) -> None:
    wanted = both.path / clock
    for name in (f"last/{clock}", f"{both.name}/{clock}", f"{both.name[:8]}/{clock}", str(wanted)):
        assert find_run(name).path.resolve() == wanted
        assert find_runs(name).name == f"{both.name}/{clock}"
        assert not find_runs(name).both_clocks


def test_where_one_run_is_needed_both_clocks_are_refused(both: RunFolder) -> None:
    with pytest.raises(InputError, match="was measured on both clocks") as refused:
        find_run("last")
    assert f"{both.name}/instructions or {both.name}/wall" in refused.value.hint


def test_a_run_on_one_clock_has_no_part_for_a_clock(both: RunFolder, tmp_path: Path) -> None:
    one = write_run(tmp_path / "runs", at=tmp_path / "runs" / "20991231-000000-freezer")
    assert find_runs("last").runs[0].path == one.path
    with pytest.raises(InputError, match="was not measured on both clocks"):
        find_runs("last/wall")
    with pytest.raises(InputError, match="there is no such folder"):
        find_runs(f"{both.name}/wall/wall")


def test_every_run_is_listed_with_those_of_both_clocks(both: RunFolder, tmp_path: Path) -> None:
    one = write_run(tmp_path / "runs", at=tmp_path / "runs" / "19991231-000000-freezer")
    began(one, None)
    assert [run.path for run in all_runs()] == [one.path, *(run.path for run in both.runs)]


@pytest.mark.parametrize(
    "name", ["from-the-author", "20991231-000000-other-zone", "20000101-000000-clock-set-back"]
)
def test_the_last_run_is_the_one_that_began_last_whatever_its_name(
    name: str, both: RunFolder
) -> None:
    folder = both.path.parent
    other = write_run(folder, at=folder / name)
    began(other, "2001-01-01T00:00:00+00:00")
    assert find_runs("last").name == both.name
    began(other, "2099-01-01T00:00:00+09:00")
    assert find_runs("last").name == name


def test_a_run_without_its_time_goes_by_its_name_or_its_age(both: RunFolder) -> None:
    folder = both.path.parent
    for run in both.runs:
        began(run, "2020-06-01T00:00:00+00:00")
    for name, last in (
        ("20200101-000000-x", both.name),
        ("20210101-000000-x", "20210101-000000-x"),
        ("y", "y"),
    ):
        for damage in (None, "yesterday", "9" * 5000):
            run = write_run(folder, at=folder / name)
            began(run, damage)
            assert find_runs("last").name == last
            shutil.rmtree(run.path)


def test_a_folder_without_its_file_is_not_whole(both: RunFolder) -> None:
    (both.path / CLOCKS_FILE).unlink()
    assert all_runs() == []
    with pytest.raises(InputError, match="is not a run directory"):
        find_runs(str(both.path))
    # Each clock is a run directory all the same.
    assert RunDir.open(both.path / "wall").name == "wall"


def test_what_is_left_of_both_clocks_is_a_run(both: RunFolder) -> None:
    shutil.rmtree(both.path / "instructions")
    assert find_run("last").path == both.path / "wall"
    assert find_runs(both.name).name == f"{both.name}/wall"


def test_a_file_is_not_a_run(both: RunFolder) -> None:
    with pytest.raises(InputError, match="is not a run directory"):
        find_runs(f"runs/{both.name}/{CLOCKS_FILE}")
