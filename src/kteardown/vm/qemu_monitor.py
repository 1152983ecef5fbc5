"""The monitor of a running QEMU: why it ended, and what its CPUs do when nothing is heard of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket

from qemu.qmp import EventListener, ExecuteError, QMPClient, QMPError, Runstate

# An emulator on a loaded host answers late; one that does not answer for this long never will.
_ANSWER_S = 10.0

# QEMU hanging up is how every boot ends. The library logs it as an error, which without any handler
# would be printed.
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
        """Greet QEMU; False where it hung up instead."""
        try:
            await self._client.connect(connection)
        except QMPError:
            return False
        return True

    async def paused(self) -> str:
        """Wait until QEMU stops its CPUs by itself and return the state that it is in."""
        await self._paused.get()
        return await self.state()

    async def state(self) -> str:
        """``running``, ``internal-error`` and so on; ``not answering`` where QEMU does not say."""
        answer = await self._ask("query-status")
        return str(answer["status"]) if isinstance(answer, dict) else "not answering"

    async def registers(self) -> str:
        """Every CPU's registers, as the human monitor prints them; empty where QEMU does not answer."""
        answer = await self._ask("human-monitor-command", {"command-line": "info registers -a"})
        return answer.replace("\r", "") if isinstance(answer, str) else ""

    async def shutdown_reason(self) -> str:
        """Once QEMU has ended: ``guest-shutdown``, ``guest-reset`` and so on, empty where it gave none."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ANSWER_S):
                while self._client.runstate is Runstate.RUNNING:
                    await self._client.runstate_changed()
        told = [event["data"] for event in self._shutdown.history]
        return str(told[-1].get("reason", "")) if told and isinstance(told[-1], dict) else ""

    async def close(self) -> None:
        """End the session, whatever state it is in."""
        with contextlib.suppress(QMPError, OSError, EOFError):
            await self._client.disconnect()

    async def _ask(self, command: str, arguments: dict[str, object] | None = None) -> object:
        try:
            async with asyncio.timeout(_ANSWER_S):
                answer: object = await self._client.execute(command, arguments)
                return answer
        except (QMPError, ExecuteError, OSError, EOFError, TimeoutError):
            return None
