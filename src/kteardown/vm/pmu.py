"""Whether this host counts events of the processor (perf_event_open), for guests as well."""

import ctypes
import errno
import os
import platform
import struct
from pathlib import Path

from kteardown.model.arch import ARCHITECTURES

_HARDWARE, _INSTRUCTIONS = 0, 1
_ATTR_SIZE = 72
_DISABLED, _EXCLUDE_HV, _EXCLUDE_HOST = 1 << 0, 1 << 6, 1 << 19


def why_not_inside(root: Path = Path("/")) -> str:
    """Return why guests under KVM have no counters of their own on this host; empty if that is not known.

    KVM counts for them itself, so what this user may count does not matter.
    """
    allowed = root / "sys/module/kvm/parameters/enable_pmu"
    if allowed.is_file() and allowed.read_text().strip() in ("N", "0"):
        return "KVM gives guests no counters (its parameter enable_pmu is off)"
    return _reason(_error())


def why_not() -> str:
    """Return why instructions of a guest's virtual CPU cannot be counted on this host; empty if they can."""
    error = _error()
    if error in (errno.EACCES, errno.EPERM):
        return "this user may not count events (kernel.perf_event_paranoid)"
    return _reason(error) or (os.strerror(error) if error else "")


def _reason(error: int) -> str:
    if error == errno.ENOSYS:
        return f"the counters of architecture {platform.machine()} are not supported"
    if error in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return "the processor, or the hypervisor under this host, has no counters"
    return ""


def _error() -> int:
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
