"""Dying memory cgroups: made in both ways, counted and released; and the cost of a cgroup that is
in use."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.inputs.load import load_workload
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build]

CGROUPS = 100
# A shell script measures whole steps only.
SINGLE_CALLS = {"create_ns", "rmdir_ns"}


def run(
    folder: Path, workloads: str, possible_cpus: str = "1", source: str = "debian:6.12"
) -> list[lab.Boot]:
    return lab.run(
        folder,
        f'name = "dyingcg"\nquestion = "Does it work?"\nsource = "{source}"\n'
        f"{workloads}\n"
        '[design]\nclock = "instructions"\nseeds = 1\nwarmup = 0\nrepetitions = 1\n'
        f'[machine]\npossible_cpus = {possible_cpus}\ncpus = 1\nkernel_args = ["noapictimer"]\n',
    )


def dyingcg(hows: tuple[str, ...] = ("agent",)) -> str:
    return (
        "[[workloads]]\n"
        'workload = "dyingcg"\n'
        f"params.cgroups = [0, {CGROUPS}]\n"
        f"params.how = {list(hows)!r}\n"
    )


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Trial]:
    (boot,) = run(tmp_path_factory.mktemp("ways"), dyingcg(("agent", "script")))
    return boot.trials


def test_every_removed_cgroup_is_dying_until_its_file_is_deleted(
    both_ways: list[lab.Trial],
) -> None:
    workload = load_workload("dyingcg")
    assert len(both_ways) == 4
    for trial in both_ways:
        cgroups, how = trial.params["cgroups"], trial.params["how"]
        assert trial.status == "ok", (trial.params, trial.detail)
        assert trial.checks == {name: [True] for name in workload.invariants}
        assert trial.samples["dying_count"] == [cgroups]
        without = (
            (SINGLE_CALLS if how == "script" else set()) if cgroups else {*SINGLE_CALLS, "cycle_ns"}
        )
        assert set(trial.samples) == set(workload.metrics) - without


def test_a_dying_cgroup_holds_about_as_much_memory_in_both_ways(both_ways: list[lab.Trial]) -> None:
    none = {
        t.params["how"]: t.samples["footprint_kb"][0] for t in both_ways if not t.params["cgroups"]
    }
    held = {
        t.params["how"]: t.samples["footprint_kb"][0] - none[t.params["how"]]
        for t in both_ways
        if t.params["cgroups"]
    }
    assert held["agent"] > 5 * CGROUPS
    assert held["script"] == pytest.approx(held["agent"], rel=0.25)


def test_the_instruction_clock_gives_the_same_figures_every_time(
    tmp_path: Path, both_ways: list[lab.Trial]
) -> None:
    (again,) = run(tmp_path, dyingcg(("agent", "script")))
    assert [trial.samples for trial in again.trials] == [trial.samples for trial in both_ways]


def test_per_cpu_memory_follows_the_possible_cpus(tmp_path: Path) -> None:
    few, many = (
        {trial.params["cgroups"]: trial.samples["percpu_kb"][0] for trial in boot.trials}
        for boot in run(tmp_path, dyingcg(), "[2, 32]")
    )
    assert many[CGROUPS] - many[0] > 10 * (few[CGROUPS] - few[0])


@pytest.mark.full
def test_a_kernel_that_gives_the_pages_to_the_parent_has_no_dying_cgroup(tmp_path: Path) -> None:
    (boot,) = run(tmp_path, dyingcg(), source="debian:7.2")
    for trial in boot.trials:
        assert trial.status == "ok", (trial.params, trial.detail)
        assert trial.samples["dying_count"] == [0]


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Trial]:
    """The trials of one boot with cgroups that are in use, and with pages of removed ones."""
    (boot,) = run(
        tmp_path_factory.mktemp("used"),
        '[[workloads]]\nworkload = "chargeloop"\n'
        'params = {kind = ["private", "shared"], rounds = "10", reads = "5"}\n'
        '[[workloads]]\nworkload = "dyingfault"\n'
        'params = {owner = ["living", "dying"], levels = [1, 3], rounds = [10]}\n',
    )
    return boot.trials


def test_a_cgroup_in_use_is_charged_and_read(used: list[lab.Trial]) -> None:
    workload = load_workload("chargeloop")
    trials = [trial for trial in used if trial.workload == "chargeloop"]
    assert [trial.params["kind"] for trial in trials] == ["private", "shared"]
    for trial in trials:
        assert trial.status == "ok", (trial.params, trial.detail)
        assert set(trial.samples) == set(workload.metrics)
        assert trial.checks == {"empty": [True]}


def test_pages_of_a_removed_cgroup_are_used(used: list[lab.Trial]) -> None:
    workload = load_workload("dyingfault")
    trials = [trial for trial in used if trial.workload == "dyingfault"]
    assert len(trials) == 4
    for trial in trials:
        assert trial.status == "ok", (trial.params, trial.detail)
        assert trial.checks == {name: [True] for name in workload.invariants}
        dying = trial.params["levels"] if trial.params["owner"] == "dying" else 0
        assert trial.samples["dying_count"] == [dying]
