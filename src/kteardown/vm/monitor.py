"""QEMU asked over its monitor whether a guest that says nothing still runs."""

import asyncio
import contextlib
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass

import psutil
from qemu.qmp import EventListener, ExecuteError, QMPClient, QMPError, Runstate

_REPLY_S = 10.0
_DRIFT = re.compile(r"Host - Guest clock\s+(-?\d+) ms")
_HALTED = re.compile(r"\bHLT=([01])")
_CLOCK_S = 2.0
"""How often the guest's clock is told to whoever follows it."""
_STOPPED_S = 60.0
"""With all CPUs halted and no timer the guest's clock is stopped: nothing can wake such a guest."""
_SLOW_SHARE = 1 / 15
_SLOW_CPU_S = 240.0
"""The share of the limit that is enough, and the CPU seconds that QEMU must have needed for it."""
_HOST_S = 3600.0
"""A guest that executes nothing for this long, with a CPU that is not halted, is not the guest's
fault."""


class Monitor:
    def __init__(self) -> None:
        self._client = QMPClient("guest")
        self._shutdown = EventListener(names=["SHUTDOWN"])
        self._paused = EventListener(names=["STOP"])
        self._suspended = EventListener(names=["SUSPEND"])
        for listener in (self._shutdown, self._paused, self._suspended):
            self._client.register_listener(listener)
        self.wakes = 0
        """How often the guest was woken."""

    async def connect(self, connection: socket.socket) -> bool:
        """Connect to QEMU. Return False if it closed the connection."""
        try:
            await self._client.connect(connection)
        # If QEMU ends right after its greeting, the library raises these, also where it was
        # cancelled.
        except (QMPError, OSError, EOFError, AssertionError):
            if (task := asyncio.current_task()) and task.cancelling():
                raise asyncio.CancelledError from None
            return False
        return True

    async def paused(self) -> str:
        """Wait until QEMU stops its CPUs by itself, and return its state."""
        await self._paused.get()
        return await self.state()

    async def keep_awake(self) -> None:
        """Wake the guest whenever it suspends to memory: nothing else does. Runs until it is
        cancelled."""
        # The clock of a guest that counts instructions does not advance while it is suspended, so
        # when the host answers changes nothing in the guest. ``plugins/main_loop.c`` has what is
        # needed besides.
        while True:
            await self._suspended.get()
            await self._ask("system_wakeup")
            self.wakes += 1

    async def state(self) -> str:
        """Return ``running``, ``internal-error`` and so on, or ``not answering``."""
        answer = await self._ask("query-status")
        return str(answer["status"]) if isinstance(answer, dict) else "not answering"

    async def vcpu_threads(self) -> list[int]:
        """Return the thread ids of the virtual CPUs in their order; empty without an answer."""
        answer = await self._ask("query-cpus-fast")
        return [int(cpu["thread-id"]) for cpu in answer] if isinstance(answer, list) else []

    async def registers(self) -> str:
        """Return the registers of every CPU as the human monitor prints them; empty without an
        answer."""
        answer = await self._ask("human-monitor-command", {"command-line": "info registers -a"})
        return answer.replace("\r", "") if isinstance(answer, str) else ""

    async def guest_clock_lag_s(self) -> float | None:
        """Return by how many seconds the guest's clock is behind that of the host since the guest
        started.

        None if QEMU does not answer, or does not count instructions: then the clocks are the same.
        Reading it does not affect the guest's clock.
        """
        answer = await self._ask("human-monitor-command", {"command-line": "info jit"})
        drift = _DRIFT.search(answer) if isinstance(answer, str) else None
        return int(drift[1]) / 1000 if drift else None

    async def follow_clock(
        self, started: float, tell: Callable[[float], None], *, counts_instructions: bool
    ) -> None:
        """Tell the guest's clock every few seconds, in seconds since the guest started.

        ``started`` is the start by the clock of the event loop. Runs until it is cancelled.
        """
        while True:
            # In real time the guest's clock is that of the host.
            lag = await self.guest_clock_lag_s() if counts_instructions else 0.0
            if lag is not None:
                tell(asyncio.get_running_loop().time() - started - lag)
            await asyncio.sleep(_CLOCK_S)

    async def all_halted(self) -> bool:
        """Return whether every CPU waits for an interrupt; False where the registers do not show
        it."""
        halted = _HALTED.findall(await self.registers())
        return bool(halted) and set(halted) == {"1"}

    async def interrupt(self) -> bool:
        """Send a non-maskable interrupt to the guest. Return False if its board has none."""
        return await self._ask("inject-nmi") is not None

    async def shutdown_reason(self) -> str:
        """Wait until QEMU has ended; return ``guest-shutdown``, ``guest-reset`` and so on, or
        empty."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REPLY_S):
                while self._client.runstate is Runstate.RUNNING:
                    await self._client.runstate_changed()
        events = [event["data"] for event in self._shutdown.history]
        return str(events[-1].get("reason", "")) if events and isinstance(events[-1], dict) else ""

    async def close(self) -> None:
        """Close the connection, also if the boot is stopped meanwhile."""
        closing = asyncio.create_task(self._disconnect())
        try:
            await asyncio.wait([closing])
        finally:  # A connection that is half closed ends with a traceback.
            if not closing.done():
                await asyncio.wait([closing])

    async def _disconnect(self) -> None:
        with contextlib.suppress(QMPError, OSError, EOFError):
            await self._client.disconnect()

    async def _ask(self, command: str, arguments: dict[str, object] | None = None) -> object:
        try:
            async with asyncio.timeout(_REPLY_S):
                answer: object = await self._client.execute(command, arguments)
                return answer
        except (QMPError, ExecuteError, OSError, EOFError, TimeoutError):
            return None


class QemuStuckError(Exception):
    """QEMU runs and executes nothing, or does not answer."""


@dataclass
class GuestSilence:
    """Decides on the instruction clock when a guest that sends no records is hung.

    In real time it is hung after ``BootJob.silence_s`` seconds of the host. On the instruction
    clock a loaded host may take any time for a second of the guest, so the guest's own clock
    decides: the guest is hung after ``silence_s`` seconds of its clock, which are as many thousand
    million instructions. A fifteenth of them (``_SLOW_SHARE``) is enough once QEMU has used 240 s
    of CPU time (``_SLOW_CPU_S``), because the emulator is slow at loops of PAUSE. No shipped
    workload was seen to take a second of that clock without a record, sleeps excepted, which take
    no time of the host.

    ``cpu_s`` returns the CPU time that QEMU has used, in seconds.
    """

    monitor: Monitor
    limit_s: float
    cpu_s: Callable[[], float]
    _first: tuple[float, float, float] | None = None
    """Host time, guest time and CPU time at the first look since the last record."""
    _moved: float = 0.0
    """Host time at which the guest's clock was last seen to advance."""
    _guest: float = 0.0
    _wakes: int = 0

    async def is_hung(self, silent_s: float) -> str:
        """Return how the guest's clock advanced by the limit, or can advance no more; empty if
        neither."""
        lag = await self.monitor.guest_clock_lag_s()
        now = asyncio.get_running_loop().time()
        if lag is None:
            if silent_s >= _HOST_S:
                raise QemuStuckError(f"QEMU did not give the guest's clock for {silent_s:.0f} s")
            return ""
        guest = now - lag
        # While the guest is suspended, QEMU can move its clock to the next alarm of the PC's clock,
        # in a day.
        if self._wakes != self.monitor.wakes:
            self._first, self._wakes = None, self.monitor.wakes
        if self._first is None or now - self._first[0] > silent_s:
            self._first, self._moved, self._guest = (now, guest, self.cpu_s()), now, guest
        if guest - self._guest > 0.1:
            self._moved, self._guest = now, guest
        advanced = guest - self._first[1]
        is_slow = self.cpu_s() - self._first[2] >= _SLOW_CPU_S
        if advanced >= self.limit_s * (_SLOW_SHARE if is_slow else 1):
            return f"no record for {advanced:.0f} s of the guest's clock"
        if now - self._moved >= _STOPPED_S and await self.monitor.all_halted():
            return "no record, and every CPU is halted with no timer that could wake it"
        if now - self._moved >= _HOST_S:
            raise QemuStuckError(f"the guest executed nothing for {now - self._moved:.0f} s")
        return ""


def cpu_time_s(pid: int) -> float:
    """Return the CPU time of a process with its threads, in seconds; 0 if it has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system)
    return 0.0
