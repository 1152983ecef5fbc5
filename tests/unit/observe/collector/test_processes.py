"""Processes from /proc/PID/stat."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from kteardown_observe.collector.files import Host, Malformed
from kteardown_observe.collector.processes import (
    KERNEL_THREAD,
    Processes,
    parse_stat,
    read_processes,
)
from kteardown_observe.collector.tally import CountTable
from unit.observe.fake_host import HOSTILE_COMM, TEXTS, host_of, only_malformed, process, stat

RECORDED = (
    b"27731 (tmux: server) S 1 27731 27731 0 -1 4194560 1834 11 0 0 12 7 0 0 20 0 1 0 1409 8237056"
    b" 996 18446744073709551615 1 1 0 0 0 0 0 4096 134300163 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
)


def test_a_recorded_process() -> None:
    found = parse_stat(RECORDED)
    assert found.comm == b"tmux: server" and found.state == "S"
    assert (found.parent, found.group, found.session) == (1, 27731, 27731)
    assert found.threads == 1 and not found.kernel


def test_a_name_with_brackets_and_line_ends() -> None:
    found = parse_stat(stat(5, HOSTILE_COMM, "T", 7, threads=3))
    assert found.comm == HOSTILE_COMM
    assert (found.state, found.parent, found.threads) == ("T", 7, 3)


@given(TEXTS)
def test_any_text(text: bytes) -> None:
    only_malformed(parse_stat, text)
    only_malformed(parse_stat, b"1 (" + text + b") S " + text)


@pytest.mark.parametrize(
    "text", [b"", b"1 (sh) S 1", b"1 sh S 1 1", RECORDED.replace(b" 1 ", b" x ")]
)
def test_a_damaged_text(text: bytes) -> None:
    with pytest.raises(Malformed):
        parse_stat(text)


def test_the_zombie_of_a_first_thread_is_a_process_that_lives() -> None:
    sums = Processes()
    assert sums.add(5, parse_stat(stat(5, state="Z", threads=4)))
    assert not sums.add(6, parse_stat(stat(6, state="Z")))
    assert sums.tallies["zombies"].number == 1
    assert sums.tallies["threads"].number == 4


def fake_machine(proc: Path) -> None:
    process(proc, 1, stat(1, b"init", parent=0))
    process(proc, 2, stat(2, b"kthreadd", parent=0, group=0, session=0, flags=KERNEL_THREAD))
    process(proc, 10, stat(10, b"shell", group=10, session=10, threads=3))
    process(proc, 11, stat(11, b"work", "D", parent=10, group=11, session=10))
    process(proc, 12, stat(12, b"stuck", "T", parent=10, group=11, session=10))
    for pid in range(20, 23):
        process(proc, pid, stat(pid, b"dead", "Z", parent=10, group=11, session=10))
    (proc / "sys").mkdir()
    (proc / "self").symlink_to("1")


def test_counts_of_a_machine(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    fake_machine(tmp_path / "proc")
    read_processes(host, counts)
    numbers = {name: count["number"] for name, count in counts.counts.items()}
    assert numbers == {
        "processes": 4,
        "kernel_threads": 1,
        "threads": 6,
        "zombies": 3,
        "zombies_group": 3,
        "children": 4,
        "process_groups": 3,
        "sessions": 2,
        "stopped": 1,
        "uninterruptible": 1,
    }
    assert counts.counts["zombies"]["largest"] == [{"name": "shell[10]", "number": 3}]
    assert counts.counts["zombies_group"]["largest"] == [{"name": "shell[10]", "number": 3}]
    assert counts.counts["uninterruptible"]["largest"] == [{"name": "work", "number": 1}]
    assert counts.counts["sessions"]["largest"][0] == {"name": "shell[10]", "number": 6}
    assert counts.counts["processes"]["seen"] == counts.counts["processes"]["of"] == 8
    assert sorted(host.user_pids) == [1, 10, 11, 12] and not counts.missing


def test_without_time_the_counts_are_a_part(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    fake_machine(tmp_path / "proc")
    host.end_s = 0.0
    read_processes(host, counts)
    assert counts.counts["processes"] == {"number": 0, "complete": False, "seen": 0, "of": 8}
    assert {entry["reason"] for entry in counts.missing} == {"time"}
    assert len(host.user_pids) == 8, "later readings visit them"


def test_hidden_processes_are_said(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    process(tmp_path / "proc", 77, stat(77))
    read_processes(host, counts)
    assert counts.counts["processes"]["number"] == 1
    assert counts.missing[0]["reason"] == "permission" and "hidepid" in counts.missing[0]["detail"]


def test_this_machine() -> None:
    host, counts = Host(), CountTable()
    read_processes(host, counts)
    assert counts.counts["processes"]["number"] > 0 and len(host.user_pids) > 0
