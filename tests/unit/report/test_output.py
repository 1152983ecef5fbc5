"""The JSON of a command: its keys, that it is read again, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kteardown.errors import InputError
from kteardown.report import formats, result_file
from kteardown.report.material import side_by_side
from kteardown.report.output import FORMAT, CommandOutput, results_in
from kteardown.report.publication import of_run
from outputs import run_in
from unit.generated_results import fault_of
from unit.report.contexts import instructions, wall
from unit.report.rendered import TEXTS


def test_the_keys_are_those_of_every_command() -> None:
    output = json.loads(TEXTS["json"](instructions()))
    assert list(output) == [
        *(
            "format",
            "kteardown",
            "command",
            "headline",
            "outcome",
            "exit_code",
            "error",
            "runs",
            "details",
        ),
    ]
    assert (output["format"], output["command"], output["exit_code"]) == (FORMAT, "run", 0)
    (run,) = output["runs"]
    assert run["outcome"] == output["outcome"]
    for variant in run["variants"]:
        assert list(variant) == ["name", "headline", "outcome", "problems", "metrics"]
        assert variant["headline"] in run["headline"].splitlines()
        headlines = [one for one in variant["metrics"] if one["is_headline"]]
        worse = [one for one in headlines if one["outcome"] == "fail"]
        assert all(one["turned"]["worse"] or one["verdict"] == "worse" for one in worse)
        assert bool(worse) == ("fail" in variant["problems"])
    assert run["both_clocks"] is None


def test_a_result_is_in_it_as_it_is_saved() -> None:
    material = wall()
    saved = result_file.dumps(result_file.in_words(material.result, material.workloads))
    assert run_in(TEXTS["json"](material))["results"] == {"wall": json.loads(saved)}


def test_what_is_written_is_read_again() -> None:
    for material in (instructions(), wall(), side_by_side("R", instructions(), wall())):
        text = TEXTS["json"](material)
        assert (
            CommandOutput.model_validate_json(text).model_dump_json(indent=1, by_alias=True) + "\n"
            == text
        )
        clocks = [one.result.clock for one in material.clocks]
        assert [one.clock for one in results_in(text, "r.json")] == clocks


def test_a_run_of_base_alone_has_no_variant() -> None:
    material = instructions()
    result = material.result
    kernels = {"base": result.kernels["base"]}
    alone = result.model_copy(update={"kernels": kernels, "comparisons": (), "metric_verdicts": ()})
    run = run_in(TEXTS["json"](replace(material, result=alone)))
    assert (run["variants"], run["outcome"]) == ([], "unsure")
    assert run["headline"]


def test_base_that_fails_has_a_line_and_is_no_variant() -> None:
    material = instructions()
    failing = material.result.model_copy(update={"faults": (fault_of("base", "base"),)})
    run = run_in(TEXTS["json"](replace(material, result=failing)))
    assert run["base_fails"] and run["outcome"] != "pass"
    assert run["headline"].startswith("base is broken")
    assert all(variant["name"] in variant["headline"] for variant in run["variants"])


def test_files_of_earlier_versions_are_read() -> None:
    material = wall()
    result = json.loads(result_file.dumps(material.result))
    of_both = json.dumps({"schema": 1, "readings": [], "results": {"wall": result}})
    for text in (json.dumps(result), of_both):
        assert results_in(text, "r.json") == [material.result]


def test_other_files_are_refused() -> None:
    publication = of_run(wall())
    none, later = (json.loads(TEXTS["json"](wall())) for _ in range(2))
    later["format"] = FORMAT + 1
    none["runs"] = []
    two = formats.render("json", replace(publication, materials=(wall(), instructions())))
    for text, message in (
        (
            json.dumps(later),
            f"r.json has format {FORMAT + 1}; this kteardown reads format {FORMAT}",
        ),
        (json.dumps(none), "r.json has 0 runs"),
        (two, "r.json has 2 runs"),
        ("{}", "r.json is not a result.json"),
        ('{"format": 2}', "r.json is not the JSON of a command: runs: Field required"),
        (TEXTS["json"](wall()).replace('"schema": 1', '"schema": 2'), "r.json has schema 2"),
    ):
        with pytest.raises(InputError, match=message):
            results_in(text, "r.json")
