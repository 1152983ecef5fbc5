"""The stages of a hunt, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from kteardown.model.plan import Plan
from kteardown.progress import SilentReporter
from kteardown.run.setting import Lab
from kteardown.rundir.counting import BootRecords
from kteardown_hunt import flow
from kteardown_hunt import hunt as hunt_module
from kteardown_hunt.finds import MeasuredCase
from kteardown_hunt.folder import HuntFolder, Request
from kteardown_hunt.hunt import Hunt
from kteardown_hunt.plan import Case, Options
from unit.fake_machine import FakeBoot, FakeMachine

OPTIONS = Options(budget_minstr=0)


def test_the_host_is_measured_once_although_other_finds_are_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[Plan] = []

    def measure(folder: HuntFolder, name: str, plan: Plan, *_: object) -> list[BootRecords]:
        plans.append(plan)
        folder.stage(name, plan, "hash")
        return []

    monkeypatch.setattr(hunt_module, "measure_stage", measure)
    mttcg = SimpleNamespace(acceleration="mttcg")
    monkeypatch.setattr("kteardown.vm.acceleration.best_wall_acceleration", lambda *_, **__: mttcg)
    lab = Lab(tmp_path / "agent", "x86_64", "icount", machine=FakeMachine(lambda _: FakeBoot()))
    hunt = Hunt(
        HuntFolder(tmp_path), Request(source="k"), (), (), {}, lab, OPTIONS, SilentReporter()
    )
    for names in (["a"], ["a", "b"]):
        found: Mapping[Case, MeasuredCase] = {
            case: MeasuredCase(case, {"sync_ns": {(1, 72): 1.0}})
            for case in (Case(name, "exit") for name in names)
        }
        flow._rate(hunt, found, dict.fromkeys(found, 72), OPTIONS)
    first, second = plans
    assert first == second
    assert [trial.params["kind"] for boot in first.boots for trial in boot.trials] == ["a"]
