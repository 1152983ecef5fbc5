"""What happens in some seconds: exits, removed cgroups, throttled periods, and waits by stack.

Exits and removals come from an instance of tracefs (root). Throttled periods are the difference
of cpu.stat. Waits are sampled: each sample looks at the state of all tasks, and at the stack of
those in uninterruptible sleep (root). The samples together take about a twentieth of one CPU.

Locks: /proc/PID/stack takes the task's exec_update_lock for reading (lock_trace() in
fs/proc/base.c); /proc/PID/stat its sighand lock.
"""

import contextlib
import os
import re
import time
from typing import Any, Dict, Iterator, List, Tuple

from kteardown_observe.collector.cgroup_totals import parse_cgroup_stat
from kteardown_observe.collector.files import Host, Malformed, Unreadable, printable, spread
from kteardown_observe.collector.processes import list_processes, parse_stat
from kteardown_observe.collector.tally import CountTable, Tally
from kteardown_observe.collector.tracing import TRACE_EVENTS, Tracing, find_instances

RATE_COUNTS = ("exits", "cgroup_removals", "throttled_periods", "waits")
SHARE = 0.05
"""Of one CPU, for the samples."""
SHORTEST_S = 0.1
LONGEST_CPU_S = 0.2
"""One sample takes no more CPU time, and does not look at all tasks then."""
THREADS_MOST = 1000
STACK_MOST = 12
STACKS_MOST = 1000
NAMES_MOST = 3
FRAME = re.compile(rb"\[<[0-9a-f]*>\] ([A-Za-z0-9_.]{1,100})")


def parse_stack(text: bytes) -> Tuple[str, ...]:
    """Return the functions of a stack of the kernel, the innermost first."""
    return tuple(name.decode("ascii") for name in FRAME.findall(text)[:STACK_MOST])


class SampledWaits:
    """Who slept uninterruptibly, where and for how long, by samples."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.samples = 0
        self.whole = True
        self.by_stack: Dict[Tuple[str, ...], Tally] = {}
        self.seconds: Dict[Tuple[str, ...], float] = {}
        self.failure = ""

    def sample(self, interval_s: float) -> None:
        """Look at all tasks once; each that waits is taken to have waited since the last look."""
        pids = list_processes(self.host)
        self.samples += 1
        for index in spread(len(pids)):
            if self.host.spent():
                self.whole = False
                return
            for path in self._tasks_of(pids[index]):
                self._look_at(path, interval_s)

    def _tasks_of(self, pid: int) -> Iterator[str]:
        """Yield the folders of the tasks of a process that wait."""
        folder = f"{self.host.proc}/{pid}"
        try:
            process = parse_stat(self.host.read_once(f"{folder}/stat", 4096))
            if process.threads <= 1:
                if process.state == "D":
                    yield folder
                return
            for thread in self.host.names(f"{folder}/task", THREADS_MOST):
                text = self.host.read_once(f"{thread.path}/stat", 4096)
                if parse_stat(text).state == "D":
                    yield thread.path
        except (Unreadable, Malformed):
            return

    def _look_at(self, path: str, interval_s: float) -> None:
        try:
            stack = parse_stack(self.host.read(f"{path}/stack", 16384))
            comm = printable(self.host.read_once(f"{path}/comm", 100)[:-1])
        except Unreadable as failure:
            self.failure = failure.detail
            stack, comm = (), ""
        if stack not in self.by_stack and len(self.by_stack) >= STACKS_MOST:
            return
        self.by_stack.setdefault(stack, Tally()).add(comm)
        self.seconds[stack] = self.seconds.get(stack, 0.0) + interval_s

    def longest(self) -> List[Dict[str, Any]]:
        """Return the stacks at which tasks waited longest."""
        stacks = sorted(self.seconds, key=lambda stack: -self.seconds[stack])[:10]
        return [
            {
                "stack": list(stack),
                "seconds": round(self.seconds[stack], 2),
                "samples": self.by_stack[stack].number,
                "names": self.by_stack[stack].largest(str)[:NAMES_MOST],
            }
            for stack in stacks
        ]


class Throttled:
    """How often cgroups with a quota were throttled."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.before = self._read()

    def _read(self) -> Dict[str, Dict[str, int]]:
        stats = {}
        for path in self.host.quota_folders:
            with contextlib.suppress(Unreadable, Malformed):
                stats[path] = parse_cgroup_stat(self.host.read(f"{path}/cpu.stat"))
        return stats

    def difference(self) -> Dict[str, Any]:
        """Return the periods since the beginning, and the throttled ones by cgroup."""
        periods = 0
        throttled = Tally()
        for path, after in self._read().items():
            before = self.before.get(path, {})
            periods += max(0, after.get("nr_periods", 0) - before.get("nr_periods", 0))
            more = max(0, after.get("nr_throttled", 0) - before.get("nr_throttled", 0))
            throttled.add_owner(path, more)
        largest = throttled.largest(lambda path: printable(os.fsencode(path)))
        return {"periods": periods, "number": throttled.number, "largest": largest}


def read_rates(host: Host, counts: CountTable, seconds: float) -> Dict[str, Any]:
    """Watch the machine for some seconds, and return what happened."""
    rates: Dict[str, Any] = {"seconds": 0.0, "events": {}}
    waits = SampledWaits(host)
    throttled = Throttled(host)
    begin_s = time.monotonic()
    with contextlib.ExitStack() as stack:
        tracing = None
        try:
            tracing = stack.enter_context(Tracing(host, find_instances(host)))
        except Unreadable as failure:
            counts.missed([event.name for event in TRACE_EVENTS], failure)
        _sample(waits, begin_s + seconds)
        rates["seconds"] = round(time.monotonic() - begin_s, 3)
        if tracing is not None:
            _read_events(tracing, counts, rates["events"])
    rates["throttled"] = throttled.difference()
    rates["waits"] = waits.longest()
    rates["samples"] = waits.samples
    if not waits.whole:
        counts.miss(["waits"], "time", "samples did not look at all tasks")
    if waits.failure:
        counts.miss(["waits"], "permission", f"stacks of waiting tasks: {waits.failure}")
    return rates


def _sample(waits: SampledWaits, end_s: float) -> None:
    """Take samples until a time of the monotonic clock, in a share of the CPU."""
    interval_s = SHORTEST_S
    while True:
        left_s = end_s - time.monotonic()
        if left_s <= 0:
            return
        time.sleep(min(interval_s, left_s))
        before_s = time.process_time()
        waits.host.allow(LONGEST_CPU_S)
        waits.sample(min(interval_s, left_s))
        interval_s = max(SHORTEST_S, (time.process_time() - before_s) / SHARE)


def _read_events(tracing: Tracing, counts: CountTable, events: Dict[str, Any]) -> None:
    for name, failure in tracing.missing.items():
        counts.missed([name], failure)
    for event in tracing.events:
        try:
            histogram = tracing.read(event)
        except (Unreadable, Malformed) as failure:
            counts.miss([event.name], getattr(failure, "reason", "error"), str(failure))
            continue
        tally = Tally()
        for key, hits in histogram.by_key.items():
            tally.add(key, hits)
        number = histogram.total + histogram.dropped
        events[event.name] = {"number": number, "largest": tally.largest(str)}
