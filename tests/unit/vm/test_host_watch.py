"""The counters of what the host took from a trial, read from small trees of /proc and /sys."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.model.record import LostTime
from kteardown.vm.host_watch import (
    Counters,
    HostWatch,
    lost_between,
    own_groups,
    read_counters,
    steal,
)

STAT = """cpu  100 0 50 1000 0 0 0 30 0 0
cpu0 50 0 25 500 0 0 0 10 0 0
cpu2 50 0 25 500 0 0 0 20 0 0
intr 1 2 3
"""


def put(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A host with steal, a control group with a quota below one with another quota, and heat."""
    put(tmp_path, "proc/stat", STAT)
    put(tmp_path, "proc/7/schedstat", "5000000000 250000000 40\n")
    put(tmp_path, "proc/8/schedstat", "0 0 0\n")
    put(tmp_path, "proc/self/cgroup", "0::/user.slice/lab.scope\n")
    group = "sys/fs/cgroup/user.slice"
    put(
        tmp_path,
        f"{group}/lab.scope/cpu.stat",
        "usage_usec 5\nnr_throttled 1\nthrottled_usec 1500000\n",
    )
    put(tmp_path, f"{group}/cpu.stat", "usage_usec 5\nnr_throttled 9\nthrottled_usec 2500000\n")
    heat = "sys/devices/system/cpu/cpu0/thermal_throttle"
    put(tmp_path, f"{heat}/core_throttle_total_time_ms", "40\n")
    put(tmp_path, f"{heat}/package_throttle_total_time_ms", "70\n")
    return tmp_path


def test_all_counters_are_read(tree: Path) -> None:
    found = read_counters([7, 8, 9], [0, 1, 2], tree)
    assert found.threads == {7: (0.25, 40)}
    assert found.steal_s == {0: 0.1, 2: 0.2}
    assert found.throttled_s == 2.5
    assert found.hot_s == {0: 0.07}


def test_a_host_without_counters_is_no_error(tmp_path: Path) -> None:
    found = read_counters([7], [0], tmp_path)
    assert (found.threads, found.steal_s, found.throttled_s, found.hot_s) == ({}, {}, None, {})
    lost = lost_between(found, read_counters([7], [0], tmp_path))
    assert (lost.run_delay_s, lost.steal_s, lost.throttled_s, lost.hot_s) == (
        None,
        None,
        None,
        None,
    )
    assert lost.share == 0


def test_steal_is_only_that_of_the_usable_cpus() -> None:
    assert steal(STAT, [2]) == {2: 0.2}
    assert steal("cpu0 1 2 3", [0]) == {}


def test_groups_of_version_1_are_found_too(tmp_path: Path) -> None:
    put(
        tmp_path,
        "sys/fs/cgroup/cpu,cpuacct/box/cpu.stat",
        "nr_throttled 1\nthrottled_time 3000000000\n",
    )
    cgroups = "5:memory:/other\n4:cpu,cpuacct:/box\n0::/\n"
    assert own_groups(cgroups, tmp_path) == [tmp_path / "sys/fs/cgroup/cpu,cpuacct/box"]
    put(tmp_path, "proc/self/cgroup", cgroups)
    assert read_counters([], [], tmp_path).throttled_s == 3.0


def counters(at_s: float, waits: dict[int, tuple[float, int]], steal_s: float = 0.0) -> Counters:
    threads = dict(waits)
    return Counters(at_s, threads, {0: steal_s, 1: 0.0})


def test_the_virtual_cpu_that_waited_most_counts_without_what_waking_costs() -> None:
    before = counters(10, {1: (0.0, 0), 2: (1.0, 5)})
    after = counters(12, {1: (0.1, 1000), 2: (1.3, 1005), 3: (9.0, 1)}, steal_s=0.11)
    lost = lost_between(before, after)
    # 1000 times 50 us are not lost, and neither is the first tick of steal.
    assert (lost.elapsed_s, lost.run_delay_s, lost.steal_s) == (2, 0.25, 0.1)
    assert lost.share == pytest.approx(0.175)


def test_a_throttled_thread_is_not_counted_twice_and_heat_is_a_share_of_its_own() -> None:
    lost = LostTime(elapsed_s=10, run_delay_s=2, throttled_s=3, steal_s=1)
    assert lost.share == 0.4
    assert lost.model_copy(update={"hot_s": 6.0}).share == 0.6


seconds = st.floats(0, 1e4)


@given(seconds, st.lists(seconds, min_size=4, max_size=4))
def test_a_share_is_between_nothing_and_all(elapsed_s: float, parts: list[float]) -> None:
    names = ("run_delay_s", "steal_s", "throttled_s", "hot_s")
    assert 0 <= LostTime(elapsed_s=elapsed_s, **dict(zip(names, parts, strict=True))).share <= 1


@given(st.lists(st.tuples(seconds, st.integers(0, 1000), seconds, st.integers(0, 1000))))
def test_nothing_lost_is_negative(threads: list[tuple[float, int, float, int]]) -> None:
    before = {n: (delay, runs) for n, (delay, runs, _, _) in enumerate(threads)}
    after = {
        n: (delay + more, runs + again) for n, (delay, runs, more, again) in enumerate(threads)
    }
    lost = lost_between(counters(0, before), counters(1, after))
    assert lost.run_delay_s is None if not threads else (lost.run_delay_s or 0) >= 0
    assert lost.steal_s == 0


def test_a_thread_of_this_host_that_competes_loses_time() -> None:
    """Two processes on one CPU: each waits for about half of the time."""
    cpu = min(os.sched_getaffinity(0))
    seen: list[LostTime | None] = []

    def compete() -> None:
        os.sched_setaffinity(0, {cpu})
        watch = HostWatch()
        watch.vcpus([threading.get_native_id()])
        watch.begin()
        stop = time.monotonic() + 1.0
        while time.monotonic() < stop:
            pass
        seen.append(watch.end())

    loop = ["taskset", "--cpu-list", str(cpu), "timeout", "5", "sh", "-c", "while :; do :; done"]
    with subprocess.Popen(loop) as other:
        worker = threading.Thread(target=compete)
        worker.start()
        worker.join()
        other.terminate()
    assert seen[0] is not None
    # A kernel without these counters says nothing.
    assert seen[0].run_delay_s is None or seen[0].run_delay_s > 0


def test_without_a_beginning_there_is_no_end() -> None:
    assert HostWatch().end() is None
