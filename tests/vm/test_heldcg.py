"""What holds a removed memory cgroup: each holder does or does not, and its release frees the
cgroup."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.inputs.load import load_workload
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build]

CGROUPS = 200
HOLDERS = ("file", "swapped", "zombie")
"""Those that are also made in a cgroup that is not removed."""


def run(folder: Path, source: str) -> list[lab.Boot]:
    holders = ["none", "child", *HOLDERS, *(f"{holder}-outside" for holder in HOLDERS)]
    return lab.run(
        folder,
        'name = "heldcg"\n'
        'question = "Does it work?"\n'
        f'source = "{source}"\n'
        "variants = []\n"
        "[[workloads]]\n"
        'workload = "heldcg"\n'
        f"params.cgroups = [{CGROUPS}]\n"
        f"params.holder = {holders!r}\n"
        "[design]\n"
        'clock = "instructions"\n'
        "seeds = 1\n"
        "warmup = 0\n"
        "repetitions = 1\n"
        "[machine]\n"
        "possible_cpus = 32\n"
        "cpus = 1\n"
        'kernel_args = ["noapictimer"]\n',
    )


def held_kb(boot: lab.Boot, dying: dict[str, int], metric: str = "held_kb") -> dict[str, float]:
    """By holder, what one object holds, after a check of every trial. ``dying``: cgroups of each
    object."""
    workload = load_workload("heldcg")
    for trial in boot.trials:
        assert trial.status == "ok", (trial.params, trial.detail)
        assert trial.checks == {name: [True] for name in workload.invariants}
        assert set(trial.samples) == set(workload.metrics)
        each = dying.get(str(trial.params["holder"]), 0)
        assert trial.samples["dying_count"] == [each * CGROUPS], trial.params
    return {
        str(trial.params["holder"]): trial.samples[metric][0] / CGROUPS for trial in boot.trials
    }


def test_every_holder_holds_a_cgroup_of_6_12_until_it_is_released(tmp_path: Path) -> None:
    (boot,) = run(tmp_path, "debian:6.12")
    held = held_kb(boot, {"file": 1, "swapped": 1, "zombie": 1, "child": 2})
    for holder in HOLDERS:
        assert held[holder] - held[f"{holder}-outside"] > 40
    assert held["child"] - held["swapped"] > 40


@pytest.mark.full
def test_a_page_in_memory_does_not_hold_a_cgroup_of_7_3(tmp_path: Path) -> None:
    (boot,) = run(tmp_path, "debian:7.3")
    held = held_kb(boot, {"swapped": 1, "zombie": 1, "child": 2})
    assert held["file"] - held["file-outside"] < 3
    for holder in ("swapped", "zombie"):
        assert held[holder] - held[f"{holder}-outside"] > 40
