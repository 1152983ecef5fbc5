"""Runs that an older kteardown has written open, and report the same numbers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kteardown.analysis.conclude import conclude
from kteardown.judge.answer import judge
from kteardown.model.result import Result
from kteardown.rundir.directory import RunDir
from kteardown.rundir.snapshot import load

RUNS = Path(__file__).parents[2] / "data" / "runs"
RECORDED = sorted(path.name for path in RUNS.iterdir() if path.is_dir())
NUMBERS = ("comparisons", "metric_verdicts", "laws")
CHANGED = {("20261122-112017-freezer", "p_holm")}
"""The correction for the number of tests is another one since this run."""
OUTCOMES = {
    "20261122-112017-freezer": "pass",
    "20261129-021350-throttle-quota": "pass",
    "20261129-021433-masskill-designs": "fail",
    "20261129-040149-masskill-designs": "unsure",
    "20261129-040928-suspend": "pass",
}
"""What the exit code of each said then."""


def rounded(value: Any) -> Any:
    """Return a value of JSON with its numbers as they are printed: not the last digits of a
    library."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        # What the words of a result add is not a number.
        return {key: rounded(one) for key, one in value.items() if key != "value_unit"}
    return [rounded(one) for one in value] if isinstance(value, list) else value


@pytest.fixture(params=RECORDED)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> RunDir:
    """A copy of a recorded run."""
    return RunDir(Path(shutil.copytree(RUNS / request.param, tmp_path / request.param)))


def test_there_are_five() -> None:
    assert sorted(OUTCOMES) == RECORDED


def test_its_numbers_are_those_of_then(run: RunDir) -> None:
    then = json.loads(run.result_file.path.read_bytes())
    result, _ = conclude(load(run))
    now = json.loads(result.model_dump_json(by_alias=True))
    for name in [name for name in NUMBERS if name in then]:
        recorded = then[name]
        assert len(now[name]) == len(recorded), name
        for mine, old in zip(rounded(now[name]), rounded(recorded), strict=True):
            same = {key for key in old if (run.folder.path.name, key) not in CHANGED}
            assert {key: mine[key] for key in same} == {key: old[key] for key in same}


def test_its_saved_result_has_the_answer_of_then(run: RunDir) -> None:
    saved = Result.model_validate_json(run.result_file.path.read_bytes())
    assert judge(saved, load(run).workloads).outcome == OUTCOMES[run.folder.path.name]
