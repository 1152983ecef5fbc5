"""How many cgroups there are, from the files of the top folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from kteardown_observe.collector.cgroup_totals import (
    find_hierarchies,
    parse_cgroup_stat,
    parse_controllers,
    read_cgroup_totals,
    versions_of,
)
from kteardown_observe.collector.files import Unreadable
from kteardown_observe.collector.tally import CountTable
from unit.observe.fake_host import TEXTS, host_of, only_malformed, write

OLD_STAT = b"nr_descendants 130\nnr_dying_descendants 17\n"
NEW_STAT = OLD_STAT + b"nr_subsys_memory 100\nnr_dying_subsys_memory 15\n"
CGROUPS_V2 = b"#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t0\t148\t1\nmemory\t0\t148\t1\n"
CGROUPS_V1 = b"#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t1\t1\t1\nmemory\t4\t84\t1\n"


@given(TEXTS)
def test_any_text(text: bytes) -> None:
    only_malformed(parse_cgroup_stat, text)
    only_malformed(parse_controllers, text)


def read(
    folder: Path, files: dict[str, bytes], cgroups: bytes
) -> tuple[dict[str, int], dict[str, Any]]:
    host, counts = host_of(folder), CountTable()
    write(folder / "sys/fs/cgroup", files)
    if cgroups:
        write(folder / "proc", {"cgroups": cgroups})
    read_cgroup_totals(host, counts)
    return {name: count["number"] for name, count in counts.counts.items()}, counts.counts


V2 = {"cgroup.controllers": b"cpu memory\n", "cgroup.stat": NEW_STAT}


def test_a_new_kernel_counts_dying_memory_cgroups(tmp_path: Path) -> None:
    numbers, counts = read(tmp_path, V2, b"#subsys_name\n")
    assert numbers == {
        "cgroups": 131,
        "dying_cgroups": 17,
        "memory_cgroups": 100,
        "dying_memory_cgroups": 15,
    }
    assert all(count["complete"] and "how" not in count for count in counts.values())


def test_an_older_kernel_counts_dying_cgroups_of_any_kind(tmp_path: Path) -> None:
    numbers, counts = read(tmp_path, {**V2, "cgroup.stat": OLD_STAT}, CGROUPS_V2)
    assert numbers["dying_memory_cgroups"] == 17 and numbers["memory_cgroups"] == 148
    assert "any kind" in counts["dying_memory_cgroups"]["how"]


@pytest.mark.parametrize(("stat", "number"), [(NEW_STAT, 100), (OLD_STAT, 131)])
def test_removed_cgroups_have_no_id(tmp_path: Path, stat: bytes, number: int) -> None:
    host = host_of(tmp_path)
    write(tmp_path / "sys/fs/cgroup", {**V2, "cgroup.stat": stat})
    write(tmp_path / "proc", {"cgroups": CGROUPS_V2})
    read_cgroup_totals(host, CountTable())
    assert host.limits["memory_cgroup_ids"]["number"] == number
    assert host.limits["memory_cgroup_ids"]["complete"]


def test_a_container_sees_a_part(tmp_path: Path) -> None:
    _, counts = read(tmp_path, {**V2, "cgroup.events": b"populated 1\n"}, b"#subsys_name\n")
    assert not counts["cgroups"]["complete"] and "container" in counts["cgroups"]["how"]


def test_memory_in_version_1_beside_version_2(tmp_path: Path) -> None:
    files = {
        "memory/cgroup.procs": b"1\n",
        "cpu,cpuacct/cgroup.procs": b"1\n",
        "unified/cgroup.controllers": b"",
        "unified/cgroup.stat": OLD_STAT,
    }
    numbers, _ = read(tmp_path, files, CGROUPS_V1)
    assert numbers == {"cgroups": 131, "dying_cgroups": 17, "memory_cgroups": 84}
    host = host_of(tmp_path)
    (tmp_path / "sys/fs/cgroup/cpu").symlink_to("cpu,cpuacct")
    hierarchies = find_hierarchies(host)
    assert versions_of(hierarchies) == "v1 and v2"
    assert [hierarchy.controllers for hierarchy in hierarchies] == [
        ["cpu", "cpuacct"],
        ["memory"],
        [],
    ]


def test_no_cgroups(tmp_path: Path) -> None:
    with pytest.raises(Unreadable):
        find_hierarchies(host_of(tmp_path))
    assert versions_of([]) == "none"
