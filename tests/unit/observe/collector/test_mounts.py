"""Mounts of each mount namespace."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from kteardown_observe.collector.files import Malformed, Unreadable, Visit
from kteardown_observe.collector.mounts import parse_mount, read_mounts
from kteardown_observe.collector.tally import CountTable
from unit.observe.fake_host import TEXTS, host_of, only_malformed, write

MOUNTINFO = rb"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:20 / /tmp rw shared:5 master:1 - tmpfs tmpfs rw
24 23 0:21 / /tmp rw shared:5 - tmpfs tmpfs rw
25 22 0:22 / /a\040b\033[2J ro,relatime master:7 propagate_from:2 - overlay overlay rw
26 22 0:23 / /plain rw - ext4 /dev/vda rw
27 22 0:4 net:[4026532281] /run/netns/x rw shared:9 - nsfs nsfs rw
"""


@given(TEXTS)
def test_any_line(line: bytes) -> None:
    only_malformed(parse_mount, line)
    only_malformed(parse_mount, b"22 1 254:0 / / rw " + line + b" - " + line)


def test_a_line_without_a_file_system() -> None:
    with pytest.raises(Malformed):
        parse_mount(b"22 1 254:0 / / rw shared:1")


def test_two_namespaces(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    write(tmp_path / "proc", {"5/mountinfo": MOUNTINFO, "5/comm": b"a\n"})
    second = b"30 1 254:0 / / rw master:1 - ext4 /dev/vda rw\n"
    write(tmp_path / "proc", {"7/mountinfo": second, "7/comm": b"b\n"})
    host.mount_namespaces = {"mnt:[1]": 5, "mnt:[2]": 7, "mnt:[3]": 9}
    read_mounts(host, counts)
    numbers = {name: count["number"] for name, count in counts.counts.items()}
    assert numbers == {
        "mounts": 7,
        "mount_peers": 4,
        "mount_slaves": 3,
        "mounts_stacked": 1,
        "overlay_mounts": 1,
        "tmpfs_mounts": 2,
        "propagated_mounts": 1,
        "mounted_network_namespaces": 1,
        "network_namespaces": 1,
    }
    largest = counts.counts["propagated_mounts"]["largest"]
    assert largest == [{"name": "a[5]", "number": 1}], "the other has a slave of the group 1"
    assert counts.counts["mounts"]["largest"][0] == {"name": "a[5]", "number": 6}
    assert counts.counts["mount_peers"]["largest"][0] == {"name": "group 5", "number": 2}
    assert counts.counts["mount_slaves"]["largest"][0] == {"name": "group 1", "number": 2}
    assert counts.counts["mounts_stacked"]["largest"] == [{"name": "/tmp", "number": 1}]
    assert counts.counts["mounts"]["complete"], "process 9 has exited"


def test_a_file_system_counts_once_however_often_it_is_mounted(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    copies = b"".join(b"%d 1 0:44 / /mnt/%d rw - overlay overlay rw\n" % (n, n) for n in range(9))
    write(
        tmp_path / "proc", {"self/mountinfo": copies + b"90 1 0:45 / /x rw - overlay overlay rw\n"}
    )
    read_mounts(host, counts)
    assert counts.counts["mounts"]["number"] == 10
    assert counts.counts["overlay_mounts"]["number"] == 2


def test_without_namespaces_those_of_this_process(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    write(tmp_path / "proc", {"self/mountinfo": MOUNTINFO})
    read_mounts(host, counts)
    assert counts.counts["mounts"]["largest"] == [{"name": "this process", "number": 6}]


def test_mounts_are_not_complete_if_a_namespace_may_not_be_seen(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    write(tmp_path / "proc", {"self/mountinfo": MOUNTINFO})
    host.namespaces_visit = visit = Visit(host, [5], 1)
    for _ in visit:
        visit.fail(Unreadable("permission", "EACCES on /proc/5/ns/mnt"))
    read_mounts(host, counts)
    assert counts.counts["mounts"]["number"] == 6
    assert not counts.counts["mounts"]["complete"]
    assert not counts.counts["mount_peers"]["complete"]
    assert [entry["reason"] for entry in counts.missing] == ["permission"]
