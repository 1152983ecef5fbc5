"""The comparison of two results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kteardown.errors import InputError
from kteardown.model.result import Result
from kteardown.report.diff import Side, compare_results, read
from kteardown.report.formats import json as result_json


def side(result: Result, change: dict[str, Any] | None = None) -> Side:
    fields = json.loads(result_json.dumps(result))
    return read(json.dumps({**fields, **(change or {})}), "r.json")


def comparisons(result: Result) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(result_json.dumps(result))["comparisons"]
    return rows


def test_a_result_agrees_with_itself(freezer_result: Result) -> None:
    found = compare_results(side(freezer_result), side(freezer_result), ("a", "b"))
    assert (found.environment, found.kernels, found.only_a, found.only_b) == ((), (), (), ())
    assert len(found.rows) == len(freezer_result.comparisons)
    assert all(row.agree in (True, None) and row.same_verdict for row in found.rows)
    assert {row.base_ratio for row in found.rows} == {1.0}


def test_differences_of_environment_and_kernels_are_listed(freezer_result: Result) -> None:
    kernels = json.loads(result_json.dumps(freezer_result))["kernels"]
    kernels["base"]["compiler"] = "gcc 14"
    kernels["mine"] = kernels.pop("freezer-skip-nofreeze")
    other = side(freezer_result, {"kernels": kernels, "machine": {"cpu": "other", "qemu": "7.2.22"}})
    found = compare_results(side(freezer_result), other, ("a", "b"), ("guest of base: CPU model: A / B",))
    assert [sentence.partition(":")[0] for sentence in found.environment] == ["cpu", "guest of base"]
    assert [sentence.partition(": ")[0] for sentence in found.kernels] == [
        "base",
        "freezer-skip-nofreeze",
        "mine",
    ]
    assert found.kernels[0].endswith("/ gcc 14")


def test_disjoint_intervals_are_found(freezer_result: Result) -> None:
    rows = comparisons(freezer_result)
    first = rows[0]
    low, high = first["ci"]
    first |= {"ci": [high * 1.01, high * 1.02], "ratio": high * 1.015, "verdict": "worse"}
    first["base"]["median"] *= 2
    rows[1]["ci"] = None
    found = compare_results(side(freezer_result), side(freezer_result, {"comparisons": rows}), ("a", "b"))
    assert (found.rows[0].agree, found.rows[0].same_verdict, found.rows[0].base_ratio) == (False, False, 2.0)
    assert found.rows[1].agree is None
    assert found.rows[0].a.ci == (low, high)


def test_comparisons_that_only_one_side_has_are_listed(freezer_result: Result) -> None:
    rows = comparisons(freezer_result)
    found = compare_results(side(freezer_result), side(freezer_result, {"comparisons": rows[1:]}), ("a", "b"))
    assert len(found.only_a) == 1 and not found.only_b
    assert rows[0]["metric"] in found.only_a[0]


def test_base_values_of_different_clocks_have_no_ratio(freezer_result: Result, wall_result: Result) -> None:
    found = compare_results(side(freezer_result), side(wall_result), ("a", "b"))
    assert "clock: instructions / wall, which measure different things" in found.environment
    assert found.rows and all(row.base_ratio is None for row in found.rows)


def test_fields_of_a_newer_version_are_ignored(freezer_result: Result) -> None:
    assert side(freezer_result, {"new_field": 1}) == side(freezer_result)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"schema": 1}'])
def test_a_file_that_is_not_a_result_is_named(text: str) -> None:
    with pytest.raises(InputError, match=r"r\.json is not a result\.json"):
        read(text, "r.json")


def test_another_schema_is_refused(freezer_result: Result) -> None:
    with pytest.raises(InputError, match="schema 2"):
        side(freezer_result, {"schema": 2})
