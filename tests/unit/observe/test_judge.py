"""Counts become problems, with what they cost."""

from __future__ import annotations

from typing import Any

import pytest

from kteardown_observe.judge import judge
from unit.observe.documents import counted, counts


def test_a_clean_machine_has_none() -> None:
    found = judge(counts(zombies=counted(3, ("bash[1]", 3)), flocks=counted(0)))
    assert found.present == ()
    assert {problem.name for problem in found.absent} >= {"zombies_suspend", "flocks"}


def test_a_node_with_500_pods_is_no_problem() -> None:
    pods, containers = 500, 1500
    bridge, first = ("cni0", pods), "systemd[1]"
    node: dict[str, Any] = {
        "network_namespaces": counted(pods + 2),
        "veth_pairs": counted(pods),
        "devices": counted(pods + 6),
        "bridge_ports": counted(pods, bridge),
        "mount_namespaces": counted(containers + 30),
        "ipc_namespaces": counted(pods + 2),
        "pid_namespaces": counted(containers + 2),
        "user_namespaces": counted(pods),
        "overlay_mounts": counted(containers),
        # Of each pod its secrets, its token and /dev/shm; of each container /dev and what hides
        # files of /proc and /sys.
        "tmpfs_mounts": counted(3 * pods + 5 * containers),
        "mounts": counted(60 * containers, (first, 9 * pods)),
        "propagated_mounts": counted(9 * pods, (first, 9 * pods)),
        "memory_cgroups": counted(2 * containers + 300),
        "processes": counted(10 * pods),
        "threads": counted(100 * pods, ("etcd[900]", 600)),
        "children": counted(10 * pods, (first, 2 * pods)),
        "rules4": counted(20),
        "addresses4": counted(2000, ("kube-ipvs0, a subnet of /32", 1)),
        "routes4": counted(3 * pods),
        "unix_sockets": counted(20 * pods),
        "shm_segments": counted(0),
    }
    assert judge(counts(**node)).present == ()


def test_one_teardown_of_containers_is_one_problem_with_parts() -> None:
    bridge = counted(3000, ("cni0", 3000))
    found = judge(
        counts(
            network_namespaces=counted(3000),
            veth_pairs=counted(3000),
            bridge_ports=bridge,
            flocks=counted(2000, ("fd:00:1", 2000)),
        )
    )
    groups = [
        (present.problem.name, sorted(part.problem.name for part in parts))
        for present, parts in found.teardowns
    ]
    assert groups == [("network_namespaces", ["bridge_ports", "veths"]), ("flocks", [])]
    alone = judge(counts(network_namespaces=counted(3), bridge_ports=bridge)).teardowns
    assert [present.problem.name for present, _ in alone] == ["bridge_ports"]


def test_zombies_cost_a_suspend_68_instructions_each() -> None:
    found = judge(counts(zombies=counted(4213, ("bash[123]", 4000))))
    (zombies,) = found.present
    assert zombies.problem.name == "zombies_suspend"
    assert zombies.cost is not None
    assert zombies.cost.value == pytest.approx(4213 * 68, rel=0.01)
    skip = {better.name: better for better in zombies.improvements}["freezer-skip-exited"]
    assert skip.saved == pytest.approx(0.69, abs=0.01)


def test_the_worst_comes_first() -> None:
    found = judge(
        counts(
            sleep_states=counted(2), zombies=counted(1000), flocks=counted(5000, ("fd:00:12", 5000))
        )
    )
    assert [present.problem.name for present in found.present] == ["flocks", "zombies_suspend"]


def test_what_is_not_counted_is_unknown_and_not_absent() -> None:
    found = judge(counts(zombies=counted(3, complete=False)))
    reasons = {problem.name: reason for problem, reason in found.unknown}
    assert "zombies_suspend" in reasons
    assert "flocks" in reasons
    assert found.absent == ()


def test_a_part_that_was_counted_is_a_lower_bound() -> None:
    (zombies,) = judge(counts(zombies=counted(9000, complete=False))).present
    assert not zombies.is_complete
    assert zombies.at_least


def test_a_law_of_zram_needs_zram() -> None:
    swapped = counted(4 << 20, ("java[9]", 4 << 20))
    assert not judge(counts(swapped_kb=swapped)).present
    found = judge(counts(swapped_kb=swapped, zram_kb=counted(1 << 20)))
    assert [present.problem.name for present in found.present] == ["swapped"]


def test_beyond_what_was_measured_is_said() -> None:
    (flocks,) = judge(counts(flocks=counted(11520, ("fd:00:12", 11520)))).present
    assert flocks.beyond == pytest.approx(10)
