"""How many there are of what the kernel limits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hypothesis import given

from kteardown_observe.collector.files import Host, Unreadable, Visit
from kteardown_observe.collector.limits import (
    end_limit,
    parse_quota,
    parse_tasks,
    put_limit,
    read_limits,
)
from kteardown_observe.collector.tally import CountTable
from unit.observe.fake_host import TEXTS, host_of, only_malformed, write

FILES = {
    "loadavg": b"0.50 0.40 0.30 3/30000 41234\n",
    "key-users": b"    0:    30 29/29 23/1000000 400/25000000\n 1000:     2 2/2 190/200 9/20000\n",
    "sys/kernel/pid_max": b"32768\n",
    "sys/kernel/threads-max": b"120000\n",
    "sys/fs/file-nr": b"900\t0\t9223372036854775807\n",
    "sys/fs/inotify/max_user_instances": b"128\n",
    "sys/fs/inotify/max_user_watches": b"65536\n",
    "sys/net/netfilter/nf_conntrack_count": b"262000\n",
    "sys/net/netfilter/nf_conntrack_max": b"262144\n",
    "5/stat": b"",
    "6/stat": b"",
}


@given(TEXTS)
def test_any_text(text: bytes) -> None:
    only_malformed(parse_quota, text)
    only_malformed(parse_quota, b"0: 1 2/3 " + text)
    only_malformed(parse_tasks, text)


def whole_visit(host: Host) -> Visit:
    """Return a visit of two processes that were read."""
    visit = Visit(host, [5, 6], 2)
    for _ in visit:
        visit.read_ok += 1
    return visit


def read(folder: Path, files: dict[str, bytes]) -> tuple[dict[str, dict[str, Any]], CountTable]:
    """Return the limits of a machine on which two processes watch files."""
    host, counts = host_of(folder), CountTable()
    write(folder / "proc", files)
    host.kernel_threads = 100
    host.descriptors_visit = whole_visit(host)
    host.inotify = {5: (100, 7), 6: (20, 40), 99: (1000, 1000)}
    return {limit.pop("name"): limit for limit in read_limits(host, counts)}, counts


def test_limits_of_a_machine(tmp_path: Path) -> None:
    limits, counts = read(tmp_path, FILES)
    uid = f"uid {os.getuid()}"
    assert not counts.missing
    assert {name: (limit["number"], limit["bound"]) for name, limit in limits.items()} == {
        "pid_max": (30000, 32768),
        "threads_max": (30000, 120000),
        "file_max": (900, 9223372036854775807),
        "max_user_instances": (120, 128),
        "max_user_watches": (47, 65536),
        "maxkeys": (190, 200),
        "maxbytes": (9, 20000),
        "nf_conntrack_max": (262000, 262144),
    }
    assert limits["maxkeys"]["owner"] == "uid 1000", "the fullest user, and not the largest"
    assert limits["max_user_instances"]["owner"] == uid, "process 99 has exited"
    assert limits["max_user_instances"]["complete"]


def test_what_a_machine_does_not_have_is_not_missing(tmp_path: Path) -> None:
    without = {name: text for name, text in FILES.items() if "conntrack" not in name}
    limits, counts = read(tmp_path, without)
    assert "nf_conntrack_max" not in limits and not counts.missing


def test_a_damaged_file_is_no_loss_of_the_others(tmp_path: Path) -> None:
    limits, counts = read(tmp_path, {**FILES, "loadavg": b"x"})
    assert "pid_max" not in limits and "maxkeys" in limits
    assert counts.missing[0]["counts"] == ["pid_max", "threads_max"]


def test_a_container_has_no_number_of_all_tasks(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    write(tmp_path / "proc", FILES)
    host.descriptors_visit = whole_visit(host)
    names = {limit["name"] for limit in read_limits(host, counts)}
    assert "threads_max" in names and "pid_max" not in names
    assert counts.missing[0]["counts"] == ["pid_max"]


def test_what_others_have_open_is_not_known_without_root(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    write(tmp_path / "proc", FILES)
    host.kernel_threads = 1
    host.descriptors_visit = Visit(host, [5], 1)
    for _ in host.descriptors_visit:
        host.descriptors_visit.fail(Unreadable("permission", "EACCES on /proc/5/fd"))
    limits = {limit["name"]: limit for limit in read_limits(host, counts)}
    assert not limits["max_user_instances"]["complete"]
    assert counts.missing[0]["reason"] == "permission"


def test_the_fullest_owner_counts(tmp_path: Path) -> None:
    host = host_of(tmp_path)
    for owner, number, bound in (("a", 50, 100), ("b", 9, 10), ("c", 500, 1000), ("d", 5, 0)):
        put_limit(host, "pids_max", number, bound, owner)
    end_limit(host, "pids_max", None)
    assert host.limits["pids_max"] == {"number": 9, "bound": 10, "owner": "b", "complete": True}
