"""What the host lost to others while a guest ran."""

import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kteardown.model.record import LostTime
from kteardown.paths import read_or_empty

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
WAKEUP_S = 50e-6
"""What an idle host may take to run a thread that becomes runnable; it is not counted as lost."""
STEAL_S = 0.5


@dataclass(frozen=True)
class Counters:
    """All counters at one moment; empty or None where this host has none."""

    at_s: float
    threads: Mapping[int, tuple[float, int]] = field(default_factory=dict)
    """By id of a thread of a virtual CPU: the seconds that it waited for a CPU, and how often it
    ran."""
    steal_s: Mapping[int, float] = field(default_factory=dict)
    """By CPU of the host, the time that a hypervisor under the host gave to others."""
    throttled_s: float | None = None
    """How long the CPU quota of our own control groups stopped us; of nested ones the largest."""
    hot_s: Mapping[int, float] = field(default_factory=dict)
    """By CPU of the host, the time at a lower frequency because of its temperature."""


class HostWatch:
    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._threads: Sequence[int] = ()
        self._before: Counters | None = None

    def vcpus(self, threads: Sequence[int]) -> None:
        """Use these threads of QEMU, which run the virtual CPUs."""
        self._threads = tuple(threads)

    def begin(self) -> None:
        self._before = self._read()

    def end(self) -> LostTime | None:
        """Return what the trial lost that began last; None if none has begun."""
        before, self._before = self._before, None
        return lost_between(before, self._read()) if before else None

    def _read(self) -> Counters:
        cpus: set[int] = set()
        for thread in self._threads:
            with suppress(OSError):
                cpus |= os.sched_getaffinity(thread)
        # Those of this process if none is known.
        return read_counters(self._threads, sorted(cpus or os.sched_getaffinity(0)), self._root)


def read_counters(threads: Sequence[int], cpus: Sequence[int], root: Path = Path("/")) -> Counters:
    """Return the counters of ``threads`` and of those CPUs of the host on which they may run."""
    times = {
        thread: thread_times for thread in threads if (thread_times := _thread_times(root, thread))
    }
    return Counters(
        at_s=time.monotonic(),
        threads=times,
        steal_s=steal(read_or_empty(root / "proc/stat"), cpus),
        throttled_s=_throttled(root),
        hot_s={cpu: hot for cpu in cpus if (hot := _hot(root, cpu)) is not None},
    )


def lost_between(before: Counters, after: Counters) -> LostTime:
    """Return what was lost between two readings: of the virtual CPU and of the CPU that lost
    most."""
    threads = before.threads.keys() & after.threads.keys()
    waits = []
    for old, new in ((before.threads[thread], after.threads[thread]) for thread in threads):
        # Without what an idle host needs to wake the thread.
        usual = (new[1] - old[1]) * WAKEUP_S
        waits.append(max(0.0, new[0] - old[0] - usual))
    stolen = _most(before.steal_s, after.steal_s)
    throttled = None
    if before.throttled_s is not None and after.throttled_s is not None:
        throttled = max(0.0, after.throttled_s - before.throttled_s)
    return LostTime(
        elapsed_s=round(after.at_s - before.at_s, 6),
        run_delay_s=_rounded(max(waits, default=None)),
        # The first tick of a counter may have gathered before the trial.
        steal_s=_rounded(None if stolen is None else max(0.0, stolen - _TICK_S)),
        throttled_s=_rounded(throttled),
        hot_s=_rounded(_most(before.hot_s, after.hot_s)),
    )


def steal(stat: str, cpus: Sequence[int]) -> dict[int, float]:
    """Return the steal time of each of ``cpus`` from the text of ``/proc/stat``, in seconds."""
    seconds_by_cpu = {}
    for line in re.findall(r"^cpu(\d+) (.*)$", stat, re.MULTILINE):
        ticks = line[1].split()
        if int(line[0]) in cpus and len(ticks) > 7:
            seconds_by_cpu[int(line[0])] = int(ticks[7]) * _TICK_S
    return seconds_by_cpu


def own_groups(cgroups: str, root: Path = Path("/")) -> list[Path]:
    """Return the folders of our CPU control groups and of those above, from the text of
    /proc/self/cgroup."""
    folders = []
    for line in cgroups.splitlines():
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        mounts = ["sys/fs/cgroup", "sys/fs/cgroup/unified"] if number == "0" else []
        if "cpu" in controllers.split(","):
            mounts = ["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"]
        group = Path(path.strip("/"))
        folders += [root / mount / part for mount in mounts for part in (group, *group.parents)]
    return [folder for folder in dict.fromkeys(folders) if (folder / "cpu.stat").is_file()]


def _most(before: Mapping[int, float], after: Mapping[int, float]) -> float | None:
    return max((after[cpu] - old for cpu, old in before.items() if cpu in after), default=None)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)


def _thread_times(root: Path, thread: int) -> tuple[float, int] | None:
    """Return the times of a thread; None if it has exited, or if the kernel does not keep them."""
    fields = read_or_empty(root / f"proc/{thread}/schedstat").split()
    if len(fields) != 3 or fields[2] == "0":
        return None
    return int(fields[1]) / 1e9, int(fields[2])


def _throttled(root: Path) -> float | None:
    times = []
    for folder in own_groups(read_or_empty(root / "proc/self/cgroup"), root):
        stat = dict(
            line.split()
            for line in read_or_empty(folder / "cpu.stat").splitlines()
            if line.count(" ") == 1
        )
        if "throttled_usec" in stat:
            times.append(int(stat["throttled_usec"]) / 1e6)
        elif "throttled_time" in stat:  # Version 1, in nanoseconds.
            times.append(int(stat["throttled_time"]) / 1e9)
    return max(times, default=None)


def _hot(root: Path, cpu: int) -> float | None:
    """Return the time for which a CPU was throttled because of its temperature; None without the
    counter."""
    folder = root / f"sys/devices/system/cpu/cpu{cpu}/thermal_throttle"
    texts = [
        read_or_empty(folder / f"{part}_throttle_total_time_ms") for part in ("core", "package")
    ]
    times = [int(text) / 1e3 for text in texts if text.strip().isdigit()]
    return max(times, default=None)
