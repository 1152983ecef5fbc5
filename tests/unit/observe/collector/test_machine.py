"""What machine it is."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given

from kteardown_observe.collector.files import Host
from kteardown_observe.collector.machine import (
    is_container,
    parse_config,
    parse_cpu_list,
    read_machine,
)
from kteardown_observe.collector.tally import CountTable
from unit.observe.fake_host import TEXTS, host_of, link, only_malformed, write

CONFIG = b"""\
CONFIG_MEMCG=y
# CONFIG_LRU_GEN is not set
CONFIG_HZ=250
CONFIG_NOT_OF_INTEREST=y
CONFIG_ZRAM=m
"""


@given(TEXTS)
def test_any_text(text: bytes) -> None:
    only_malformed(parse_cpu_list, text)
    parse_config(text)


@pytest.mark.parametrize(
    ("text", "number"), [(b"0-3,8\n", 5), (b"0\n", 1), (b"0-1023\n", 1024), (b"\n", 0)]
)
def test_lists_of_cpus(text: bytes, number: int) -> None:
    assert parse_cpu_list(text) == number


def test_a_configuration() -> None:
    expected = {"CONFIG_MEMCG": "y", "CONFIG_LRU_GEN": "n", "CONFIG_HZ": "250", "CONFIG_ZRAM": "m"}
    assert parse_config(CONFIG) == expected


def test_a_machine(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    write(
        tmp_path / "proc",
        {
            "sys/kernel/osrelease": b"6.12.117+deb12-amd64\n",
            "sys/fs/inotify/max_user_watches": b"8192\n",
            "sys/kernel/sem": b"32000\t1024000000\t500\t32000\n",
            "sys/net/ipv4/neigh/default/gc_thresh3": b"1024\n",
            "meminfo": b"MemTotal:       16000000 kB\n",
            "uptime": b"1000.25 900.00\n",
            "config.gz": gzip.compress(CONFIG),
        },
    )
    cpus = "devices/system/cpu"
    write(tmp_path / "sys", {f"{cpus}/possible": b"0-31\n", f"{cpus}/online": b"0-3\n"})
    write(tmp_path / "sys", {"devices/system/node/online": b"0-1\n"})
    write(tmp_path / "sys/fs/cgroup", {"cgroup.controllers": b""})
    machine = read_machine(host, counts)
    assert machine["release"] == "6.12.117+deb12-amd64" and machine["uptime_s"] == 1000.25
    assert (machine["possible_cpus"], machine["online_cpus"], machine["numa_nodes"]) == (32, 4, 2)
    assert machine["memory_kb"] == 16000000 and machine["cgroups"] == "v2"
    assert machine["config"]["CONFIG_HZ"] == "250"
    assert machine["sysctls"] == {
        "fs.inotify.max_user_watches": "8192",
        "kernel.sem": "32000 1024000000 500 32000",
        "net.ipv4.neigh.default.gc_thresh3": "1024",
    }
    assert machine["container"] is None and not counts.missing


def test_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    counts = CountTable()
    machine = read_machine(host_of(tmp_path), counts)
    assert machine["config"] is None and machine["sysctls"] == {} and machine["cgroups"] == "none"
    assert machine["numa_nodes"] is None
    assert counts.missing[0]["counts"] == ["cgroups"]


@pytest.mark.parametrize("content", [b"", b"no gzip", gzip.compress(b"\xff" * (3 << 20))[:-9]])
def test_a_damaged_configuration(tmp_path: Path, content: bytes) -> None:
    write(tmp_path / "proc", {"config.gz": content})
    assert not read_machine(host_of(tmp_path), CountTable())["config"]


def test_a_container_has_another_namespace(tmp_path: Path) -> None:
    host = host_of(tmp_path)
    link(tmp_path / "proc/self/ns", {"pid": "pid:[4026531836]", "user": "user:[4026531837]"})
    assert is_container(host) is False
    link(tmp_path / "proc/self/ns", {"cgroup": "cgroup:[4026532270]"})
    assert is_container(host) is True


def test_this_machine() -> None:
    machine = read_machine(Host(), CountTable())
    assert machine["online_cpus"] >= 1 and machine["memory_kb"] > 0 and machine["uptime_s"] > 0
