"""How small a change a workload can show is known before it is measured, from results that are shipped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kteardown.coverage.power import smallest_change
from kteardown.inputs.options import Overrides, apply
from kteardown.run.resolve import experiment_for

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _no_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path))


def test_quiet_and_noisy_workloads() -> None:
    size = {one: smallest_change(experiment_for(one, "debian:6.12")) for one in ("zombies", "pipechain")}
    # Less than the margin of "same" has no other verdict, however quiet a metric is.
    assert size["zombies"] == experiment_for("zombies", "debian:6.12").design.same_within == 0.02
    assert size["pipechain"] > 0.05
    # With fewer seeds, less can be seen; with one, the spread says nothing.
    quick = [
        smallest_change(apply(experiment_for("threadexit", "debian:6.12"), Overrides(seeds=seeds)))
        for seeds in (5, 2, 1)
    ]
    assert 0 < quick[0] <= quick[1]
    assert quick[2] == 0


def test_a_few_instructions_for_each_object_decide_how_much_memory_it_holds() -> None:
    assert smallest_change(experiment_for("heldcg", "debian:6.12")) == 0.01
    assert smallest_change(experiment_for("heldcg", "debian:6.12"), each_object=True) == 0
    assert smallest_change(experiment_for("zombies", "debian:6.12"), each_object=True) == 0.02


def test_on_the_wall_clock_only_runs_of_this_host_count() -> None:
    wall = apply(experiment_for("pipechain", "debian:6.12"), Overrides(clock="wall"))
    assert smallest_change(wall) == 0


def test_the_shipped_spreads_are_those_of_the_results() -> None:
    done = subprocess.run([sys.executable, "scripts/spreads.py", "check"], cwd=ROOT, check=False)
    assert done.returncode == 0
    rows = json.loads((ROOT / "coverage" / "spreads.json").read_text())
    assert ["zombies", "freeze_user_ns"] in [row[:2] for row in rows]
