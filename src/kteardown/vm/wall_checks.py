"""What of this host adds noise to the wall clock, what it costs, and the command that changes it."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from kteardown.paths import read_or_empty
from kteardown.vm import host, host_watch

_BUSY = 0.5
"""Runnable tasks on a host that has nothing else to do."""
_STEAL_S = 0.5
_CPU = "/sys/devices/system/cpu"


@dataclass(frozen=True)
class WallCheck:
    """One property of the host. ``cost`` is what it adds to figures of the wall clock if it is not ok."""

    name: str
    ok: bool
    state: str
    cost: str = ""
    command: str = ""
    """What changes it; empty if it cannot be changed by a command."""


def host_checks() -> list[WallCheck]:
    """Return the checks of this host."""
    return wall_checks(host.facts())


def wall_checks(facts: Mapping[str, Any], root: Path = Path("/")) -> list[WallCheck]:
    """Return all checks, of ``facts`` as ``vm.host.facts`` returns them and of files below ``root``."""
    return [*_of_processor(facts, root), *_of_memory_and_clock(facts, root), *_of_time_taken(facts, root)]


def _of_processor(facts: Mapping[str, Any], root: Path) -> Iterator[WallCheck]:
    under, cpu, mitigations = facts["hypervisor"], facts["cpu"], facts["mitigations"] or {}
    governor, turbo, smt = cpu["governor"], cpu["turbo"], cpu["smt"]
    yield WallCheck(
        "hardware",
        under is None,
        "this host is hardware" if under is None else f"this host is itself a guest ({under})",
        "what leaves the guest (page faults, timers, interrupts between CPUs, halts) goes through a further "
        "hypervisor, and other guests of the same machine take time from this host",
    )
    yield WallCheck(
        "governor",
        governor in (None, "performance"),
        governor or "unknown: the host does not set the frequency",
        f"a guest that was idle begins at a low frequency{_range(root, 'cpuinfo_min_freq')}",
        f"echo performance | sudo tee {_CPU}/cpu*/cpufreq/scaling_governor",
    )
    most = _range(root, "base_frequency")
    intel = (root / "sys/devices/system/cpu/intel_pstate/no_turbo").exists()
    off = f"echo 1 | sudo tee {_CPU}/intel_pstate/no_turbo"
    yield WallCheck(
        "turbo",
        not turbo,
        "unknown" if turbo is None else "on" if turbo else "off",
        f"the frequency depends on the temperature and on how many cores are busy{most}",
        off if intel else f"echo 0 | sudo tee {_CPU}/cpufreq/boost",
    )
    yield WallCheck(
        "SMT",
        smt != "on",
        smt or "unknown",
        "a CPU shares its core, and is much slower while the other CPU of the core is busy",
        f"echo off | sudo tee {_CPU}/smt/control",
    )
    yield WallCheck(
        "mitigations",
        True,
        f"{len(mitigations)}: {', '.join(mitigations)}. They cost time at every entry to the host's kernel, "
        "the same for all kernels; mitigations=off on the host's command line is the level without them"
        if mitigations
        else "none that affects this processor",
    )
    count = cpu["online"] or 1
    last = f"{count // 2}-{count - 1}"
    yield WallCheck(
        "isolated CPUs",
        bool(cpu["isolated"]) or count < 4,
        cpu["isolated"] or "none",
        "tasks, timers and interrupts of the host run on the guest's CPUs",
        f"add isolcpus=managed_irq,domain,{last} nohz_full={last} to the host's kernel command line",
    )


def _range(root: Path, lowest: str) -> str:
    """Return the range from a frequency to the highest in words, if the host says it."""
    folder = root / "sys/devices/system/cpu/cpu0/cpufreq"
    low, high = _number(folder / lowest), _number(folder / "cpuinfo_max_freq")
    return f": {low // 1000} to {high // 1000} MHz" if low and high else ""


def _of_memory_and_clock(facts: Mapping[str, Any], root: Path) -> Iterator[WallCheck]:
    enabled = read_or_empty(root / "sys/kernel/mm/transparent_hugepage/enabled")
    chosen = enabled.partition("[")[2].partition("]")[0] or "unknown"
    free = _number(root / "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") or 0
    yield WallCheck(
        "huge pages",
        chosen in ("always", "madvise") or free > 0,
        f"transparent: {chosen}; reserved and free: {free} of 2 MB",
        "a TLB miss of the guest walks two page tables; which of its pages are large differs between boots",
        "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    )
    info = read_or_empty(root / "proc/cpuinfo")
    flags = next((line.split() for line in info.splitlines() if line.startswith("flags")), [])
    source = facts["clocksource"] or "unknown"
    invariant = {"constant_tsc", "nonstop_tsc"} <= {*flags}
    yield WallCheck(
        "clock source",
        source in ("tsc", "arch_sys_counter"),
        source + (", invariant TSC" if invariant else ""),
        "reading the clock leaves the processor or the guest, which takes many times as long",
        "" if invariant else "the processor or the hypervisor under this host has no invariant TSC",
    )


def _of_time_taken(facts: Mapping[str, Any], root: Path) -> Iterator[WallCheck]:
    words = read_or_empty(root / "proc/loadavg").split()
    load = float(words[0]) if words else 0.0
    yield WallCheck(
        "load",
        load <= _BUSY,
        f"{load:.1f} on {facts['cpu']['usable']} CPUs",
        "other work takes caches and memory bandwidth, and CPUs if there are not enough: two boots of one "
        "image differed by 1.49x on a busy host",
        "end other work; `ps -eo pcpu,comm --sort=-pcpu | head` shows it",
    )
    cpus = sorted(psutil.Process().cpu_affinity() or [])
    before = host_watch.steal(read_or_empty(root / "proc/stat"), cpus)
    time.sleep(_STEAL_S)
    after = host_watch.steal(read_or_empty(root / "proc/stat"), cpus)
    taken = max((after[cpu] - before[cpu] for cpu in before), default=0.0)
    yield WallCheck(
        "steal",
        taken <= 0.01,
        f"{taken:.2f} s in the last {_STEAL_S:g} s, {sum(after.values()):.0f} s since the host started",
        "the hypervisor under this host ran something else: that time is in the figures",
        "move the host to a machine with CPUs of its own" if taken > 0.01 else "",
    )
    limits = []
    for folder in host_watch.own_groups(read_or_empty(root / "proc/self/cgroup"), root):
        quota = read_or_empty(folder / "cpu.max") or read_or_empty(folder / "cpu.cfs_quota_us")
        if (quota.split() or [""])[0] not in ("", "max", "-1"):
            limits.append(folder.name)
    yield WallCheck(
        "CPU quota",
        not limits,
        f"set by the control group {', '.join(limits)}" if limits else "none",
        "when it is used up, the guest is stopped until the next period, up to 100 ms",
        "systemd-run --scope kteardown ...",
    )
    paranoid = read_or_empty(root / "proc/sys/kernel/perf_event_paranoid").strip()
    reason = host.why_no_counters()
    yield WallCheck(
        "hardware counters",
        not reason,
        (reason or "guests can have them: `kteardown run ... --clock wall --counts`")
        + (f"; perf_event_paranoid {paranoid}" if paranoid else ""),
        "no noise: without them --counts cannot show cycles, cache and TLB misses beside time",
        "sudo sysctl kernel.perf_event_paranoid=1" if "may not" in reason else "",
    )


def _number(path: Path) -> int | None:
    text = read_or_empty(path).strip()
    return int(text) if text.isdigit() else None
