"""``selftest``: its text and its JSON, its exit code, and what a host cannot show."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from kteardown.cli import app, selftest
from kteardown.cli.selftest import SelfTest, text
from kteardown.errors import GateError
from kteardown.model.both_clocks import ClockReading, OneClock
from kteardown.model.timing import Timing
from kteardown.report.material import side_by_side
from unit.report.contexts import instructions, wall
from unit.vm.test_host import QUIET

SIDE = OneClock(ratio=0.4, ci=(0.39, 0.41), verdict="better", mde=0.02, exact=False, reason="")
READING = ClockReading(
    workload="zombies",
    variant="v",
    metric="freeze_user_ns",
    statistic="median",
    unit="ns",
    better="lower",
    point={"zombies": 3000},
    instructions=SIDE,
    wall=SIDE,
    reading="agree",
    reason="both better",
)
NOISE = {
    "workload": "zombies",
    "metric": "freeze_user_ns",
    "point": {"zombies": 3000},
    "null_ci": (0.99, 1.02),
    "mde": 0.03,
}


def compared(found: SelfTest, *readings: ClockReading) -> SelfTest:
    more = {"run": "R", "timing": Timing(made=("kvm",)), "noise": (NOISE,), "readings": readings}
    return found.model_copy(update=more)


@pytest.fixture
def host_only(monkeypatch: pytest.MonkeyPatch) -> SelfTest:
    monkeypatch.setattr("kteardown.vm.host.STEAL_S", 0.01)
    done = CliRunner().invoke(app, ["selftest", "--host-only", "--json", "-q"])
    output = json.loads(done.stdout)
    assert (output["command"], output["runs"], output["outcome"]) == ("selftest", [], None)
    return SelfTest.model_validate(output["details"])


def test_of_the_host_alone_nothing_is_booted(host_only: SelfTest) -> None:
    assert host_only.run == ""
    assert "No guests were booted" in text(host_only)
    assert {check.name for check in host_only.checks} >= {"governor", "load"}


def test_the_text_has_noise_readings_and_how_the_time_was_made(host_only: SelfTest) -> None:
    shown = text(compared(host_only, READING))
    assert "freezing user space zombies=3,000: -1.0% to +2.0%; 3.0%" in shown
    assert (
        "freezing user space zombies=3,000: agree: -60.0% better and -60.0% better (both better)"
        in shown
    )
    assert "KVM on an unknown processor" in shown


def run_with(
    monkeypatch: pytest.MonkeyPatch, *readings: ClockReading, options: tuple[str, ...] = ()
) -> Any:
    material = side_by_side("R", instructions(), wall())
    monkeypatch.setattr(selftest, "_compare", lambda boots, reporter: material)
    monkeypatch.setattr(
        selftest, "_with_comparison", lambda found, folder: compared(found, *readings)
    )
    return CliRunner().invoke(app, ["selftest", "-q", *options])


def test_clocks_that_agree_are_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_with(monkeypatch, READING).exit_code == 0


def test_clocks_that_disagree_are_one_after_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run_with(
        monkeypatch, READING.model_copy(update={"reading": "disagree", "reason": "opposite"})
    )
    assert isinstance(done.exception, GateError)
    assert "disagree" in done.stdout


def test_the_json_has_the_run_and_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    disagreeing = READING.model_copy(update={"reading": "disagree", "reason": "opposite"})
    output = json.loads(run_with(monkeypatch, disagreeing, options=("--json",)).stdout)
    assert (output["command"], output["exit_code"]) == ("selftest", 1)
    assert output["error"].startswith("the clocks disagree on freezing user space")
    (run,) = output["runs"]
    assert list(run["results"]) == ["instructions", "wall"]
    assert run["both_clocks"]["readings"]
    assert "noise" not in output["details"]


def test_what_cannot_be_shown_depends_on_the_host() -> None:
    perfect = {**QUIET, "cpu": {**QUIET["cpu"], "smt": "on", "topology": {"nodes": 2}}}
    assert list(selftest.cannot_show(perfect, "kvm", "")) == []
    poor = {**QUIET, "hypervisor": "yes"}
    found = list(selftest.cannot_show(poor, "mttcg", "no counters"))
    assert len(found) == 5
    assert all("kteardown" in item["command"] or "perf" in item["command"] for item in found)
