"""The monitor of a running QEMU: why it ended, and the state of the CPUs of a silent guest."""

import asyncio
import contextlib
import logging
import re
import socket

from qemu.qmp import EventListener, ExecuteError, QMPClient, QMPError, Runstate

# QEMU answers late on a loaded host. After this time, no answer is expected any more.
_ANSWER_S = 10.0

_DRIFT = re.compile(r"Host - Guest clock\s+(-?\d+) ms")
_HALTED = re.compile(r"\bHLT=([01])")

# Every boot ends with QEMU closing the connection. The library logs this as an error, which would be
# printed without a handler.
logging.getLogger("qemu.qmp").addHandler(logging.NullHandler())


class Monitor:
    """One QMP session over a connected socket."""

    def __init__(self) -> None:
        self._client = QMPClient("guest")
        self._shutdown = EventListener(names=["SHUTDOWN"])
        self._paused = EventListener(names=["STOP"])
        self._client.register_listener(self._shutdown)
        self._client.register_listener(self._paused)

    async def connect(self, connection: socket.socket) -> bool:
        """Connect to QEMU. Return False if it closed the connection."""
        try:
            await self._client.connect(connection)
        except QMPError:
            return False
        return True

    async def paused(self) -> str:
        """Wait until QEMU stops its CPUs by itself, and return its state."""
        await self._paused.get()
        return await self.state()

    async def state(self) -> str:
        """Return ``running``, ``internal-error`` and so on, or ``not answering``."""
        answer = await self._ask("query-status")
        return str(answer["status"]) if isinstance(answer, dict) else "not answering"

    async def vcpu_threads(self) -> list[int]:
        """Return the thread ids of the virtual CPUs in their order; empty without an answer."""
        answer = await self._ask("query-cpus-fast")
        return [int(cpu["thread-id"]) for cpu in answer] if isinstance(answer, list) else []

    async def registers(self) -> str:
        """Return the registers of every CPU as the human monitor prints them; empty without an answer."""
        answer = await self._ask("human-monitor-command", {"command-line": "info registers -a"})
        return answer.replace("\r", "") if isinstance(answer, str) else ""

    async def guest_clock_lag_s(self) -> float | None:
        """Return by how many seconds the guest's clock is behind that of the host since the guest started.

        None if QEMU does not answer, or does not count instructions: then the clocks are the same. Reading it
        does not affect the guest's clock.
        """
        answer = await self._ask("human-monitor-command", {"command-line": "info jit"})
        found = _DRIFT.search(answer) if isinstance(answer, str) else None
        return int(found[1]) / 1000 if found else None

    async def all_halted(self) -> bool:
        """Return whether every CPU waits for an interrupt; False where the registers do not show it."""
        halted = _HALTED.findall(await self.registers())
        return bool(halted) and set(halted) == {"1"}

    async def interrupt(self) -> bool:
        """Send a non-maskable interrupt to the guest. Return False if its board has none."""
        return await self._ask("inject-nmi") is not None

    async def shutdown_reason(self) -> str:
        """Wait until QEMU has ended and return ``guest-shutdown``, ``guest-reset`` and so on.

        Return an empty string if QEMU gave no reason.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ANSWER_S):
                while self._client.runstate is Runstate.RUNNING:
                    await self._client.runstate_changed()
        events = [event["data"] for event in self._shutdown.history]
        return str(events[-1].get("reason", "")) if events and isinstance(events[-1], dict) else ""

    async def close(self) -> None:
        """End the session in any state."""
        with contextlib.suppress(QMPError, OSError, EOFError):
            await self._client.disconnect()

    async def _ask(self, command: str, arguments: dict[str, object] | None = None) -> object:
        try:
            async with asyncio.timeout(_ANSWER_S):
                answer: object = await self._client.execute(command, arguments)
                return answer
        except (QMPError, ExecuteError, OSError, EOFError, TimeoutError):
            return None
