"""What holds a removed memory cgroup: each holder does or does not, and its release frees the
cgroup."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kteardown.inputs.load import load_workload
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build]

CGROUPS = 200
HOLDERS = ("file", "mlocked", "swapped", "zombie")
"""Those that hold a cgroup of 6.12 and need no fragment; they are also made in a cgroup that is not
removed, as all but ``none``, ``child`` and ``written-late`` can be."""


def run(folder: Path, source: str, holders: Sequence[str], *config: str) -> list[lab.Boot]:
    return lab.run(
        folder,
        'name = "heldcg"\n'
        'question = "Does it work?"\n'
        f'source = "{source}"\n'
        "variants = []\n"
        f"config = {list(config)!r}\n"
        "[[workloads]]\n"
        'workload = "heldcg"\n'
        f"params.cgroups = [{CGROUPS}]\n"
        f"params.holder = {list(holders)!r}\n"
        "[design]\n"
        'clock = "instructions"\n'
        "seeds = 1\n"
        "warmup = 0\n"
        "repetitions = 1\n"
        "[machine]\n"
        "possible_cpus = 32\n"
        "cpus = 1\n"
        "memory_mb = 1024\n"
        'kernel_args = ["noapictimer"]\n',
    )


def both(*holders: str) -> list[str]:
    return [*holders, *(f"{holder}-outside" for holder in holders)]


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
    (boot,) = run(tmp_path, "debian:6.12", ["none", "child", *both(*HOLDERS, "inode")])
    held = held_kb(boot, {"file": 1, "mlocked": 1, "swapped": 1, "zombie": 1, "child": 2})
    for holder in HOLDERS:
        assert held[holder] - held[f"{holder}-outside"] > 40
    assert held["child"] - held["swapped"] > 40
    assert held["inode"] - held["inode-outside"] < 3


@pytest.mark.full
def test_a_page_in_memory_does_not_hold_a_cgroup_of_7_3(tmp_path: Path) -> None:
    (boot,) = run(tmp_path, "debian:7.3", ["none", "child", *both(*HOLDERS, "inode")])
    held = held_kb(boot, {"swapped": 1, "zombie": 1, "child": 2})
    for holder in ("file", "mlocked", "inode"):
        assert held[holder] - held[f"{holder}-outside"] < 3
    for holder in ("swapped", "zombie"):
        assert held[holder] - held[f"{holder}-outside"] > 40


@pytest.mark.full
def test_sockets_inotify_huge_pages_and_a_disk_on_7_2(tmp_path: Path) -> None:
    whole, free = ("inotify", "socket", "dirty"), ("hugetlb", "written")
    holders = [*both(*whole, *free, "hugetlb-reserved"), "written-late"]
    (boot,) = run(tmp_path, "debian:7.2", holders, "holders")
    dying = dict.fromkeys((*whole, "hugetlb-reserved", "written-late"), 1)
    held = held_kb(boot, dying)
    for holder in whole:
        assert held[holder] - held[f"{holder}-outside"] > 40
    for holder in free:
        assert held[holder] - held[f"{holder}-outside"] < 4
    # The css of hugetlb keeps the cgroup, without what it has for memory.
    assert 4 < held["hugetlb-reserved"] - held["hugetlb-reserved-outside"] < 40
    memory = held_kb(boot, dying, "dying_memory_count")
    assert (memory["socket"], memory["hugetlb-reserved"]) == (1, 0)
    # The stock of the only CPU has seven slots.
    assert 0 < held_kb(boot, dying, "stocked_count")["socket"] * CGROUPS <= 7
