"""A victim of the OOM killer does not wait for the other processes of a mass kill, with either
design."""

from __future__ import annotations

from pathlib import Path

import pytest

from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

PROCESSES = 2000
IN_FRONT = PROCESSES / 4
"""How many processes are in front of the victim."""


def ahead_count(folder: Path, variants: list[str]) -> list[list[float]]:
    """For each variant: how many of the killed tasks were gone before the victim."""
    boots = lab.run(
        folder / "oom",
        'name = "oom"\nquestion = "Does the OOM killer\'s victim wait?"\nsource = "debian:6.12"\n'
        f"variants = {variants!r}\n"
        f'[[workloads]]\nworkload = "oomvictim"\nparams = {{processes = "{PROCESSES}"}}\n'
        '[design]\nclock = "instructions"\nseeds = 1\nwarmup = 0\nrepetitions = 4\n',
    )
    assert all(trial.status == "ok" for boot in boots for trial in boot.trials)
    found = {boot.kernel: boot.trials[0].samples["ahead_count"] for boot in boots}
    return [found[Path(variant).name] for variant in variants]


def check(folder: Path, series: str, wrong: str) -> None:
    """With ``series`` the victim exits before those that wait, and with ``wrong`` after those in
    front."""
    right, late = ahead_count(folder, [series, wrong])
    assert max(right) < IN_FRONT / 2
    assert min(late) > IN_FRONT * 0.8


def test_a_victim_does_not_wait_at_the_gate(tmp_path: Path) -> None:
    gate = lab.BROKEN / "exit-gate"
    check(tmp_path, str(gate), f"{gate}@-3")


def test_a_victim_does_not_wait_for_its_turn_in_a_relay(tmp_path: Path) -> None:
    relay = lab.BROKEN / "contender-relay"
    check(tmp_path, str(relay), lab.on_top(tmp_path, relay, "relay-broken-oom"))
