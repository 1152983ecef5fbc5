"""The comparison of two results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kteardown.errors import InputError
from kteardown.inputs.load import load_workload
from kteardown.model.faults import Fault
from kteardown.model.result import Result
from kteardown.report import result_file
from kteardown.report.diff import compare_results
from kteardown.report.result_file import in_words, metrics_in_words, result_of

WORKLOADS = {"zombies": load_workload("zombies")}


def side(result: Result, change: dict[str, Any] | None = None) -> Result:
    fields = json.loads(result_file.dumps(in_words(result, WORKLOADS)))
    return result_of(json.dumps({**fields, **(change or {})}), "r.json")


def comparisons(result: Result) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(result_file.dumps(result))["comparisons"]
    return rows


def test_a_result_agrees_with_itself(freezer_result: Result) -> None:
    found = compare_results(side(freezer_result), side(freezer_result), ("a", "b"))
    assert (found.environment, found.kernels, found.only_a, found.only_b) == ((), (), (), ())
    assert len(found.rows) == len(freezer_result.comparisons)
    assert all(row.agree in (True, None) and row.same_verdict for row in found.rows)
    assert {row.base_ratio for row in found.rows} == {1.0}


def test_differences_of_environment_and_kernels_are_listed(freezer_result: Result) -> None:
    kernels = json.loads(result_file.dumps(freezer_result))["kernels"]
    kernels["base"]["compiler"] = "gcc 14"
    kernels["mine"] = kernels.pop("freezer-skip-nofreeze")
    other = side(
        freezer_result, {"kernels": kernels, "machine": {"cpu": "other", "qemu": "7.2.22"}}
    )
    found = compare_results(
        side(freezer_result), other, ("a", "b"), ("guest of base: CPU model: A / B",)
    )
    assert [sentence.partition(":")[0] for sentence in found.environment] == [
        "cpu",
        "guest of base",
    ]
    assert [sentence.partition(": ")[0] for sentence in found.kernels] == [
        "base",
        "freezer-skip-nofreeze",
        "mine",
    ]
    assert found.kernels[0].endswith("/ gcc 14")
    assert (
        "mine: only in B" in found.kernels and "freezer-skip-nofreeze: only in A" in found.kernels
    )


def test_disjoint_intervals_are_found(freezer_result: Result) -> None:
    rows = comparisons(freezer_result)
    first = rows[0]
    low, high = first["ci"]
    first |= {"ci": [high * 1.01, high * 1.02], "ratio": high * 1.015, "verdict": "worse"}
    first["base"]["median"] *= 2
    rows[1]["ci"] = None
    found = compare_results(
        side(freezer_result), side(freezer_result, {"comparisons": rows}), ("a", "b")
    )
    assert (found.rows[0].agree, found.rows[0].same_verdict, found.rows[0].base_ratio) == (
        False,
        False,
        2.0,
    )
    assert found.rows[1].agree is None
    assert found.rows[0].a.ci == (low, high)


def test_comparisons_that_only_one_side_has_are_listed(freezer_result: Result) -> None:
    rows = comparisons(freezer_result)
    found = compare_results(
        side(freezer_result), side(freezer_result, {"comparisons": rows[1:]}), ("a", "b")
    )
    assert len(found.only_a) == 1 and not found.only_b
    name = WORKLOADS["zombies"].metrics[rows[0]["metric"]].name
    assert found.only_a == (f"{rows[0]['variant']} on zombies: {name} at zombies=0",)


def test_metrics_have_the_names_that_the_results_recorded(freezer_result: Result) -> None:
    facts = [fact.model_dump() for fact in metrics_in_words(freezer_result, WORKLOADS)]
    renamed = [fact | {"name": "a name of then"} for fact in facts]
    found = compare_results(
        side(freezer_result, {"metrics": renamed}), side(freezer_result), ("a", "b")
    )
    assert {row.name for row in found.rows} == {"a name of then"}
    nameless = compare_results(
        side(freezer_result, {"metrics": []}), side(freezer_result), ("a", "b")
    )
    assert "freeze user time" in {row.name for row in nameless.rows}


def test_base_values_of_different_clocks_have_no_ratio(
    freezer_result: Result, wall_result: Result
) -> None:
    found = compare_results(side(freezer_result), side(wall_result), ("a", "b"))
    assert "clock: instructions / wall, which measure different things" in found.environment
    assert found.rows and all(row.base_ratio is None for row in found.rows)


def test_the_json_has_the_values_of_each_row_and_the_sentences(freezer_result: Result) -> None:
    found = compare_results(side(freezer_result), side(freezer_result), ("a", "b")).model_dump(
        mode="json"
    )
    first, row = freezer_result.comparisons[0], found["rows"][0]
    assert (row["better"], row["unit"]) == (first.better, first.unit)
    assert (row["a"]["base"], row["b"]["changed"]) == (first.base.median, first.changed.median)
    assert row["a"]["value_unit"] == "instructions"
    rows = len(freezer_result.comparisons)
    agreed = (
        f"{rows} comparisons in both results: 0 with disjoint intervals, 0 with different verdicts."
    )
    assert found["sentence"] == agreed
    assert (
        found["sentence_a"]
        == found["sentence_b"]
        == in_words(freezer_result, WORKLOADS).sentence
        != ""
    )


def test_fields_of_a_newer_version_are_ignored(freezer_result: Result) -> None:
    assert side(freezer_result, {"new_field": 1}) == side(freezer_result)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"schema": 1}'])
def test_a_file_that_is_not_a_result_is_named(text: str) -> None:
    with pytest.raises(InputError, match=r"r\.json is not a result\.json"):
        result_of(text, "r.json")


def test_another_schema_is_refused(freezer_result: Result) -> None:
    with pytest.raises(InputError, match="schema 2"):
        side(freezer_result, {"schema": 2})


V1 = "freezer-skip-exited"
V2 = "freezer-skip-nofreeze"


def of_variant(result: Result, variant: str, name: str, **verdicts: dict[str, Any]) -> Result:
    """Return the side with one variant under another name; by metric, what its verdict is
    instead."""
    fields = json.loads(result_file.dumps(in_words(result, WORKLOADS)))
    for key in ("comparisons", "metric_verdicts"):
        fields[key] = [{**row, "variant": name} for row in fields[key] if row["variant"] == variant]
    fields["metric_verdicts"] = [
        {**row, **verdicts.get(row["metric"], {})} for row in fields["metric_verdicts"]
    ]
    fields["kernels"] = {
        name if key == variant else key: facts for key, facts in fields["kernels"].items()
    }
    return result_of(json.dumps(fields), "r.json")


def test_sole_variants_are_paired_and_the_revision_is_in_words(freezer_result: Result) -> None:
    one, other = of_variant(freezer_result, V1, "v1"), of_variant(freezer_result, V1, "v2")
    found = compare_results(one, other, ("a", "b"))
    assert (found.only_a, found.only_b) == ((), ())
    assert len(found.rows) == len(one.comparisons)
    assert {(row.variant, row.variant_b) for row in found.rows} == {("v1", "v2")}
    assert found.kernels == ("v1 (A) and v2 (B): the same image",)
    assert found.revisions[0].startswith("v2 keeps all of v1's gains (freezing user space -57")
    assert found.sentence.startswith(f"{found.revisions[0]}; ")


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (
            {"freeze_remaining_ns": {"verdict": "worse", "ratio": 1.058, "ci": [1.05, 1.06]}},
            {"freeze_remaining_ns": {"verdict": "same", "ratio": 1.0, "ci": [0.99, 1.01]}},
            "v2 keeps all of v1's gain (freezing user space -57.8%) and loses its +5.8% on "
            "freezing the remaining tasks (now same)",
        ),
        (
            {"freeze_user_ns": {"ratio": 0.25, "ci": [0.24, 0.26]}},
            {"freeze_user_ns": {"ratio": 0.5, "ci": [0.49, 0.51]}},
            "keeps 50% of v1's gain on freezing user space -50.0% after -75.0%",
        ),
        (
            {},
            {"freeze_user_ns": {"verdict": "inconclusive", "ratio": 0.9, "ci": [0.7, 1.1]}},
            "loses v1's gain of -57.8% on freezing user space (now inconclusive)",
        ),
        (
            {"freeze_user_ns": {"verdict": "same", "ratio": 1.0}},
            {"freeze_user_ns": {"verdict": "worse", "ratio": 1.2}},
            "is worse on freezing user space (+20.0%; it was same)",
        ),
        (
            {"freeze_user_ns": {"verdict": "inconclusive", "ratio": 1.0}},
            {},
            "gains -57.8% on freezing user space (it was inconclusive)",
        ),
        (
            {"freeze_user_ns": {"verdict": "worse", "ratio": 1.2}},
            {"freeze_user_ns": {"verdict": "worse", "ratio": 1.1}},
            "still has the loss (freezing user space +10.0% after +20.0%)",
        ),
    ],
)
def test_what_a_revision_keeps_loses_and_adds(
    freezer_result: Result, first: dict[str, Any], second: dict[str, Any], said: str
) -> None:
    one, other = (
        of_variant(freezer_result, V1, "v1", **first),
        of_variant(freezer_result, V1, "v2", **second),
    )
    assert said in compare_results(one, other, ("a", "b")).revisions[0]


def test_the_kernels_of_two_revisions_are_compared(freezer_result: Result) -> None:
    one, other = of_variant(freezer_result, V1, "v1"), of_variant(freezer_result, V2, "v2")
    kernels = {"base": one.kernels["base"], "v1": one.kernels["v1"]}
    one = one.model_copy(update={"kernels": kernels})
    found = compare_results(one, other, ("a", "b"))
    assert found.kernels == (f"{V1}: only in B",)
    changed = {**other.kernels, "v2": other.kernels["v2"].model_copy(update={"compiler": "gcc 14"})}
    found = compare_results(one, other.model_copy(update={"kernels": changed}), ("a", "b"))
    assert found.kernels[0].startswith("v1 (A) and v2 (B): compiler: gcc (Debian")
    assert not any("v1: " in text or "v2: " in text for text in found.kernels)


def test_a_broken_revision_has_no_gain(freezer_result: Result) -> None:
    one, other = of_variant(freezer_result, V1, "v1"), of_variant(freezer_result, V1, "v2")
    fault = Fault(
        kernel="v2",
        kind="panic",
        status="broken",
        message="",
        points=(),
        boots=(1,),
        of=3,
        base_boots=0,
        base_of=3,
    )
    found = compare_results(one, other.model_copy(update={"faults": (fault,)}), ("a", "b"))
    assert found.revisions == ("v2 is broken, and v1 is not",)


def test_variants_are_mapped_also_within_one_run(freezer_result: Result) -> None:
    both = side(freezer_result)
    found = compare_results(both, both, ("a", "b"), given={V1: V2})
    assert {(row.variant, row.variant_b) for row in found.rows} == {(V1, V2)}
    assert (found.kernels, found.only_a, found.only_b) == ((), (), ())
    assert found.revisions[0].startswith(f"{V2} keeps ")
    with pytest.raises(InputError, match="the second result has no variant 'x'"):
        compare_results(both, both, ("a", "b"), given={V1: "x"})
