"""File locks from /proc/locks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from kteardown_observe.collector import locks
from kteardown_observe.collector.locks import parse_lock, read_locks
from kteardown_observe.collector.tally import CountTable
from unit.observe.fake_host import TEXTS, host_of, only_malformed, write

LOCKS = b"""\
1: POSIX  ADVISORY  WRITE 3568 fd:00:2531452 0 EOF
2: FLOCK  ADVISORY  WRITE 3517 fd:00:2531448 0 EOF
2: -> FLOCK  ADVISORY  WRITE 3518 fd:00:2531448 0 EOF
2: -> FLOCK  ADVISORY  WRITE 3519 fd:00:2531448 0 EOF
3: OFDLCK ADVISORY  READ  -1 fd:00:2531460 0 EOF
4: LEASE  ACTIVE    READ 3568 fd:00:2531470 0 EOF
5: DELEG  ACTIVE    READ 3568 <none>:0 0 EOF
6: FLOCK  ADVISORY  READ 3517 fd:00:2531448 0 EOF
"""


@given(TEXTS)
def test_any_line(line: bytes) -> None:
    only_malformed(parse_lock, line)
    only_malformed(parse_lock, b"1: -> FLOCK " + line)


def read(tmp_path: Path, text: bytes) -> CountTable:
    host, counts = host_of(tmp_path), CountTable()
    write(tmp_path / "proc", {"locks": text})
    read_locks(host, counts)
    return counts


def test_each_kind_and_who_waits(tmp_path: Path) -> None:
    counts = read(tmp_path, LOCKS)
    numbers = {name: count["number"] for name, count in counts.counts.items()}
    assert numbers == {
        "flocks": 2,
        "posix_locks": 1,
        "ofd_locks": 1,
        "leases": 2,
        "lock_waiters": 2,
    }
    assert counts.counts["flocks"]["largest"] == [
        {"name": "device fd:00, inode 2531448", "number": 2}
    ]
    assert counts.counts["flocks"]["complete"] and not counts.missing


def test_a_line_of_a_later_kernel_is_said(tmp_path: Path) -> None:
    counts = read(tmp_path, LOCKS + b"7: NEWLCK ADVISORY WRITE 1 fd:00:1 0 EOF\n")
    assert counts.counts["flocks"]["number"] == 2 and not counts.counts["flocks"]["complete"]
    assert counts.missing[0]["reason"] == "error"


def test_only_a_part_of_many_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "LOCKS_MOST", 100_000)
    counts = read(tmp_path, LOCKS * 1000)
    assert 0 < counts.counts["flocks"]["number"] < 2000
    assert not counts.counts["flocks"]["complete"] and counts.missing[0]["reason"] == "time"
