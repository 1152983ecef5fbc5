"""What a release costs on the instruction clock, where 1 ns is one instruction.

``sync``: until the release returns, without idle time; the processes that do it are real-time
tasks, so that nobody else runs meanwhile. With several CPUs another one may do some of the deferred
work in that time. ``deferred``: what others do from then on, until they leave this process alone
for 40 ms. The emulator runs several CPUs in turn, so this process notices as a gap also what
another one executes. ``later``: what tasks execute in the second after that: a network namespace
ends in steps between which the kernel waits longer than 40 ms.

What holds no objects is also in it, such as the exit of a Python process, and a tick: subtract the
release without objects.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterable
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vm.planted.problem import Problem

_NOTICED_NS = 1500
"""More than an ordinary round of the loop."""
_TICK_NS = 25_000
"""A tick of the timer with the loop is shorter than this."""
_QUIET_NS = 40_000_000
_MOST_NS = 20_000_000_000
_REST_S = 6
_LATER_S = 1
_LEFT_S = 1e-6
_LEFT_ELSEWHERE_S = 1e-3
_FREE = ("MemAvailable", "MemFree")
_USED = ("Slab", "SUnreclaim", "Percpu", "KernelStack", "PageTables")
_NORMAL = os.sched_param(0)
_REAL_TIME = os.sched_param(1)


def take_until_quiet() -> int:
    """Compute until others leave this process alone for 40 ms, and return for how long they had the
    CPU, in ns, without the ticks that a quiet CPU has, too."""
    clock = time.monotonic_ns
    begin = before = worked = now = clock()
    usual = min(-clock() + clock() for _ in range(20)) + 400
    taken = taken_until_worked = 0
    gc.disable()
    while now - worked < _QUIET_NS and now - begin < _MOST_NS:
        now = clock()
        passed = now - before
        if passed > usual + _NOTICED_NS:
            taken += passed - usual
            if passed > _TICK_NS:
                worked, taken_until_worked = now, taken
        before = now
    gc.enable()
    ticks = (taken - taken_until_worked) / max(now - worked, 1)
    return max(taken - int(ticks * (now - begin)), 0)


def _ran_ns() -> int:
    """Return for how long tasks have had the CPUs since boot, all together."""
    # A task counts once it has left its CPU, this one as well as one that has just ended elsewhere.
    time.sleep(_LEFT_S if os.cpu_count() == 1 else _LEFT_ELSEWHERE_S)
    ran = -1
    with suppress(OSError), open("/proc/schedstat", encoding="ascii") as stream:
        for line in stream:
            words = line.split()
            if words[0].startswith("cpu"):
                ran = max(ran, 0) + int(words[7])
    if ran >= 0:
        return ran
    with open("/proc/uptime", encoding="ascii") as stream:
        up_s, idle_s = map(float, stream.read().split())
    return int(((os.cpu_count() or 1) * up_s - idle_s) * 1e9)


@contextmanager
def _real_time(pids: Iterable[int]) -> Iterator[None]:
    tasks = [0]
    for pid in pids:
        tasks += [int(task) for task in os.listdir(f"/proc/{pid}/task")]
    for task in tasks:
        os.sched_setscheduler(task, os.SCHED_FIFO, _REAL_TIME)
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, _NORMAL)


def let_others_run(seconds: float = _REST_S) -> None:
    """Sleep until what is left to be done has been done: kfree_rcu() of some kernels frees after 5
    seconds. On this clock idle time takes no time."""
    time.sleep(seconds)


def measure(problem: Problem) -> dict[str, int]:
    """Release the objects of ``problem``, and return what that cost."""
    let_others_run()
    with _real_time(problem.tasks()):
        ran = _ran_ns()
        begin = time.monotonic_ns()
        problem.release()
        elapsed = time.monotonic_ns() - begin
        ran = _ran_ns() - ran
    # Without idle time, the other one is less: it has nothing of this program.
    sync = min(elapsed, ran)
    deferred = take_until_quiet()
    ran = _ran_ns()
    let_others_run(_LATER_S)
    return {
        "elapsed_ns": elapsed,
        "idle_ns": elapsed - sync,
        "sync_ns": sync,
        "deferred_ns": deferred,
        "later_ns": _ran_ns() - ran,
    }


def memory_kb() -> dict[str, int]:
    """Return fields of /proc/meminfo, with the counters of all CPUs summed up."""
    with suppress(OSError), open("/proc/sys/vm/stat_refresh", "rb") as stream:
        stream.read()
    with open("/proc/meminfo", encoding="ascii") as stream:
        fields = dict(line.split(":") for line in stream)
    return {name: int(fields[name].split()[0]) for name in (*_FREE, *_USED) if name in fields}


def more_used_kb(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """Return how much more memory is in use, by each field of ``memory_kb``."""
    return {
        name: before[name] - after[name] if name in _FREE else after[name] - before[name]
        for name in after
    }
