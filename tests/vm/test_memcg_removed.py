"""Memory cgroups are removed: what the release of their statistics costs, and what changes for
others."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kteardown.paths import data_dir
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

SERIES = "memcg-release-percpu"
SCRIPTS = Path(__file__).parents[1] / "data" / "memcg"
CGROUPS = 1000
CPUS = (32, 64)
"""Many: what kernel threads use without a release differs by thousands of instructions, too."""
PAGES = 10000
NODE_GONE = "memcg-node-gone"
"""Lets a script take the memory of node 1 away. Base, which does not have it, fails."""
NO_NODE = "memcg-broken-no-node"
BATCH = "memcg-release-percpu-batch"
"""Flushes all cgroups to release at once."""

Figures = dict[str, list[lab.Trial]]
"""By kernel: its trials."""


def measure(folder: Path, workload: str, values: str, machine: str = "") -> Figures:
    """One boot of base and of the series for each point, on the instruction clock."""
    shutil.copytree(SCRIPTS, folder / "workloads")
    boots = lab.run(
        folder,
        'name = "removed"\nquestion = "What does a removed cgroup change?"\n'
        'source = "debian:6.12"\n'
        f"variants = {[SERIES]!r}\n"
        f'[[workloads]]\nworkload = "{workload}"\nparams = {{{values}}}\n'
        f'[machine]\ncpus = 1\nkernel_args = ["noapictimer"]\n{machine}\n'
        f"[design]\n{lab.INSTRUCTIONS}\nwarmup = 0\nrepetitions = 1\n",
    )
    for boot in boots:
        assert not boot.problems
        assert [trial.status for trial in boot.trials] == ["ok"], boot.trials
    return {
        kernel: [boot.trials[0] for boot in boots if boot.kernel == kernel]
        for kernel in ("base", SERIES)
    }


def only(figures: Figures, kernel: str, metric: str) -> float:
    """The value of a metric that was measured once on the kernel."""
    ((value,),) = (trial.samples[metric] for trial in figures[kernel])
    return value


def test_a_release_costs_in_proportion_to_the_possible_cpus(tmp_path: Path) -> None:
    figures = measure(
        tmp_path, "release_cost", f"CGROUPS = [0, {CGROUPS}]", f"possible_cpus = {list(CPUS)}"
    )

    def each(kernel: str, cpus: int) -> float:
        found = {
            trial.params["CGROUPS"]: trial.samples["threads_ns"][0]
            for trial in figures[kernel]
            if trial.params["possible_cpus"] == cpus
        }
        return (found[CGROUPS] - found[0]) / CGROUPS

    few, many = (each(SERIES, cpus) - each("base", cpus) for cpus in CPUS)
    # Some 1,200 instructions for each of them.
    assert many / few == pytest.approx(CPUS[1] / CPUS[0], rel=0.2)


def test_a_reader_waits_for_one_flush_and_not_for_all(tmp_path: Path) -> None:
    shutil.copytree(SCRIPTS, tmp_path / "workloads")
    boots = lab.run(
        tmp_path,
        'name = "readers"\nquestion = "How long does a reader wait?"\nsource = "debian:6.12"\n'
        f"variants = {[SERIES, lab.on_top(tmp_path, SERIES, BATCH)]!r}\n"
        f'[[workloads]]\nworkload = "release_readers"\nparams = {{CGROUPS = [{CGROUPS}]}}\n'
        '[machine]\ncpus = 2\npossible_cpus = 64\nkernel_args = ["noapictimer"]\n'
        f"[design]\n{lab.INSTRUCTIONS}\nwarmup = 0\nrepetitions = 1\n",
    )
    longest = {boot.kernel: boot.trials[0].samples["longest_ns"][0] for boot in boots}
    # 0.6, 1.2 and 38 million instructions.
    assert longest[SERIES] < 5 * longest["base"]
    assert longest[BATCH] > 10 * longest[SERIES]


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    return measure(tmp_path_factory.mktemp("faults"), "v1_events", f"PAGES = [{PAGES}]")


@pytest.mark.parametrize("kernel", ("base", SERIES))
def test_nothing_that_a_removed_child_faulted_is_lost(faults: Figures, kernel: str) -> None:
    before, after = (only(faults, kernel, f"total_{when}_count") for when in ("before", "after"))
    assert after == before >= PAGES


@pytest.mark.parametrize("kernel", ("base", SERIES))
def test_faults_of_a_removed_child_are_not_the_parents(faults: Figures, kernel: str) -> None:
    assert only(faults, kernel, "own_after_count") == only(faults, kernel, "own_before_count")


def test_what_was_counted_for_a_node_without_memory_is_not_lost(tmp_path: Path) -> None:
    shutil.copytree(SCRIPTS, tmp_path / "workloads")
    shipped = data_dir("series") / SERIES
    made = {"hooked": [], "released": [shipped], "lost": [shipped, lab.BROKEN / NO_NODE]}
    for name, origins in made.items():
        (tmp_path / name).mkdir()
        for origin in (*origins, lab.BROKEN / NODE_GONE):
            for patch in origin.glob("*.patch"):
                shutil.copy(patch, tmp_path / name)
    boots = lab.run(
        tmp_path,
        'name = "nodes"\nquestion = "What is left of a node without memory?"\n'
        f'source = "debian:6.12"\nvariants = {[str(tmp_path / name) for name in made]!r}\n'
        '[[workloads]]\nworkload = "node_gone"\n'
        '[machine]\ncpus = 1\npossible_cpus = 2\nnuma_nodes = 2\nkernel_args = ["noapictimer"]\n'
        f"[design]\n{lab.INSTRUCTIONS}\nwarmup = 0\nrepetitions = 1\n",
        guests_fail=True,
    )
    left = {boot.kernel: boot.trials[0].samples["left_count"] for boot in boots if boot.trials}
    assert left["hooked"] == left["released"] == [0]
    assert left["lost"] > [0]


@pytest.fixture(scope="module")
def throttled(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    return measure(tmp_path_factory.mktemp("throttled"), "throttled", "MB = [24]")


@pytest.mark.parametrize("kernel", ("base", SERIES))
def test_a_file_of_a_removed_cgroup_is_written_without_a_pause(
    throttled: Figures, kernel: str
) -> None:
    assert only(throttled, kernel, "pauses_count") == 0
