"""Timers and mappings of processes."""

from __future__ import annotations

import os
from pathlib import Path

from kteardown_observe.collector.files import Host
from kteardown_observe.collector.maps import read_mappings, read_timers
from kteardown_observe.collector.tally import CountTable
from unit.observe.fake_host import host_of, write

TIMERS = b"ID: 1\nsignal: 14/0\nnotify: signal/pid.5\nClockID: 0\n"


def test_timers(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    write(tmp_path / "proc", {"5/timers": TIMERS * 9, "5/comm": b"a\n", "6/timers": b""})
    host.user_pids.extend([5, 6])
    read_timers(host, counts)
    assert counts.counts["posix_timers"] == {
        "number": 9,
        "complete": True,
        "largest": [{"name": "a[5]", "number": 9}],
        "seen": 2,
        "of": 2,
    }


def test_a_kernel_without_this_file(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    write(tmp_path / "proc", {"5/comm": b"a\n"})
    host.user_pids.append(5)
    read_timers(host, counts)
    assert not counts.counts and counts.missing[0]["reason"] == "not there"


def test_mappings_of_the_processes_with_the_largest_page_tables(tmp_path: Path) -> None:
    host, counts = host_of(tmp_path), CountTable()
    write(tmp_path / "proc", {"5/maps": b"00400000-00401000 r-xp\n" * 7, "5/comm": b"a\n"})
    host.user_pids.extend([5, 6])
    host.page_tables = [(40, 5)]
    read_mappings(host, counts)
    assert counts.counts["vmas"]["number"] == 7 and not counts.counts["vmas"]["complete"]
    assert counts.missing[0]["reason"] == "time"


def test_this_process() -> None:
    host, counts = Host(), CountTable()
    host.user_pids.append(os.getpid())
    host.page_tables, host.page_tables_whole = [(1, os.getpid())], True
    read_mappings(host, counts)
    assert counts.counts["vmas"]["number"] > 10 and counts.counts["vmas"]["complete"]
