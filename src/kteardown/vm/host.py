"""Facts about the host, for the ``machine`` of result.json."""

import os
import platform
from pathlib import Path
from typing import Any, get_args

import psutil

from kteardown.errors import LabError
from kteardown.model.arch import Arch
from kteardown.paths import read_or_empty
from kteardown.vm.cpu_topology import cpu_list
from kteardown.vm.installed_qemu import qemu_version

_SYS = Path("/sys/devices/system/cpu")


def memory_mb() -> int:
    """Return the memory of the host."""
    return int(psutil.virtual_memory().total) >> 20


def load_average() -> float:
    """Return the load average of the last minute: the number of runnable and waiting tasks."""
    return os.getloadavg()[0]


def facts() -> dict[str, Any]:
    """Return facts that may explain a figure measured on this host. JSON-able; None where unknown.

    Memory is in kB. ``governor``, ``turbo``, ``smt`` and ``isolated`` (CPUs) are settings. ``mitigations``
    has the vulnerabilities that affect the host, with their mitigations. ``hypervisor`` is set if the host
    is itself a guest.
    """
    lines = read_or_empty(Path("/proc/cpuinfo")).splitlines()
    # The first line of each name counts: that of the first CPU.
    pairs = (line.partition(":") for line in reversed(lines) if ":" in line)
    cpuinfo = {name.strip(): value.strip() for name, _, value in pairs}
    governors = {_read(file) for file in _SYS.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    found = {path.name: _read(path) for path in sorted((_SYS / "vulnerabilities").glob("*"))}
    return {
        "cpu": {
            "model": cpuinfo.get("model name") or cpuinfo.get("CPU part"),
            "architecture": platform.machine(),
            "online": count_cpus(_read(_SYS / "online")),
            "possible": count_cpus(_read(_SYS / "possible")),
            "usable": len(os.sched_getaffinity(0)),
            "topology": _topology(),
            "governor": ", ".join(sorted(filter(None, governors))) or None,
            "turbo": _turbo(),
            "smt": _read(_SYS / "smt/control"),
            "isolated": _read(_SYS / "isolated"),
        },
        "clocksource": _read(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        "hypervisor": _hypervisor(cpuinfo),
        "mitigations": {name: text for name, text in found.items() if text and text != "Not affected"},
        "memory_kb": psutil.virtual_memory().total // 1024,
        "kernel": platform.release(),
        "os": _os_name(),
        "qemu": {arch: _qemu_or_none(arch) for arch in get_args(Arch)},
    }


def _topology() -> dict[str, int | None]:
    """Return the numbers of packages, cores and NUMA nodes; None where sysfs does not have them."""
    cores = set()
    for cpu in _SYS.glob("cpu[0-9]*"):
        package = _read(cpu / "topology/physical_package_id")
        core = _read(cpu / "topology/core_id")
        if package is not None and core is not None:
            cores.add((package, core))
    nodes = count_cpus(_read(Path("/sys/devices/system/node/online")))
    packages = len({package for package, _ in cores})
    return {"packages": packages or None, "cores": len(cores) or None, "nodes": nodes}


def _turbo() -> bool | None:
    off, boost = _read(_SYS / "intel_pstate/no_turbo"), _read(_SYS / "cpufreq/boost")
    return off == "0" if off else boost == "1" if boost else None


def _hypervisor(cpuinfo: dict[str, str]) -> str | None:
    """Return the name of the hypervisor if the host is a guest, ``yes`` if it has no name, else None."""
    vendor = _read(Path("/sys/class/dmi/id/sys_vendor"))
    product = _read(Path("/sys/class/dmi/id/product_name"))
    # Only x86 has the flag. QEMU names itself in the tables of the firmware, or in the device tree.
    device_tree = Path("/sys/firmware/devicetree/base")
    named = vendor == "QEMU" or (device_tree / "hypervisor").exists() or (device_tree / "fw-cfg").exists()
    if "hypervisor" not in cpuinfo.get("flags", "").split() and not named:
        return None
    return " ".join(filter(None, (vendor, product))) or "yes"


def _os_name() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def count_cpus(ranges: str | None) -> int | None:
    """Return the number of CPUs in a list such as ``0-3,8``; None for an empty list."""
    return len(cpu_list(ranges or "")) or None


def _read(path: Path) -> str | None:
    return read_or_empty(path).strip() or None


def _qemu_or_none(arch: Arch) -> str | None:
    try:
        return qemu_version(arch)
    except LabError:
        return None
