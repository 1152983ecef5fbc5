"""Every way of saying what a result means says the same: they are derived from one answer."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from xml.etree import ElementTree as Xml

from hypothesis import HealthCheck, given, settings

from kteardown.cli.options import error_of
from kteardown.errors import KteardownError
from kteardown.flows.ending import gate
from kteardown.judge.answer import Answer, FailOn
from kteardown.judge.verdicts import OUTCOMES
from kteardown.model.result import Result
from kteardown.queue import check
from kteardown.report import formats
from kteardown.report.material import Material
from kteardown.report.publication import of_run
from kteardown.report.sentence import lines
from kteardown.report.try_page import Tried, outcome
from unit.generated_results import WORKLOAD, results
from unit.report.rendered import TEXTS, written
from unit.report.test_try_page import tried

KNOWN = {"zombies": WORKLOAD}
MANY = settings(max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SOME = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def error_with(material: Material, fail_on: FailOn | None) -> KteardownError | None:
    return error_of(partial(gate, material, fail_on))


def exit_code(material: Material, fail_on: FailOn | None) -> int:
    error = error_with(material, fail_on)
    return error.exit_code if error else 0


def tried_with(material: Material) -> Tried:
    """Return a tried series with one measured workload."""
    one = tried()
    return replace(one, measured=(replace(one.measured[0], material=material),), error=None)


@MANY
@given(results())
def test_exit_codes_junit_b4_and_headline_agree(result: Result) -> None:
    material = Material("run", result, KNOWN)
    answer = material.answer
    worse, unsure = exit_code(material, "worse"), exit_code(material, "inconclusive")
    root = Xml.fromstring(TEXTS["junit"](material))
    failures, errors = (len(root.findall(f".//{kind}")) for kind in ("failure", "error"))
    status = check._OF_OUTCOME[answer.outcome]
    assert (exit_code(material, None) == 6) == (answer.outcome == "broken") == (worse == 6)
    assert (unsure == 0) == (answer.outcome == "pass") == (status == "pass")
    assert (status == "fail") == (answer.outcome in ("fail", "broken"))
    assert bool(failures) == (status == "fail")
    assert bool(worse) == bool(failures or errors)
    output = json.loads(
        formats.render("json", of_run(material).ended_by(error_with(material, "worse")))
    )
    assert (output["outcome"], output["exit_code"]) == (answer.outcome, worse)
    assert {"pass": worse == 0, "unsure": True, "fail": worse != 0, "broken": worse == 6}[
        answer.outcome
    ]
    check_headline(answer, result)


def check_headline(answer: Answer, result: Result) -> None:
    """Assert that each line alarms as its variant does, and that the first one alarms most."""
    for variant, line in zip(answer.variants, lines(result, KNOWN), strict=True):
        assert line.tone == variant.tone
        assert (line.tone == "broken") == bool(
            variant.outcome == "broken" or variant.with_status("suspected")
        )
        if line.tone == "worse":
            assert variant.outcome == "fail"
        if variant.outcome == "pass":
            assert line.tone in ("better", "same", "inconclusive")
            assert (
                "inconclusive: " not in line.text
                and "unclear" not in line.text
                and "not compared" not in line.text
            )
    assert answer.outcome == min((one.outcome for one in answer.variants), key=OUTCOMES.index)


@SOME
@given(results())
def test_every_format_begins_with_the_same_headline(result: Result) -> None:
    material = Material("run", result, KNOWN)
    said = [line.text for line in lines(result, KNOWN)]
    for form in ("markdown", "cover", "reply", "comment", "junit", "html"):
        text = " ".join(written(material, form).replace("**", "").split())
        for line in said:
            assert line.replace("&", "&amp;") in text, form
    assert json.loads(written(material, "json"))["headline"].splitlines() == said


@SOME
@given(results())
def test_a_tried_series_has_the_outcome_of_its_run(result: Result) -> None:
    material = Material("run", result, KNOWN)
    assert outcome(tried_with(material)) == material.answer.outcome
