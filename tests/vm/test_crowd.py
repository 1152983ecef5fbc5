"""The workloads of the mass-kill designs: every way to be killed, in every group of the
scheduler."""

from __future__ import annotations

from collections.abc import Sequence
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


def check_crowd(
    folder: Path, states: Sequence[str], hows: Sequence[str], groups: Sequence[str]
) -> None:
    """Kill a small crowd in each combination; every invariant holds, and every metric is there."""
    crowd = load_workload("crowd")
    trials = run(
        folder,
        "crowd",
        f"params.processes = [40]\nparams.each_kb = [256]\nparams.state = {list(states)!r}\n"
        f"params.how = {list(hows)!r}\nparams.groups = {list(groups)!r}\n",
    )
    assert len(trials) == len(states) * len(hows) * len(groups)
    for trial in trials:
        assert trial.status == "ok", (trial.params, trial.detail)
        assert trial.checks == {name: [True] for name in crowd.invariants}
        assert set(trial.samples) | {"free_ns"} == set(crowd.metrics)


@pytest.mark.parametrize(
    ("states", "hows", "groups"),
    [(STATES, HOWS[:1], GROUPS[1:2]), (STATES[:1], HOWS[1:], GROUPS[2:])],
)
def test_a_crowd_is_killed_in_each_state_and_in_each_way(
    tmp_path: Path, states: Sequence[str], hows: Sequence[str], groups: Sequence[str]
) -> None:
    check_crowd(tmp_path, states, hows, groups)


@pytest.mark.full
def test_a_crowd_is_killed_in_every_state_and_group(tmp_path: Path) -> None:
    check_crowd(tmp_path, STATES, HOWS, GROUPS)


def test_an_event_reaches_the_process_that_runs_on(tmp_path: Path) -> None:
    trials = run(tmp_path, "lost_events", f"params.processes = [40]\nparams.on = {list(ON)!r}\n")
    assert [trial.status for trial in trials] == ["ok"] * len(ON)
    assert all(trial.checks["one_arrives"] == [True] for trial in trials)
