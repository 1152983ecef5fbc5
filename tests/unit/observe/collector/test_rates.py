"""What happens in some seconds, on this host and in written trees."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kteardown_observe.collector.files import Host
from kteardown_observe.collector.rates import SampledWaits, Throttled, parse_stack, read_rates
from kteardown_observe.collector.tally import CountTable

STACK = b"""\
[<0>] synchronize_rcu_normal+0x12a/0x1a0
[<0>] namespace_unlock+0x1f3/0x210
[<ffffffff8112>] __x64_sys_umount+0x72/0xa0
"""


def test_a_stack_has_its_functions() -> None:
    names = ("synchronize_rcu_normal", "namespace_unlock", "__x64_sys_umount")
    assert parse_stack(STACK) == names


@given(st.binary(max_size=200))
def test_any_bytes_are_a_stack(text: bytes) -> None:
    assert all(
        name.isidentifier() or "." in name or name[0].isdigit() for name in parse_stack(text)
    )


def task(folder: Path, state: str, threads: int = 1) -> None:
    """Write the files of a task."""
    folder.mkdir(parents=True)
    fields = f"{state} 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 5"
    (folder / "stat").write_text(f"{folder.name} (dd) {fields}\n")
    (folder / "stack").write_bytes(STACK)
    (folder / "comm").write_text("dd\n")


def test_waiting_tasks_are_found_in_processes_and_threads(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    task(proc / "10", "D")
    task(proc / "11", "S")
    task(proc / "12", "S", threads=2)
    task(proc / "12/task/12", "S")
    task(proc / "12/task/13", "D")
    waits = SampledWaits(Host(str(proc)))
    for _ in range(3):
        waits.sample(0.5)
    (longest,) = waits.longest()
    assert longest["seconds"] == 3.0
    assert longest["samples"] == 6
    assert longest["names"] == [{"name": "dd", "number": 6}]
    assert longest["stack"][0] == "synchronize_rcu_normal"


def test_throttled_periods_are_differences(tmp_path: Path) -> None:
    host = Host()
    host.quota_folders = [str(tmp_path / "a"), str(tmp_path / "gone")]
    (tmp_path / "a").mkdir()
    stat = tmp_path / "a/cpu.stat"
    stat.write_text("nr_periods 100\nnr_throttled 40\nthrottled_usec 1\n")
    throttled = Throttled(host)
    stat.write_text("nr_periods 130\nnr_throttled 55\nthrottled_usec 2\n")
    difference = throttled.difference()
    assert (difference["periods"], difference["number"]) == (30, 15)
    assert difference["largest"][0]["number"] == 15


def test_watching_ends_in_time_and_says_what_it_could_not_see(tmp_path: Path) -> None:
    counts = CountTable()
    begin = time.monotonic()
    rates = read_rates(Host("/proc", str(tmp_path)), counts, 0.3)
    assert 0.3 <= rates["seconds"] <= time.monotonic() - begin + 0.001
    assert rates["samples"] >= 1
    missing = {name for entry in counts.missing for name in entry["counts"]}
    assert set(rates["events"]) | missing >= {"exits", "cgroup_removals"}


def test_a_process_that_waits_is_seen_on_this_host() -> None:
    # vfork() without an exit of the child leaves its parent in an uninterruptible sleep.
    code = "import ctypes, time; libc = ctypes.CDLL(None); libc.vfork() or time.sleep(60)"
    with subprocess.Popen([sys.executable, "-P", "-c", code], start_new_session=True) as parent:
        waits = SampledWaits(Host())
        try:
            for _ in range(200):
                waits.sample(0.1)
                names = [entry["name"] for wait in waits.longest() for entry in wait["names"]]
                if any("python" in name for name in names) or waits.failure:
                    break
                time.sleep(0.05)
            assert waits.longest()
        finally:
            os.killpg(parent.pid, 9)
