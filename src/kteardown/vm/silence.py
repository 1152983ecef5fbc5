"""Decide when a guest that sends no records is hung.

In real time it is hung after ``BootJob.silence_s`` seconds of the host. On the instruction clock a loaded
host may take any time for a second of the guest, so the guest's own clock decides: it is hung after
``silence_s`` seconds of it, which are as many thousand million instructions, or after a sixth of them that
took five minutes of the host: the emulator is slow at loops of PAUSE. The longest time without a record that
any shipped workload was seen to take there is below one second, sleeps excepted, which take no time of the
host.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from kteardown.vm.qemu_monitor import Monitor

_EVERY_S = 15.0
"""Host seconds between two looks at the guest's clock; none during records that follow each other."""
_STOPPED_S = 60.0
"""With all CPUs halted and no timer the guest's clock is stopped: nothing can wake such a guest."""
_SLOW_SHARE, _SLOW_CPU_S = 1 / 15, 240.0
"""The share of the limit that is enough, and the CPU seconds that QEMU must have needed for it."""
_HOST_S = 3600.0
"""A guest that executes nothing for this long, with a CPU that is not halted, is not the guest's fault."""


class QemuStuckError(Exception):
    """QEMU runs and executes nothing, or does not answer."""


class HostSilence:
    """The rule in real time.

    ``is_hung`` is to be called after each ``every_s`` host seconds without a record; once it has returned
    True, ``detail`` is what it saw.
    """

    def __init__(self, limit_s: float) -> None:
        self.every_s = limit_s
        self.detail = f"no record for {limit_s:g} s"

    async def is_hung(self, silent_s: float) -> bool:
        """Return True: it is called after the limit."""
        return silent_s >= self.every_s * 0.99


class GuestSilence:
    """The rule on the instruction clock. ``cpu_s`` returns the CPU time that QEMU has used, in seconds."""

    def __init__(
        self, monitor: Monitor, limit_s: float, cpu_s: Callable[[], float], every_s: float = _EVERY_S
    ) -> None:
        self.every_s = every_s
        self.detail = ""
        self._monitor = monitor
        self._limit_s = limit_s
        self._cpu_s = cpu_s
        self._first: tuple[float, float, float] | None = None
        """Host time, guest time and CPU time at the first look since the last record."""
        self._moved = 0.0
        """Host time at which the guest's clock was last seen to advance."""
        self._guest = 0.0

    async def is_hung(self, silent_s: float) -> bool:
        """Return whether the guest's clock has advanced by the limit, or can advance no more."""
        lag = await self._monitor.guest_clock_lag_s()
        now = asyncio.get_running_loop().time()
        if lag is None:
            if silent_s >= _HOST_S:
                raise QemuStuckError(f"QEMU did not give the guest's clock for {silent_s:.0f} s")
            return False
        guest = now - lag
        if self._first is None or now - self._first[0] > silent_s:
            self._first, self._moved, self._guest = (now, guest, self._cpu_s()), now, guest
        if guest - self._guest > 0.1:
            self._moved, self._guest = now, guest
        advanced = guest - self._first[1]
        is_slow = self._cpu_s() - self._first[2] >= _SLOW_CPU_S
        if advanced >= self._limit_s * (_SLOW_SHARE if is_slow else 1):
            self.detail = f"no record for {advanced:.0f} s of the guest's clock"
            return True
        if now - self._moved >= _STOPPED_S and await self._monitor.all_halted():
            self.detail = "no record, and every CPU is halted with no timer that could wake it"
            return True
        if now - self._moved >= _HOST_S:
            raise QemuStuckError(f"the guest executed nothing for {now - self._moved:.0f} s")
        return False


def cpu_time_s(pid: int) -> float:
    """Return the CPU time of a process with its threads, in seconds; 0 if it has ended."""
    try:
        # The name in parentheses may have spaces; utime and stime are the 14th and 15th fields of the line.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
