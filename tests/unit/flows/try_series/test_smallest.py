"""How small a change a workload can show is known before it is measured, from results that are
shipped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.flows.try_series.smallest import smallest_changes
from kteardown.inputs.options import Overrides, apply
from kteardown.model.experiment import Experiment
from kteardown.model.plan import Spread
from kteardown.run.resolve import experiment_for

ROOT = Path(__file__).parents[4]


@pytest.fixture(autouse=True)
def _no_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTEARDOWN_RUNS", str(tmp_path))


def smallest(experiment: Experiment, *, each_object: bool = False) -> float:
    return min(smallest_changes(experiment, each_object=each_object).values(), default=0.0)


def test_metrics_of_a_workload_differ() -> None:
    crowd = smallest_changes(experiment_for("crowd", "debian:6.12"))
    assert crowd.keys() == {"signal_ns", "unusable_ns", "teardown_ns", "lone_kill_worst_ns"}
    assert crowd["teardown_ns"] < crowd["signal_ns"]
    # What an experiment names replaces what the workload marks.
    (sweep,) = experiment_for("crowd", "debian:6.12").workloads
    only = sweep.model_copy(update={"metrics": ("teardown_ns",)})
    named = experiment_for("crowd", "debian:6.12").model_copy(update={"workloads": (only,)})
    assert smallest_changes(named).keys() == {"teardown_ns"}
    wrong = named.model_copy(
        update={"workloads": (sweep.model_copy(update={"metrics": ("none_ns",)}),)}
    )
    with pytest.raises(InputError, match="crowd has no metric none_ns"):
        smallest_changes(wrong)


def test_quiet_and_noisy_workloads() -> None:
    size = {one: smallest(experiment_for(one, "debian:6.12")) for one in ("zombies", "pipechain")}
    # Less than the margin of "same" has no other verdict, however quiet a metric is.
    assert size["zombies"] == experiment_for("zombies", "debian:6.12").design.same_within == 0.02
    assert size["pipechain"] > size["zombies"]
    # With fewer seeds, less can be seen; with one, the spread says nothing.
    quick = [
        smallest(apply(experiment_for("threadexit", "debian:6.12"), Overrides(seeds=seeds)))
        for seeds in (5, 2, 1)
    ]
    assert 0 < quick[0] <= quick[1]
    assert quick[2] == 0


def test_a_few_instructions_for_each_object_decide_how_much_memory_it_holds() -> None:
    assert smallest(experiment_for("heldcg", "debian:6.12")) == 0.01
    assert smallest(experiment_for("heldcg", "debian:6.12"), each_object=True) == 0
    assert smallest(experiment_for("zombies", "debian:6.12"), each_object=True) == 0.02


def test_on_the_wall_clock_only_runs_of_this_host_count() -> None:
    wall = apply(experiment_for("pipechain", "debian:6.12"), Overrides(clock="wall"))
    assert smallest(wall) == 0


def test_a_quiet_run_of_this_host_does_not_replace_the_shipped_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Three boots that agree by chance. The instruction clock gives the same on every host.
    quiet = {
        ("pipechain", metric): Spread(0.001, 0.001, "a-run")
        for metric in ("signal_ns", "teardown_ns")
    }
    quiet["script", "own_ns"] = Spread(0.001, 0.001, "a-run")
    before = smallest_changes(experiment_for("pipechain", "debian:6.12"))
    monkeypatch.setattr(
        "kteardown.flows.try_series.smallest.spreads", lambda experiment, runs: quiet
    )
    assert smallest_changes(experiment_for("pipechain", "debian:6.12")) == before
    wall = apply(experiment_for("pipechain", "debian:6.12"), Overrides(clock="wall"))
    assert smallest_changes(wall).keys() == {"signal_ns", "teardown_ns"}


def test_the_shipped_spreads_have_the_headline_of_the_freezer() -> None:
    rows = json.loads((ROOT / "coverage" / "spreads.json").read_text())
    assert ["zombies", "freeze_user_ns"] in [row[:2] for row in rows]
