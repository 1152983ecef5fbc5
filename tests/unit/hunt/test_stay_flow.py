"""The stages that measure what stays, on costs with a known law."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.model.plan import PlannedTrial
from kteardown_hunt.finds import MeasuredCase
from kteardown_hunt.folder import Request
from kteardown_hunt.plan import Case
from kteardown_hunt.stay_flow import measure_stays
from unit.hunt.recorded import kind
from unit.hunt.simulated_hunt import simulated
from unit.hunt.trial_records import ReportedTrial

CASE = Case("a", "exit")
SCREENED = {CASE: MeasuredCase(CASE, {"sync_ns": {(1, size): 1.0 for size in (72, 288)}})}
RELEASED = kind(CASE, "files", "nofile").model_copy(
    update={"resident": "inode", "most_residents": 4608}
)
WALKED, FREE, IMPOSSIBLE = (
    kind(Case(name, "exit"), "files", "nofile") for name in ("walked", "free", "impossible")
)
PLAIN = RELEASED.model_copy(update={"resident": ""})


def residents_of(trial: PlannedTrial) -> dict[str, int]:
    words = str(trial.params["stay"]).split(",")
    pairs = (word.partition("=") for word in words if "=" in word)
    return {name: int(number) for name, _, number in pairs}


def walks(kernel: str, trial: PlannedTrial) -> ReportedTrial:
    """Each object walks what it declares, and ``walked``, but not on the kernel ``fixed``."""
    objects = int(trial.params["objects"])
    there = residents_of(trial)
    stay = str(trial.params["stay"])
    if "impossible" in there:
        return ReportedTrial(objects, stay, detail="the residents impossible=9 cannot be made")
    paying = there.get("declared", 0) + there.get("walked", 0) if kernel == "k" else 0
    ends = 900 * there.get("declared", 0)
    cost = 100_000 + 5_000 * objects + ends + 7 * objects * paying
    return ReportedTrial(objects, stay, {"sync_ns": cost, "make_ns": 1e6})


def test_what_a_kind_declares_is_always_measured(tmp_path: Path) -> None:
    request = Request(source="k", against=("fixed",))
    hunt = simulated(tmp_path, (RELEASED,), walks, request)
    result = measure_stays(hunt, SCREENED)
    (stay,) = result["stays"]
    assert (stay.verdict, stay.cost, stay.resident) == ("pays", "sync", "inode")
    assert stay.instructions == pytest.approx(7, rel=0.01) and stay.for_each_object
    assert stay.elsewhere == {"fixed": None}
    assert stay.predicted and stay.predicted_residents == 100_000
    assert result["free"] == 1  # making
    assert hunt.stages == ["stay", "stay-confirm", "stay-profile-sync", "stay-kernels"]


def test_one_sort_of_many_that_stay_is_named(tmp_path: Path) -> None:
    kinds = (PLAIN, WALKED, FREE)
    hunt = simulated(tmp_path, kinds, walks, Request(source="k", stay=("walked", "free")))
    (stay,) = measure_stays(hunt, SCREENED)["stays"]
    assert (stay.stay, stay.verdict) == ("walked", "pays")
    assert hunt.stages[:3] == ["stay-check", "stay-screen", "stay-single"]


def test_a_release_that_no_resident_matters_to_is_measured_no_further(tmp_path: Path) -> None:
    hunt = simulated(tmp_path, (PLAIN, FREE), walks, Request(source="k", stay=("free",)))
    assert measure_stays(hunt, SCREENED)["stays"] == ()
    assert hunt.stages == ["stay-check", "stay-screen"]


def test_residents_that_cannot_be_made_are_named_and_others_measured(tmp_path: Path) -> None:
    kinds = (PLAIN, IMPOSSIBLE, WALKED)
    hunt = simulated(tmp_path, kinds, walks, Request(source="k", stay=("impossible", "walked")))
    stays = {stay.stay: stay for stay in measure_stays(hunt, SCREENED)["stays"]}
    assert stays["impossible"].verdict == "failed"
    assert "cannot be made" in stays["impossible"].reason
    assert stays["walked"].verdict == "pays"


def test_residents_that_do_not_fit_together_are_measured_one_by_one(tmp_path: Path) -> None:
    def crowded(kernel: str, trial: PlannedTrial) -> ReportedTrial:
        if len(residents_of(trial)) > 1:
            return ReportedTrial(288, str(trial.params["stay"]), detail="out of memory")
        return walks(kernel, trial)

    kinds = (PLAIN, FREE, WALKED)
    hunt = simulated(tmp_path, kinds, crowded, Request(source="k", stay=("free", "walked")))
    (stay,) = measure_stays(hunt, SCREENED)["stays"]
    assert (stay.stay, stay.verdict) == ("walked", "pays")


def test_nothing_is_measured_beside_residents_none_of_which_can_be_made(tmp_path: Path) -> None:
    request = Request(source="k", stay=("impossible",))
    hunt = simulated(tmp_path, (PLAIN, IMPOSSIBLE), walks, request)
    (stay,) = measure_stays(hunt, SCREENED)["stays"]
    assert stay.verdict == "failed"
    assert hunt.stages == ["stay-check"]


def test_a_hunt_without_residents_has_no_such_stage(tmp_path: Path) -> None:
    hunt = simulated(tmp_path, (PLAIN,), walks, Request(source="k"))
    assert measure_stays(hunt, SCREENED) == {"residents": {}, "stays": (), "free": 0}
    assert not hunt.stages
