"""The workloads of the mass-kill designs: every way to be killed, in every group of the scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.inputs.load import load_workload
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build]

STATES = ("sleep", "spin", "aio", "fuse")
HOWS = ("group", "interrupt", "cgroup", "container")
GROUPS = ("none", "sessions", "cgroup")
ON = ("pipe", "futex", "message", "epoll", "exclusive")


def run(folder: Path, workload: str, params: str) -> list[lab.Trial]:
    """The trials of one boot of base on the instruction clock."""
    (boot,) = lab.run(
        folder,
        'name = "crowd"\nquestion = "Does it work?"\nsource = "debian:6.12"\n'
        f'[[workloads]]\nworkload = "{workload}"\n{params}\n'
        '[design]\nclock = "instructions"\nseeds = 1\nwarmup = 0\nrepetitions = 1\n',
    )
    return boot.trials


def test_a_crowd_is_killed_in_every_state_and_group(tmp_path: Path) -> None:
    crowd = load_workload("crowd")
    trials = run(
        tmp_path,
        "crowd",
        f"params.processes = [40]\nparams.each_kb = [256]\nparams.state = {list(STATES)!r}\n"
        f"params.how = {list(HOWS)!r}\nparams.groups = {list(GROUPS)!r}\n",
    )
    assert len(trials) == len(STATES) * len(HOWS) * len(GROUPS)
    for trial in trials:
        assert trial.status == "ok", (trial.params, trial.detail)
        assert trial.checks == {name: [True] for name in crowd.invariants}
        assert set(trial.samples) | {"free_ns"} == set(crowd.metrics)


def test_an_event_reaches_the_process_that_runs_on(tmp_path: Path) -> None:
    trials = run(tmp_path, "lost_events", f"params.processes = [40]\nparams.on = {list(ON)!r}\n")
    assert [trial.status for trial in trials] == ["ok"] * len(ON)
    assert all(trial.checks["one_arrives"] == [True] for trial in trials)
