"""Whether this host counts events of the processor (perf_event_open), for guests as well."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

from kteardown.model.arch import ARCHITECTURES

_HARDWARE, _INSTRUCTIONS = 0, 1
_ATTR_SIZE = 72
_DISABLED, _EXCLUDE_HV, _EXCLUDE_HOST = 1 << 0, 1 << 6, 1 << 19


def why_not() -> str:
    """Return why instructions of a guest's virtual CPU cannot be counted on this host; empty if they can.

    A counter for this thread that counts only while it runs a guest is opened and closed.
    """
    machine = platform.machine()
    number = next((arch.perf_event_open for arch in ARCHITECTURES.values() if arch.machine == machine), None)
    if number is None:
        return f"the counters of architecture {machine} are not supported"
    flags = _DISABLED | _EXCLUDE_HV | _EXCLUDE_HOST
    attr = struct.pack("=IIQQQQQIIQQ", _HARDWARE, _ATTR_SIZE, _INSTRUCTIONS, 0, 0, 0, flags, 0, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(number, ctypes.c_char_p(attr), 0, -1, -1, 0)
    if fd >= 0:
        os.close(fd)
        return ""
    error = ctypes.get_errno()
    if error in (errno.EACCES, errno.EPERM):
        return "this user may not count events (kernel.perf_event_paranoid)"
    if error in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return "the processor, or the hypervisor under this host, has no counters"
    return os.strerror(error)
