"""A victim of the OOM killer does not wait at the exit gate: the purpose of one patch of that series."""

from __future__ import annotations

import pytest

from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build]

PROCESSES = 2000
IN_FRONT = PROCESSES / 4
"""How many processes are in front of the victim at the gate."""
WITHOUT = "exit-gate@-3"


@pytest.fixture(scope="module")
def ahead_count(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[float]]:
    """By kernel: how many of the killed tasks were gone before the victim."""
    boots = lab.run(
        tmp_path_factory.mktemp("oom"),
        'name = "oom"\nquestion = "Does the OOM killer\'s victim wait?"\nsource = "debian:6.12"\n'
        f'variants = ["exit-gate", "{WITHOUT}"]\n'
        f'[[workloads]]\nworkload = "oomvictim"\nparams = {{processes = "{PROCESSES}"}}\n'
        '[design]\nclock = "instructions"\nseeds = 1\nwarmup = 0\nrepetitions = 4\n',
    )
    assert all(trial.status == "ok" for boot in boots for trial in boot.trials)
    return {boot.kernel: boot.trials[0].samples["ahead_count"] for boot in boots}


def test_a_victim_exits_before_the_tasks_that_wait(ahead_count: dict[str, list[float]]) -> None:
    assert max(ahead_count["exit-gate"]) < IN_FRONT / 2


def test_a_gate_that_makes_victims_wait_is_caught(ahead_count: dict[str, list[float]]) -> None:
    assert min(ahead_count[WITHOUT]) > IN_FRONT * 0.8
