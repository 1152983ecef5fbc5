"""What holds a removed memory cgroup: each kind of holder does or does not, and its release frees the cgroup."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.inputs.load import load_workload
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build]

CGROUPS = 50
HOLDERS = ("none", "file", "swapped", "zombie", "child")


def run(folder: Path, variants: tuple[str, ...] = (), source: str = "debian:6.12") -> list[lab.Boot]:
    return lab.run(
        folder,
        f'name = "heldcg"\nquestion = "Does it work?"\nsource = "{source}"\nvariants = {list(variants)!r}\n'
        f'[[workloads]]\nworkload = "heldcg"\nparams.cgroups = [0, {CGROUPS}]\n'
        f'params.holder = {list(HOLDERS)!r}\nparams.made = ["inside", "outside"]\n'
        '[design]\nclock = "instructions"\nseeds = 1\nwarmup = 0\nrepetitions = 1\n'
        '[machine]\npossible_cpus = 32\ncpus = 1\nkernel_args = ["noapictimer"]\n',
    )


def check(trials: list[lab.Trial], holding: dict[str, int]) -> None:
    """``holding``: how many dying cgroups each holder leaves for each object."""
    workload = load_workload("heldcg")
    assert len(trials) == 2 * 2 * len(HOLDERS)
    for trial in trials:
        inside = trial.params["made"] == "inside"
        each = holding[str(trial.params["holder"])] if inside else 0
        assert trial.status == "ok", (trial.params, trial.detail)
        assert trial.checks == {name: [True] for name in workload.invariants}
        assert set(trial.samples) == set(workload.metrics)
        assert trial.samples["dying_count"] == [each * int(trial.params["cgroups"])], trial.params


def growth(trials: list[lab.Trial], holder: str, made: str, metric: str = "footprint_kb") -> float:
    """What the metric grows by for one more cgroup."""
    of = {
        trial.params["cgroups"]: trial.samples[metric][0]
        for trial in trials
        if (trial.params["holder"], trial.params["made"]) == (holder, made)
    }
    return (of[CGROUPS] - of[0]) / CGROUPS


def test_every_holder_holds_a_cgroup_of_6_12_until_it_is_released(tmp_path: Path) -> None:
    (boot,) = run(tmp_path)
    check(boot.trials, {"none": 0, "file": 1, "swapped": 1, "zombie": 1, "child": 2})
    for holder in HOLDERS[1:]:
        held = growth(boot.trials, holder, "inside") - growth(boot.trials, holder, "outside")
        assert held > (60 if holder == "child" else 30), holder


@pytest.mark.full
def test_a_page_in_memory_does_not_hold_a_cgroup_of_7_3(tmp_path: Path) -> None:
    (boot,) = run(tmp_path, source="debian:7.3")
    check(boot.trials, {"none": 0, "file": 0, "swapped": 1, "zombie": 1, "child": 2})
