"""The stages that measure waits and interrupts of other CPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.model.plan import PlannedTrial
from kteardown_hunt.finds import MeasuredCase
from kteardown_hunt.folder import Request
from kteardown_hunt.plan import Case
from kteardown_hunt.wait_flow import measure_broadcasts, measure_waits
from unit.hunt.recorded import kind
from unit.hunt.simulated_hunt import simulated
from unit.hunt.trial_records import ReportedTrial

CASE = Case("a", "exit")
KIND = kind(CASE, "files", "nofile")
SIZES = (72, 288, 1152, 4608)
REQUEST = Request(source="k", against=("fixed",))
STACK = "entry;do_exit;__fput;synchronize_rcu;__wait_rcu_gp;schedule"


def case(idle_each_ns: float) -> dict[Case, MeasuredCase]:
    return {CASE: MeasuredCase(CASE, {"idle_ns": {(1, n): idle_each_ns * n for n in SIZES}})}


def sleeps(kernel: str, trial: PlannedTrial) -> ReportedTrial:
    """Each object sleeps for 12 ms, on ``fixed`` for 0; and calls the other CPU once."""
    objects = int(trial.params["objects"])
    waits = objects if kernel == "k" else 1
    watched = {STACK: waits} if trial.params["watch"] == "waits" else {}
    samples = {
        "idle_ns": 12e6 * waits,
        "calls_count": waits,
        "flushes_count": 0.0,
        "switches_count": 5.0,
    }
    return ReportedTrial(objects, samples=samples, waits=watched)


def test_a_wait_for_each_object_is_watched_and_named(tmp_path: Path) -> None:
    hunt = simulated(tmp_path, (KIND,), sleeps, REQUEST)
    (wait,) = measure_waits(hunt, case(12e6))
    assert wait.each_ns == pytest.approx(12e6)
    assert [function.name for function in wait.functions] == ["synchronize_rcu"]
    assert wait.elsewhere == {"fixed": 0.0}


def test_a_release_that_does_not_wait_is_not_watched(tmp_path: Path) -> None:
    hunt = simulated(tmp_path, (KIND,), sleeps, REQUEST)
    assert measure_waits(hunt, case(0.0)) == ()
    assert not hunt.stages


def test_interrupts_for_each_object_are_confirmed_with_more_seeds(tmp_path: Path) -> None:
    hunt = simulated(tmp_path, (KIND,), sleeps, REQUEST)
    (broadcast,), counts = measure_broadcasts(hunt, case(0.0))
    assert (broadcast.calls_each, broadcast.seeds) == ((1.0, 1.0), 3)
    assert broadcast.elsewhere == {"fixed": (0.0, 0.0)}
    assert counts[CASE]["calls_count"] == 1
    assert hunt.stages == ["broadcasts", "broadcasts-confirm"]
