"""Namespaces in which processes are."""

from __future__ import annotations

from pathlib import Path

from kteardown_observe.collector.namespaces import NAMESPACES, read_namespaces
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


def test_no_process(tmp_path: Path) -> None:
    counts = CountTable()
    read_namespaces(host_of(tmp_path), counts)
    assert not counts.counts and set(NAMESPACES.values()) >= set(counts.counts)
