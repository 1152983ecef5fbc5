"""result.json: names of fields, equal bytes for equal results, and errors for other files."""

from __future__ import annotations

import json

import pytest

from kteardown.errors import InputError
from kteardown.model.result import Result
from kteardown.report import result_file
from unit.report.on_terminal import first, printed
from unit.report.sections.test_ablation import ablated
from unit.report.test_contents_evidence import STOPPING, outlier
from unit.simulation import Noise, analysed, freezer, simulate


def test_the_fields_keep_their_names(freezer_result: Result) -> None:
    fields = json.loads(result_file.dumps(freezer_result))
    assert list(fields)[:6] == ["schema", "experiment", "question", "clock", "command", "machine"]
    assert fields["schema"] == 1
    assert {"kernels", "comparisons", "laws", "boots"} <= fields.keys()
    comparison = fields["comparisons"][0]
    assert {
        "workload",
        "variant",
        "metric",
        "unit",
        "better",
        "point",
        "base",
        "changed",
        "ratio",
        "ci",
        "confidence",
        "mde",
        "verdict",
    } <= comparison.keys()
    assert comparison["point"] == {"zombies": 0}
    assert {"median", "mean", "sd", "n"} <= comparison["base"].keys()
    law = fields["laws"][0]
    assert {
        "workload",
        "kernel",
        "metric",
        "param",
        "model",
        "per_unit",
        "per_unit_ci",
        "exponent",
        "r2",
    } <= (law.keys())
    assert list(fields["boots"]) == [
        "ok",
        "panic",
        "hang",
        "oom",
        "agent-error",
        "infrastructure-error",
    ]
    assert {"release", "source", "config_hash", "image_hash"} <= fields["kernels"]["base"].keys()


def test_a_written_result_can_be_read(freezer_result: Result, wall_result: Result) -> None:
    for result in (freezer_result, wall_result):
        text = result_file.dumps(result)
        assert result_file.loads(text) == result
        assert result_file.dumps(result_file.loads(text)) == text


def test_equal_records_give_equal_bytes() -> None:
    experiment = freezer("wall", boots=3, zombies=(0, 3000, 6000))
    noise = Noise(block=0.1, boot=0.05, sample=0.05)
    one, other = (
        result_file.dumps(analysed(experiment, simulate(experiment, noise=noise))) for _ in range(2)
    )
    assert one == other


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a result.json"),
        ("{}", "experiment"),
        ('{"schema": 1, "boot": {}}', "not a result.json"),
    ],
)
def test_other_files_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        result_file.loads(text)


def test_a_later_schema_is_refused(freezer_result: Result) -> None:
    later = result_file.dumps(freezer_result).replace('"schema": 1', '"schema": 2', 1)
    with pytest.raises(InputError, match="schema 2"):
        result_file.loads(later)


def test_all_optional_fields_can_be_written_and_read(wall_result: Result) -> None:
    full = ablated(wall_result).model_copy(
        update={"stopping": STOPPING, "outliers": (outlier("base", 1, 2.0),)}
    )
    assert result_file.loads(result_file.dumps(full)) == full


def test_a_result_without_the_newer_fields_can_be_read(wall_result: Result) -> None:
    fields = json.loads(result_file.dumps(wall_result))
    for name in ("ablations", "outliers", "stopping"):
        del fields[name]
    for comparison in fields["comparisons"]:
        for name in ("statistic", "layout_ci", "p_holm", "p_rank", "p_same", "outliers"):
            del comparison[name]
        del comparison["base"]["percentile"]
    for law in fields["laws"]:
        del law["predictions"]
    old = result_file.loads(json.dumps(fields))
    assert old.comparisons[0].verdict == first(wall_result).verdict
    assert "nothing got measurably worse" in printed(old)
