"""Memory cgroups are removed while in use: the shipped series counts all memory, wrong series are
caught."""

from __future__ import annotations

import pytest

from kteardown.inputs.load import load_workload
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

SERIES = "memcg-release-percpu"
OTHER = "memcg-release-percpu-shared"
"""The other design: late updates go to shared counters of the removed cgroup. Correct as well."""
RIGHT = ("base", SERIES, OTHER)
CAUGHT_BY = {
    "memcg-broken-no-fold": {"files_count", "nodes_count", "anon_count"},
    "memcg-broken-no-parent": {"files_count", "anon_count", "mapped_count"},
    "memcg-broken-no-grace": {"files_count", "mapped_count", "all_back"},
}
"""Which counters lose an update depends on which task ran on which CPU."""
NO_LOCAL = "memcg-broken-no-local"
TRIES = 5
"""Boots of a wrong kernel. Its race may not occur in one of them by chance; it does occur in one of
five."""
LARGE = "numa_nodes = 2\npossible_cpus = 32"
PERCPU_KB = 50
"""What the counters of a dying cgroup hold on base, with 32 possible CPUs and two nodes: at least
this."""


STATS = 'workload = "memcg_stats"\nparams = {rounds = "2", storm_ms = "2000"}'
LOCAL = 'workload = "memcg_local"'


def remove_cgroups(
    folder: pytest.TempPathFactory,
    variants: list[str],
    machine: str,
    workload: str = STATS,
) -> list[lab.Boot]:
    """Run the workload on base and the variants, on the wall clock: two CPUs really run at once."""
    made = folder.mktemp("memcg")
    paths = [lab.on_top(made, SERIES, name) if "broken" in name else name for name in variants]
    return lab.run(
        made,
        f'name = "memcg"\nquestion = "Is memory.stat right?"\nsource = "debian:6.12"\n'
        f"variants = {paths!r}\n"
        f"[[workloads]]\n{workload}\n"
        f"[machine]\n{machine}\n"
        '[design]\nclock = "wall"\nboots = 1\nwarmup = 0\nrepetitions = 1\n',
        guests_fail=True,
    )


@pytest.fixture(scope="module")
def boots(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Boot]:
    """One boot of every kernel, on a machine with two nodes and possible CPUs that are never
    online."""
    return remove_cgroups(tmp_path_factory, [SERIES, str(lab.BROKEN / OTHER), *CAUGHT_BY], LARGE)


@pytest.fixture(scope="module")
def small_boots(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Boot]:
    """The same on a machine with one node, on which every possible CPU is online."""
    return remove_cgroups(tmp_path_factory, [SERIES], "possible_cpus = 2")


def assert_all_hold(boots: list[lab.Boot], kernel: str) -> None:
    (boot,) = (boot for boot in boots if boot.kernel == kernel)
    assert boot.outcome == "ok", boot.detail
    assert lab.checks(boots)[kernel] == {
        name: [True] for name in load_workload("memcg_stats").invariants
    }


@pytest.mark.parametrize("kernel", RIGHT)
def test_nothing_that_a_removed_cgroup_counts_is_lost(boots: list[lab.Boot], kernel: str) -> None:
    assert_all_hold(boots, kernel)


@pytest.mark.parametrize("kernel", ("base", SERIES))
def test_nothing_is_lost_on_a_small_machine(small_boots: list[lab.Boot], kernel: str) -> None:
    assert_all_hold(small_boots, kernel)


@pytest.mark.parametrize("kernel", CAUGHT_BY)
def test_a_series_that_is_wrong_is_caught(
    boots: list[lab.Boot], tmp_path_factory: pytest.TempPathFactory, kernel: str
) -> None:
    tries = 1
    while not lab.failed(lab.checks(boots), kernel) & CAUGHT_BY[kernel]:
        assert tries < TRIES, lab.checks(boots)[kernel]
        boots = remove_cgroups(tmp_path_factory, [kernel], LARGE)
        tries += 1


def test_the_counters_of_removed_cgroups_are_released(boots: list[lab.Boot]) -> None:
    """If they were not, the tests above would not test the release."""
    held_kb = {boot.kernel: boot.trials[0].samples["dying_percpu_kb"] for boot in boots}
    assert min(held_kb["base"]) >= PERCPU_KB
    assert max(held_kb[SERIES]) <= 1
    assert max(held_kb[OTHER]) <= 1


@pytest.fixture(scope="module")
def local_boots(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Boot]:
    """Version 1, whose local counters do not include the cgroups below."""
    variants = [SERIES, str(lab.BROKEN / OTHER), NO_LOCAL]
    return remove_cgroups(tmp_path_factory, variants, "possible_cpus = 2", LOCAL)


@pytest.mark.parametrize("kernel", ("base", SERIES, OTHER))
def test_local_counters_of_the_parent_are_kept(local_boots: list[lab.Boot], kernel: str) -> None:
    (boot,) = (boot for boot in local_boots if boot.kernel == kernel)
    assert boot.outcome == "ok", boot.detail
    assert lab.checks(local_boots)[kernel] == {
        name: [True] for name in load_workload("memcg_local").invariants
    }


def test_local_counters_that_stay_with_the_removed_cgroup_are_caught(
    local_boots: list[lab.Boot],
) -> None:
    assert lab.failed(lab.checks(local_boots), NO_LOCAL) == {"local_kept", "events_exact"}
