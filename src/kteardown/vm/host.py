"""The host: facts for the ``machine`` of result.json, its QEMU, its counters of events, what it
took from a guest, and what of it adds noise to the wall clock.

The counters of the kernel are read when a trial begins and when it ends: at the records
``trial_start`` and ``trial_end`` as the lab receives them. These are late by the time in which the
lab writes the records before them: milliseconds, and setting up the trial is inside of them. That
is enough for a share of a trial, and not for what happened in one repetition.
"""

import ctypes
import errno
import os
import platform
import re
import struct
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import psutil

from kteardown import spawn
from kteardown.errors import LabError, MissingError
from kteardown.model.arch import ARCHITECTURES, Arch
from kteardown.model.workload import StrictModel
from kteardown.paths import read_or_empty, shipped_table
from kteardown.vm.cpu_pinning import cpu_list
from kteardown.vm.host_watch import STEAL_S, own_groups, steal

_SYS = Path("/sys/devices/system/cpu")
_HARDWARE = 0
_INSTRUCTIONS = 1
_ATTR_SIZE = 72
_DISABLED = 1 << 0
_EXCLUDE_HV = 1 << 6
_EXCLUDE_HOST = 1 << 19


def qemu_version(arch: Arch) -> str:
    """Return the version of QEMU for ``arch``, such as ``7.2.22``. Raises LabError if it is not
    installed."""
    try:
        output = spawn.run(
            [ARCHITECTURES[arch].qemu, "--version"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise missing_qemu(arch) from error
    version = re.search(r"version (\d[\w.]*)", output)
    return version[1] if version else output.strip()


def missing_qemu(arch: Arch) -> MissingError:
    architecture = ARCHITECTURES[arch]
    return MissingError(f"{architecture.qemu} is not installed", [architecture.qemu_package])


def facts() -> dict[str, Any]:
    """Return facts that may explain a figure measured on this host. JSON-able; None where unknown.

    Memory is in kB. ``governor``, ``turbo``, ``smt`` and ``isolated`` (CPUs) are settings.
    ``mitigations`` has the vulnerabilities that affect the host, with their mitigations.
    ``hypervisor`` is set if the host is itself a guest.
    """
    lines = read_or_empty(Path("/proc/cpuinfo")).splitlines()
    # The first line of each name counts: that of the first CPU.
    pairs = (line.partition(":") for line in reversed(lines) if ":" in line)
    cpuinfo = {name.strip(): value.strip() for name, _, value in pairs}
    governors = {_read(file) for file in _SYS.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    vulnerabilities = {
        path.name: _read(path) for path in sorted((_SYS / "vulnerabilities").glob("*"))
    }
    packages = {_read(file) for file in _SYS.glob("cpu[0-9]*/topology/physical_package_id")}
    off = _read(_SYS / "intel_pstate/no_turbo")
    boost = _read(_SYS / "cpufreq/boost")
    os_name = None
    qemu = dict.fromkeys(get_args(Arch), "")
    with suppress(OSError):
        os_name = platform.freedesktop_os_release().get("PRETTY_NAME")
    for arch in qemu:
        with suppress(LabError):
            qemu[arch] = qemu_version(arch)
    return {
        "cpu": {
            "model": cpuinfo.get("model name") or cpuinfo.get("CPU part"),
            "architecture": platform.machine(),
            "online": count_cpus(_read(_SYS / "online")),
            "possible": count_cpus(_read(_SYS / "possible")),
            "usable": len(os.sched_getaffinity(0)),
            # Numbers; None where sysfs does not have them.
            "topology": {
                "packages": len(packages - {None}) or None,
                "cores": psutil.cpu_count(logical=False),
                "nodes": count_cpus(_read(Path("/sys/devices/system/node/online"))),
            },
            "governor": ", ".join(sorted(filter(None, governors))) or None,
            "turbo": off == "0" if off else boost == "1" if boost else None,
            "smt": _read(_SYS / "smt/control"),
            "isolated": _read(_SYS / "isolated"),
        },
        "clocksource": _read(
            Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        ),
        "hypervisor": _hypervisor(cpuinfo),
        "mitigations": {
            name: text for name, text in vulnerabilities.items() if text and text != "Not affected"
        },
        "memory_kb": psutil.virtual_memory().total // 1024,
        "kernel": platform.release(),
        "os": os_name,
        "qemu": {arch: version or None for arch, version in qemu.items()},
    }


def _hypervisor(cpuinfo: dict[str, str]) -> str | None:
    """Return the name of the hypervisor if the host is a guest, ``yes`` if it has no name, else
    None."""
    vendor = _read(Path("/sys/class/dmi/id/sys_vendor"))
    product = _read(Path("/sys/class/dmi/id/product_name"))
    # Only x86 has the flag. QEMU names itself in the tables of the firmware, or in the device tree.
    device_tree = Path("/sys/firmware/devicetree/base")
    named = (
        vendor == "QEMU"
        or (device_tree / "hypervisor").exists()
        or (device_tree / "fw-cfg").exists()
    )
    if "hypervisor" not in cpuinfo.get("flags", "").split() and not named:
        return None
    return " ".join(filter(None, (vendor, product))) or "yes"


def count_cpus(ranges: str | None) -> int | None:
    """Return the number of CPUs in a list such as ``0-3,8``; None for an empty list."""
    return len(cpu_list(ranges or "")) or None


def _read(path: Path) -> str | None:
    return read_or_empty(path).strip() or None


def why_guests_have_no_counters(root: Path = Path("/")) -> str:
    """Return why guests under KVM have no counters of their own on this host; empty if that is not
    known."""
    # KVM counts for them itself, so what this user may count does not matter.
    allowed = root / "sys/module/kvm/parameters/enable_pmu"
    if allowed.is_file() and allowed.read_text().strip() in ("N", "0"):
        return "KVM gives guests no counters (its parameter enable_pmu is off)"
    return _no_counters(_counter_error())


def why_no_counters() -> str:
    """Return why instructions of a guest's virtual CPU cannot be counted on this host; empty if
    they can."""
    error = _counter_error()
    if error in (errno.EACCES, errno.EPERM):
        return "this user may not count events (kernel.perf_event_paranoid)"
    return _no_counters(error) or (os.strerror(error) if error else "")


def _no_counters(error: int) -> str:
    if error == errno.ENOSYS:
        return f"the counters of architecture {platform.machine()} are not supported"
    if error in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return "the processor, or the hypervisor under this host, has no counters"
    return ""


def _counter_error() -> int:
    """Return the error of opening a counter for this thread that counts only while it runs a guest;
    or 0."""
    machine = platform.machine()
    number = next(
        (arch.perf_event_open for arch in ARCHITECTURES.values() if arch.machine == machine), None
    )
    if number is None:
        return errno.ENOSYS
    flags = _DISABLED | _EXCLUDE_HV | _EXCLUDE_HOST
    attr = struct.pack(
        "=IIQQQQQIIQQ", _HARDWARE, _ATTR_SIZE, _INSTRUCTIONS, 0, 0, 0, flags, 0, 0, 0, 0
    )
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(number, ctypes.c_char_p(attr), 0, -1, -1, 0)
    if fd < 0:
        return ctypes.get_errno()
    os.close(fd)
    return 0


_BUSY = 0.5
"""Runnable tasks on a host that has nothing else to do."""


class HostCheck(StrictModel):
    """A check of the host for the wall clock: what it found, and what it costs if it is not ok."""

    name: str
    ok: bool
    state: str
    cost: str = ""
    command: str = ""
    """What changes it; empty if it cannot be changed by a command."""


def wall_checks(facts: Mapping[str, Any], root: Path = Path("/")) -> list[HostCheck]:
    """Return all checks, of ``facts`` as ``vm.host.facts`` returns them and of files below
    ``root``."""
    states = {**_settings(facts, root), **_time_taken(facts, root)}
    cpu = facts["cpu"]
    count = cpu["online"] or 1
    intel = (root / "sys/devices/system/cpu/intel_pstate/no_turbo").exists()
    words = {
        "lowest": _range(root, "cpuinfo_min_freq"),
        "base": _range(root, "base_frequency"),
        "turbo": "intel_pstate/no_turbo" if intel else "cpufreq/boost",
        "turbo_off": int(intel),
        "half": f"{count // 2}-{count - 1}",
        "no_invariant_tsc": ""
        if "invariant" in states["clock source"][1]
        else "the processor or the hypervisor under this host has no invariant TSC",
        "allow_counters": "sudo sysctl kernel.perf_event_paranoid=1"
        if "may not" in states["hardware counters"][1]
        else "",
    }
    return [
        HostCheck(
            name=name,
            ok=states[name][0],
            state=states[name][1],
            **{key: text.format(**words) for key, text in about.items()},
        )
        for name, about in shipped_table("vm/wall_checks").items()
    ]


def _settings(facts: Mapping[str, Any], root: Path) -> dict[str, tuple[bool, str]]:
    """Return of what is set on the host, by name, whether it adds no noise, and what it is."""
    under = facts["hypervisor"]
    cpu = facts["cpu"]
    mitigations = facts["mitigations"] or {}
    governor = cpu["governor"]
    turbo = cpu["turbo"]
    smt = cpu["smt"]
    isolated = cpu["isolated"]
    enabled = read_or_empty(root / "sys/kernel/mm/transparent_hugepage/enabled")
    chosen = enabled.partition("[")[2].partition("]")[0] or "unknown"
    free = _number(root / "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") or 0
    flags = re.search(r"^flags.*", read_or_empty(root / "proc/cpuinfo"), re.MULTILINE)
    invariant = {"constant_tsc", "nonstop_tsc"} <= {*(flags[0] if flags else "").split()}
    source = facts["clocksource"] or "unknown"
    unset = "unknown: the host does not set the frequency"
    mitigated = (
        f"{len(mitigations)}: {', '.join(mitigations)}. They cost time at every entry to the "
        "host's kernel, the same for all kernels; mitigations=off on the host's command line is "
        "the level without them"
    )
    return {
        "hardware": (
            under is None,
            f"this host is {f'itself a guest ({under})' if under else 'hardware'}",
        ),
        "governor": (governor in (None, "performance"), governor or unset),
        "turbo": (not turbo, "unknown" if turbo is None else "on" if turbo else "off"),
        "SMT": (smt != "on", smt or "unknown"),
        "mitigations": (True, mitigated if mitigations else "none that affects this processor"),
        "isolated CPUs": (bool(isolated) or (cpu["online"] or 1) < 4, isolated or "none"),
        "huge pages": (
            chosen in ("always", "madvise") or free > 0,
            f"transparent: {chosen}; reserved and free: {free} of 2 MB",
        ),
        "clock source": (
            source in ("tsc", "arch_sys_counter"),
            source + ", invariant TSC" * invariant,
        ),
    }


def _range(root: Path, lowest: str) -> str:
    folder = root / "sys/devices/system/cpu/cpu0/cpufreq"
    low = _number(folder / lowest)
    high = _number(folder / "cpuinfo_max_freq")
    return f": {low // 1000} to {high // 1000} MHz" if low and high else ""


def _time_taken(facts: Mapping[str, Any], root: Path) -> dict[str, tuple[bool, str]]:
    """Return the same of what takes time from guests now."""
    words = read_or_empty(root / "proc/loadavg").split()
    load = float(words[0]) if words else 0.0
    cpus = sorted(psutil.Process().cpu_affinity() or [])
    before = steal(read_or_empty(root / "proc/stat"), cpus)
    time.sleep(STEAL_S)
    after = steal(read_or_empty(root / "proc/stat"), cpus)
    stolen_s = max((after[cpu] - before[cpu] for cpu in before), default=0.0)
    limits = []
    for folder in own_groups(read_or_empty(root / "proc/self/cgroup"), root):
        quota = read_or_empty(folder / "cpu.max") or read_or_empty(folder / "cpu.cfs_quota_us")
        if (quota.split() or [""])[0] not in ("", "max", "-1"):
            limits.append(folder.name)
    paranoid = read_or_empty(root / "proc/sys/kernel/perf_event_paranoid").strip()
    reason = why_no_counters()
    set_to = f"; perf_event_paranoid {paranoid}" if paranoid else ""
    counters = reason or "guests can have them: `kteardown run ... --clock wall --counts`"
    stolen = (
        f"{stolen_s:.2f} s in the last {STEAL_S:g} s, {sum(after.values()):.0f} s since the host "
        "started"
    )
    return {
        "load": (load <= _BUSY, f"{load:.1f} on {facts['cpu']['usable']} CPUs"),
        "steal": (stolen_s <= 0.01, stolen),
        "CPU quota": (
            not limits,
            f"set by the control group {', '.join(limits)}" if limits else "none",
        ),
        "hardware counters": (not reason, counters + set_to),
    }


def _number(path: Path) -> int | None:
    text = read_or_empty(path).strip()
    return int(text) if text.isdigit() else None
