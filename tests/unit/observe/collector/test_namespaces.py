"""Namespaces in which processes are."""

from __future__ import annotations

from pathlib import Path

from kteardown_observe.collector.files import Visit
from kteardown_observe.collector.namespaces import (
    NAMESPACES,
    put_network_namespaces,
    read_namespaces,
)
from kteardown_observe.collector.tally import CountTable
from unit.observe.fake_host import host_of, link


def test_namespaces_and_a_process_of_each(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    for pid, mount, network in ((9, 1, 1), (5, 1, 2), (7, 2, 2)):
        links = {"mnt": f"mnt:[{mount}]", "net": f"net:[{network}]", "pid": "pid:[4026531836]"}
        link(tmp_path / f"proc/{pid}/ns", links)
        host.user_pids.append(pid)
    (tmp_path / "proc/8").mkdir()
    host.user_pids.append(8)
    read_namespaces(host, counts)
    numbers = {name: count["number"] for name, count in counts.counts.items()}
    assert numbers == {"mount_namespaces": 2, "network_namespaces": 2, "pid_namespaces": 1}
    assert counts.counts["mount_namespaces"] == {
        "number": 2,
        "complete": True,
        "seen": 4,
        "of": 4,
    }
    assert host.mount_namespaces == {"mnt:[1]": 5, "mnt:[2]": 7}
    assert not counts.missing, "process 8 has exited"


def test_a_network_namespace_counts_once_whatever_keeps_it(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    link(tmp_path / "proc/5/ns", {"mnt": "mnt:[1]", "net": "net:[1]"})
    host.user_pids.append(5)
    read_namespaces(host, counts)
    mounts = Visit(host, [5], 1)
    for _ in mounts:
        mounts.read_ok += 1
    put_network_namespaces(host, counts, {"net:[1]", "net:[2]"}, mounts)
    assert counts.counts["network_namespaces"]["number"] == 2
    assert counts.counts["network_namespaces"]["complete"]

    descriptors = Visit(host, [5, 6], 2, whole=False)
    put_network_namespaces(host, counts, {"net:[2]", "net:[3]"}, descriptors)
    assert counts.counts["network_namespaces"] == {
        "number": 3,
        "complete": False,
        "seen": 0,
        "of": 2,
    }


def test_no_process(tmp_path: Path) -> None:
    counts = CountTable()
    read_namespaces(host_of(tmp_path), counts)
    assert not counts.counts and set(NAMESPACES.values()) >= set(counts.counts)
