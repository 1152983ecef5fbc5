"""Facts about the host, for the ``machine`` of result.json, its QEMU, and its counters of events."""

import ctypes
import errno
import os
import platform
import re
import struct
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import psutil

from kteardown.errors import LabError, MissingError
from kteardown.model.arch import ARCHITECTURES, Arch
from kteardown.paths import read_or_empty
from kteardown.vm.cpu_pinning import cpu_list

_SYS = Path("/sys/devices/system/cpu")
_HARDWARE, _INSTRUCTIONS = 0, 1
_ATTR_SIZE = 72
_DISABLED, _EXCLUDE_HV, _EXCLUDE_HOST = 1 << 0, 1 << 6, 1 << 19


def qemu_version(arch: Arch) -> str:
    """Return the version of QEMU for ``arch``, such as ``7.2.22``. Raises LabError if it is not installed."""
    try:
        output = subprocess.run(
            [ARCHITECTURES[arch].qemu, "--version"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise missing_qemu(arch) from error
    version = re.search(r"version (\d[\w.]*)", output)
    return version[1] if version else output.strip()


def missing_qemu(arch: Arch) -> MissingError:
    known = ARCHITECTURES[arch]
    return MissingError(f"{known.qemu} is not installed", [known.qemu_package])


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
    packages = {_read(file) for file in _SYS.glob("cpu[0-9]*/topology/physical_package_id")}
    off, boost = _read(_SYS / "intel_pstate/no_turbo"), _read(_SYS / "cpufreq/boost")
    os_name, qemu = None, dict.fromkeys(get_args(Arch), "")
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
        "clocksource": _read(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        "hypervisor": _hypervisor(cpuinfo),
        "mitigations": {name: text for name, text in found.items() if text and text != "Not affected"},
        "memory_kb": psutil.virtual_memory().total // 1024,
        "kernel": platform.release(),
        "os": os_name,
        "qemu": {arch: version or None for arch, version in qemu.items()},
    }


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


def count_cpus(ranges: str | None) -> int | None:
    """Return the number of CPUs in a list such as ``0-3,8``; None for an empty list."""
    return len(cpu_list(ranges or "")) or None


def _read(path: Path) -> str | None:
    return read_or_empty(path).strip() or None


def why_guests_have_no_counters(root: Path = Path("/")) -> str:
    """Return why guests under KVM have no counters of their own on this host; empty if that is not known."""
    # KVM counts for them itself, so what this user may count does not matter.
    allowed = root / "sys/module/kvm/parameters/enable_pmu"
    if allowed.is_file() and allowed.read_text().strip() in ("N", "0"):
        return "KVM gives guests no counters (its parameter enable_pmu is off)"
    return _no_counters(_counter_error())


def why_no_counters() -> str:
    """Return why instructions of a guest's virtual CPU cannot be counted on this host; empty if they can."""
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
    """Return the error of opening a counter for this thread that counts only while it runs a guest; or 0."""
    machine = platform.machine()
    number = next((arch.perf_event_open for arch in ARCHITECTURES.values() if arch.machine == machine), None)
    if number is None:
        return errno.ENOSYS
    flags = _DISABLED | _EXCLUDE_HV | _EXCLUDE_HOST
    attr = struct.pack("=IIQQQQQIIQQ", _HARDWARE, _ATTR_SIZE, _INSTRUCTIONS, 0, 0, 0, flags, 0, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(number, ctypes.c_char_p(attr), 0, -1, -1, 0)
    if fd < 0:
        return ctypes.get_errno()
    os.close(fd)
    return 0
