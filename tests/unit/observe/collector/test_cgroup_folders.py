"""Quotas, throttling and frozen cgroups, from folders that look like cgroups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given

from kteardown_observe.collector import cgroup_folders
from kteardown_observe.collector.cgroup_folders import (
    has_quota,
    is_frozen,
    list_folders,
    read_cgroup_folders,
)
from kteardown_observe.collector.files import Unreadable
from kteardown_observe.collector.tally import CountTable
from unit.observe.fake_host import TEXTS, host_of, only_malformed, write

V2 = {
    "cgroup.controllers": b"cpu memory pids\n",
    "pod/cpu.max": b"200000 100000\n",
    "pod/cpu.stat": b"usage_usec 5\nnr_periods 9\nnr_throttled 7\n",
    "pod/pids.current": b"30\n",
    "pod/cgroup.events": b"populated 1\nfrozen 0\n",
    "pod/inner/cpu.max": b"50000 100000\n",
    "pod/inner/cpu.stat": b"nr_throttled 2\n",
    "pod/inner/pids.current": b"10\n",
    "pod/inner/cgroup.events": b"populated 1\nfrozen 1\n",
    "free/cpu.max": b"max 100000\n",
    "free/cgroup.events": b"populated 1\nfrozen 0\n",
    "plain/cpu.max": b"100000 100000\n",
    "plain/cgroup.threads": b"1\n2\n3\n",
    "plain/cgroup.events": b"populated 1\nfrozen 1\n",
}
V1 = {
    "cpu,cpuacct/cgroup.procs": b"1\n",
    "cpu,cpuacct/cpu.cfs_quota_us": b"-1\n",
    "cpu,cpuacct/job/cpu.cfs_quota_us": b"50000\n",
    "cpu,cpuacct/job/cpu.stat": b"nr_periods 4\nnr_throttled 3\nthrottled_time 99\n",
    "cpu,cpuacct/job/tasks": b"1\n2\n",
    "pids/cgroup.procs": b"1\n",
    "pids/job/pids.current": b"8\n",
    "freezer/cgroup.procs": b"1\n",
    "freezer/job/freezer.state": b"FREEZING\n",
    "freezer/other/freezer.state": b"THAWED\n",
    "memory/cgroup.procs": b"1\n",
    "memory/release_agent": b"\n",
    "memory/job/tasks": b"\n",
}
CGROUPS_V1 = b"#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t4\t84\t1\n"


@given(TEXTS)
def test_any_text(text: bytes) -> None:
    only_malformed(has_quota, text)
    only_malformed(is_frozen, text)


def read(folder: Path, files: dict[str, bytes]) -> CountTable:
    host, counts = host_of(folder), CountTable()
    write(folder / "sys/fs/cgroup", files)
    write(folder / "proc", {"cgroups": CGROUPS_V1})
    read_cgroup_folders(host, counts)
    return counts


def test_the_cgroup_that_is_nearest_to_its_pids_max(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    files = {
        "cgroup.controllers": b"pids\n",
        "a/pids.max": b"max\n",
        "a/pids.current": b"5000\n",
        "a/b/pids.max": b"100\n",
        "a/b/pids.current": b"99\n",
        "c/pids.max": b"2000\n",
        "c/pids.current": b"1000\n",
    }
    write(tmp_path / "sys/fs/cgroup", files)
    read_cgroup_folders(host, counts)
    fullest = host.limits["pids_max"]
    assert (fullest["number"], fullest["bound"], fullest["owner"]) == (99, 100, "/a/b")
    assert fullest["complete"]


def test_memory_cgroups_of_version_1_have_ids(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    write(tmp_path / "sys/fs/cgroup", V1)
    write(tmp_path / "proc", {"cgroups": CGROUPS_V1})
    read_cgroup_folders(host, counts)
    limit = host.limits["memory_cgroup_ids"]
    assert limit["number"] == 2, "82 of the 84 were removed"
    assert limit["complete"]


def test_version_2(tmp_path: Path) -> None:
    counts = read(tmp_path, V2).counts
    assert counts["cgroups_with_quota"]["number"] == 3 and counts["cgroups_with_quota"]["complete"]
    assert counts["quota_tasks"]["number"] == 33, "the tasks of inner are tasks of pod, too"
    assert counts["quota_tasks"]["largest"] == [
        {"name": "/pod", "number": 30},
        {"name": "/pod/inner", "number": 10},
        {"name": "/plain", "number": 3},
    ]
    assert counts["throttled_periods"]["number"] == 9
    assert counts["frozen_cgroups"]["number"] == 2
    assert counts["frozen_cgroups"]["seen"] == counts["frozen_cgroups"]["of"] == 5


def test_version_1(tmp_path: Path) -> None:
    counts = read(tmp_path, V1)
    assert counts.counts["cgroups_with_quota"]["number"] == 1
    assert counts.counts["quota_tasks"]["largest"] == [{"name": "/job", "number": 8}]
    assert counts.counts["throttled_periods"]["number"] == 3
    assert counts.counts["frozen_cgroups"]["largest"] == [{"name": "/job", "number": 1}]
    assert counts.counts["cgroups"]["number"] == 9
    dying = counts.counts["dying_memory_cgroups"]
    assert dying["number"] == 82 and "minus the folders" in dying["how"]


def test_a_part_of_version_1_tells_nothing_of_dying_cgroups(tmp_path: Path) -> None:
    files = {name: text for name, text in V1.items() if not name.endswith("release_agent")}
    counts = read(tmp_path, files)
    assert "dying_memory_cgroups" not in counts.counts
    assert any("dying_memory_cgroups" in entry["counts"] for entry in counts.missing)


def test_no_quota_anywhere_is_none(tmp_path: Path) -> None:
    counts = read(tmp_path, {"cgroup.controllers": b"", "a/cgroup.events": b"frozen 0\n"})
    assert counts.counts["cgroups_with_quota"]["number"] == 0
    assert counts.counts["cgroups_with_quota"]["complete"] and not counts.missing


def test_hostile_names_and_files(tmp_path: Path) -> None:
    folder = tmp_path / "sys/fs/cgroup"
    write(folder, {"cgroup.controllers": b""})
    name = os.fsencode(folder) + b"/a\n\xff\x1b[2J"
    os.mkdir(name)
    with open(name + b"/cpu.max", "wb") as file:
        file.write(b"1000 100000\n")
    os.mkfifo(name + b"/cgroup.events")
    os.symlink("/", folder / "link")
    (folder / "damaged").mkdir()
    (folder / "damaged" / "cpu.max").write_bytes(b"\xff\n")
    counts = read(tmp_path, {})
    assert counts.counts["throttled_periods"]["number"] == 0
    assert counts.counts["cgroups_with_quota"]["number"] == 1
    assert any(entry["reason"] == "error" for entry in counts.missing), "the pipe"
    assert all(entry["detail"].isprintable() for entry in counts.missing)


def test_twenty_thousand_cgroups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = host_of(tmp_path)
    top = tmp_path / "sys/fs/cgroup"
    for group in range(20):
        for number in range(1000):
            (top / f"{group}/{number}").mkdir(parents=True)
    folders, whole = list_folders(host, str(top))
    assert len(set(folders)) == 20_021 and whole
    monkeypatch.setattr(cgroup_folders, "FOLDERS_MOST", 500)
    folders, whole = list_folders(host, str(top))
    assert len(folders) == 500 and not whole
    host.end_s = 0.0
    folders, whole = list_folders(host, str(top))
    assert len(folders) < 500 and not whole


def test_no_cgroups(tmp_path: Path) -> None:
    with pytest.raises(Unreadable):
        read_cgroup_folders(host_of(tmp_path), CountTable())
