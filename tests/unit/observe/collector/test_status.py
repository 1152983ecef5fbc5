"""What /proc/PID/status tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from kteardown_observe.collector import status
from kteardown_observe.collector.files import Malformed
from kteardown_observe.collector.status import parse_status, read_status
from kteardown_observe.collector.tally import CountTable
from unit.observe import fake_host
from unit.observe.fake_host import TEXTS, host_of, only_malformed

RECORDED = b"""\
Name:\tcat\\nUid: 7
Umask:\t0022
State:\tR (running)
Tgid:\t27731
TracerPid:\t99
Uid:\t1000\t0\t0\t0
Groups:\t4 24 27
VmPeak:\t    3060 kB
VmPTE:\t      44 kB
VmSwap:\t     120 kB
Threads:\t1
SigQ:\t3/96364
"""


def test_a_recorded_status() -> None:
    found = parse_status(RECORDED)
    assert (found.uid, found.tracer, found.page_tables_kb) == (1000, 99, 44)
    assert (found.swap_kb, found.signals) == (120, 3)


def test_a_process_without_memory() -> None:
    assert parse_status(b"Name:\tx\nUid:\t0\t0\t0\t0\nSigQ:\t0/1\n").swap_kb == 0


@given(TEXTS)
def test_any_text(text: bytes) -> None:
    only_malformed(parse_status, text)
    only_malformed(parse_status, b"Uid:\t1\nVmSwap:" + text)


def test_a_text_without_a_user() -> None:
    with pytest.raises(Malformed):
        parse_status(b"Name:\tx\n")


def read(folder: Path, texts: dict[int, bytes]) -> CountTable:
    host, counts = host_of(folder), CountTable()
    for pid, text in texts.items():
        fake_host.process(folder / "proc", pid, fake_host.stat(pid), text)
        host.user_pids.append(pid)
    read_status(host, counts)
    assert host.page_tables_whole
    assert host.page_tables[0][1] == max(texts)
    return counts


def test_counts_by_process_and_by_user(tmp_path: Path) -> None:
    counts = read(
        tmp_path,
        {
            1: fake_host.status(0, VmSwap=10, VmPTE=1),
            5: fake_host.status(1000, SigQ=7, VmSwap=5, VmPTE=2),
            6: fake_host.status(1000, SigQ=7, TracerPid=5, VmPTE=3),
            7: fake_host.status(1001, SigQ=1, TracerPid=5, VmPTE=4),
        },
    ).counts
    assert counts["swapped_kb"]["number"] == 15
    assert counts["swapped_kb"]["largest"][0] == {"name": "sh[1]", "number": 10}
    assert counts["signals_queued"]["number"] == 8, "the number of a user counts once"
    assert counts["signals_queued"]["largest"][0] == {"name": "uid 1000", "number": 7}
    assert counts["tracees"]["largest"] == [{"name": "sh[5]", "number": 2}]
    assert counts["process_page_tables_kb"]["number"] == 10


def test_only_the_largest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "MAPPED_MOST", 2)
    host = host_of(tmp_path)
    for pid, size_kb in ((5, 10), (6, 30), (7, 20)):
        text = fake_host.status(VmPTE=size_kb)
        fake_host.process(tmp_path / "proc", pid, fake_host.stat(pid), text)
        host.user_pids.append(pid)
    read_status(host, CountTable())
    assert host.page_tables == [(30, 6), (20, 7)] and not host.page_tables_whole
