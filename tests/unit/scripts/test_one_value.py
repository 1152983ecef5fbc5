"""A point for which two results of the same kernel, agent and guest publish two values is found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import claims
import one_value

ROOT = Path(__file__).parents[3]
METRIC = "thaw_ns"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree with one result under two names."""
    for name in ("one", "other"):
        shutil.copytree(ROOT / "results/freezer", tmp_path / "results" / name)
    return tmp_path


def edit(root: Path, file: str, key: str, value: Any, metric: str = "") -> None:
    """Set a field of ``other``: of the file, or the median on base in every comparison of a
    metric."""
    path = root / "results/other" / file
    fields = json.loads(path.read_text())
    fields[key] = value if not metric else fields[key]
    for compared in fields.get("comparisons", ()):
        if metric and compared["metric"] == metric:
            compared["base"]["median"] *= value
    path.write_text(json.dumps(fields))


def found(root: Path) -> list[str]:
    return one_value.conflicts(claims.claims(root))


def test_a_result_agrees_with_itself(root: Path) -> None:
    assert found(root) == []


def test_a_value_that_is_far_off_is_named_with_its_point_and_both_results(root: Path) -> None:
    edit(root, "result.json", "comparisons", 2, METRIC)
    lines = found(root)
    assert lines and all(f"zombies {METRIC} at " in line for line in lines)
    assert all("in results/one and" in line and "results/other" in line for line in lines)
    assert any("zombies=15000" in line and "until=freezer" in line for line in lines)


def test_a_small_difference_is_none(root: Path) -> None:
    edit(root, "result.json", "comparisons", 1.01, METRIC)
    assert found(root) == []


def test_results_of_two_agents_are_not_compared(root: Path) -> None:
    edit(root, "result.json", "comparisons", 2, METRIC)
    file = root / "results/other/measured.json"
    fields = json.loads(file.read_text())
    fields["ids"]["agent"] = "of another day"
    file.write_text(json.dumps(fields))
    assert found(root) == []


@pytest.mark.parametrize(
    ("other", "differ"),
    [((102.0, 0.0), False), ((103.0, 0.0), True), ((103.0, 1.0), False), ((120.0, 2.0), True)],
)
def test_a_difference_is_larger_than_both_scatter(other: tuple[float, float], differ: bool) -> None:
    one = one_value.Value("one", 100.0, 0.5)
    assert one_value.differ(one, one_value.Value("other", *other)) == differ
