"""What every format says of a metric that is better only by the kernel's own figure."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

import pytest

from kteardown.analysis.sequential import stop_here
from kteardown.errors import GateError
from kteardown.flows.ending import gate
from kteardown.inputs.published import load_posting
from kteardown.report.material import Material
from kteardown.report.sections.fault_lines import fault_lines
from kteardown.report.sentence import lines
from kteardown_replicate.claims import replicate
from unit.analysis.test_self_timed import FORGED, HONEST, result_of, zombies
from unit.report.rendered import TEXTS

WORKLOADS = {"zombies": zombies()}
WHY = "the call that contains it (suspend_call_ns) did not change"


@pytest.mark.parametrize("form", sorted(TEXTS.keys() - {"json"}))
def test_every_format_says_why(form: str) -> None:
    material = Material("run", result_of(FORGED), WORKLOADS)
    assert WHY in " ".join(TEXTS[form](material).split())


def test_a_report_begins_with_it() -> None:
    found = [line.text for line in fault_lines(result_of(FORGED))]
    assert found[0] == f"{FORGED}, freeze_user_ns: the kernel's own figure says -95%; {WHY}"
    assert fault_lines(result_of(HONEST)) == []
    (line,) = lines(result_of(FORGED), WORKLOADS)
    assert line.tone == "inconclusive"


def test_in_ci_it_is_no_pass_and_no_failure_of_the_patch() -> None:
    result = result_of(FORGED)
    root = Xml.fromstring(TEXTS["junit"](Material("run", result, WORKLOADS)))
    cases = [case for case in root.iter("testcase") if "freeze_" in case.get("classname", "")]
    assert cases and all(case.find("skipped") is not None for case in cases)
    assert (root.get("failures"), root.get("errors")) == ("0", "0")
    gate(Material("run", result, WORKLOADS), "worse")
    with pytest.raises(GateError, match="freezing user space"):
        gate(Material("run", result, WORKLOADS), "inconclusive")


def test_it_replicates_no_claim() -> None:
    posting = load_posting("freezer")
    assert posting is not None
    about = [
        one
        for one in replicate(posting, result_of(FORGED))
        if one.claim.metric.startswith("freeze_")
    ]
    assert "replicates" not in {one.finding for one in about}
    assert [one for one in about if WHY in one.reason]


def test_a_run_does_not_go_on_for_it() -> None:
    """More boots do not make a saving appear that is not there."""
    headline = {("zombies", "freeze_user_ns"), ("zombies", "freeze_remaining_ns")}
    assert stop_here(result_of(FORGED), None, headline)[0]
