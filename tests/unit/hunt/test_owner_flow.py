"""The stages in which several processes release at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kteardown.model.plan import PlannedTrial
from kteardown_hunt.finds import MeasuredCase
from kteardown_hunt.folder import Request
from kteardown_hunt.owner_flow import measure_owners
from kteardown_hunt.plan import Case
from kteardown_hunt.result import CaseResult, GrowthResult
from unit.hunt.recorded import kind
from unit.hunt.simulated_hunt import simulated
from unit.hunt.trial_records import ReportedTrial

CASE = Case("a", "exit")
KIND = kind(CASE, "files", "nofile")
SIZES = (72, 288, 1152, 4608)
REQUEST = Request(source="k", owners=(2, 4))
SCREENED = {CASE: MeasuredCase(CASE, {"sync_ns": {(1, n): 1000.0 * n for n in SIZES}})}


def case(verdict: str) -> CaseResult:
    growth = GrowthResult(verdict=verdict, reason="", sizes=(), costs=(), confirmed=False)
    return CaseResult(
        kind="a",
        part="files",
        object="file",
        shape="of one",
        way="exit",
        user="root",
        growth={"sync": growth},
        idle_ns=None,
        bystanders={},
    )


def taking_turns(kernel: str, trial: PlannedTrial) -> ReportedTrial:
    return counted(trial, int(trial.params["owners"]))


def side_by_side(kernel: str, trial: PlannedTrial) -> ReportedTrial:
    return counted(trial, 1)


def here_and_there(kernel: str, trial: PlannedTrial) -> ReportedTrial:
    return taking_turns(kernel, trial) if kernel == "k" else side_by_side(kernel, trial)


def counted(trial: PlannedTrial, turns: int) -> ReportedTrial:
    objects = int(trial.params["objects"])
    return ReportedTrial(
        objects,
        samples={"line_moves_count": 3.0 * objects, "locked_count": 2.0 * objects},
        params={"owners": trial.params["owners"]},
        elapsed_ticks=5e4 + 1000.0 * objects * turns,
    )


def test_processes_that_take_turns_are_measured_again_with_each_number(tmp_path: Path) -> None:
    hunt = simulated(tmp_path, (KIND,), taking_turns, REQUEST)
    results = measure_owners(hunt, SCREENED, [case("linear")])["owners"]
    assert hunt.stages == ["owners-screen", "owners"]
    assert {(result.owners, round(result.ratio), result.verdict) for result in results} == {
        (2, 2, "serial"),
        (4, 4, "serial"),
    }
    assert {data.name for result in results for data in result.data} == {"lock"}
    # The larger number of objects takes a million instructions.
    assert {result.objects for result in results} == {1000}


def test_processes_that_do_not_wait_are_measured_once(tmp_path: Path) -> None:
    hunt = simulated(tmp_path, (KIND,), side_by_side, REQUEST)
    (result,) = measure_owners(hunt, SCREENED, [case("linear")])["owners"]
    assert hunt.stages == ["owners-screen"]
    assert (result.owners, result.verdict, result.boots) == (4, "parallel", 1)


def test_another_kernel_measures_what_seems_to_wait_on_this_one(tmp_path: Path) -> None:
    request = Request(source="k", owners=(2,), against=("fixed",))
    hunt = simulated(tmp_path, (KIND,), here_and_there, request)
    (result,) = measure_owners(hunt, SCREENED, [case("linear")])["owners"]
    assert result.verdict == "serial"
    assert {name: there.verdict for name, there in result.elsewhere.items()} == {
        "fixed": "parallel"
    }


def test_what_cannot_be_confirmed_is_no_find(tmp_path: Path) -> None:
    def once(kernel: str, trial: PlannedTrial) -> ReportedTrial:
        counts = taking_turns(kernel, trial)
        return counts if hunt.stages == ["owners-screen"] else replace(counts, samples={})

    hunt = simulated(tmp_path, (KIND,), once, REQUEST)
    fields = measure_owners(hunt, SCREENED, [case("linear")])
    (result,) = fields["owners"]
    assert hunt.stages == ["owners-screen", "owners"]
    assert (result.verdict, result.is_find, round(result.ratio)) == ("unknown", False, 4)
    assert {(failed.owners, failed.failed.outcome) for failed in fields["owners_failed"]} == {
        (1, "failed"),
        (2, "failed"),
        (4, "failed"),
    }


@pytest.mark.parametrize(
    ("request_", "verdict", "fields"),
    [
        (Request(source="k"), "linear", {}),
        (REQUEST, "superlinear", {"owners_left_out": 0}),
        # So many do not fit.
        (Request(source="k", owners=(1000,)), "linear", {"owners_left_out": 1}),
    ],
)
def test_what_is_not_asked_for_or_is_a_find_already_is_left_out(
    tmp_path: Path, request_: Request, verdict: str, fields: dict[str, int]
) -> None:
    hunt = simulated(tmp_path, (KIND,), taking_turns, request_)
    assert measure_owners(hunt, SCREENED, [case(verdict)]) == fields
    assert not hunt.stages
