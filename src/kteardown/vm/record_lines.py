"""The lines of records that a guest sends through a port, within a limit."""

import asyncio
from collections.abc import Awaitable, Callable

from kteardown.vm.kernel_log import RecordsSeen

_CHUNK = 1 << 16
_LINE_MB = 1
_PORT_MB = 256
"""The most that a record, and all of a guest, may have; the largest boots write a few MB."""


class TooMuchError(Exception):
    """The guest writes more than records can have."""


class RecordLines(RecordsSeen):
    """Splits the received bytes into lines and calls ``on_line`` with each.

    ``started`` is the start of the machine on the clock of the event loop.
    """

    def __init__(self, on_line: Callable[[bytes], None], started: float) -> None:
        super().__init__()
        self._on_line = on_line
        self._started = started
        self._rest = bytearray()
        self._bytes = 0
        self.first_s: float | None = None
        """Seconds from ``started`` to the first complete line."""

    async def receive(
        self,
        stream: asyncio.StreamReader,
        every_s: float,
        is_hung: Callable[[float], Awaitable[str]],
    ) -> str:
        """Pass on lines. Return "" when the port is closed, or how the guest is hung.

        After each ``every_s`` without a line, ``is_hung`` is called with the seconds since the last
        line; it returns what it saw of a guest that is hung.
        """
        clock = asyncio.get_running_loop().time
        last_line = ask_at = clock()
        ask_at += every_s
        while True:
            try:
                async with asyncio.timeout_at(ask_at):
                    chunk = await stream.read(_CHUNK)
            except TimeoutError:
                if silence := await is_hung(clock() - last_line):
                    return silence
                ask_at = clock() + every_s
                continue
            if not chunk:
                return ""
            if b"\n" in chunk:
                last_line = clock()
                ask_at = last_line + every_s
                self.first_s = self.first_s or last_line - self._started
            self.feed(chunk)

    def feed(self, chunk: bytes) -> None:
        """Process the next bytes, which may be any number. Raises TooMuchError."""
        *lines, remainder = chunk.split(b"\n")
        for line in lines:
            record = bytes(self._rest + line)
            self._rest.clear()
            self.lines += 1
            self.note(record)
            self._on_line(record)
        self._rest += remainder
        self.cut = len(self._rest)
        self._bytes += len(chunk)
        if len(self._rest) > _LINE_MB << 20:
            raise TooMuchError(f"the guest wrote a record of more than {_LINE_MB} MB")
        if self._bytes > _PORT_MB << 20:
            raise TooMuchError(f"the guest wrote more than {_PORT_MB} MB of records")
