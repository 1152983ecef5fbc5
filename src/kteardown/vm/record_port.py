"""The lab's end of the records port: split the received bytes into lines, and summarize them."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from pydantic import ValidationError

from kteardown.model.record import AgentError, Bye, parse
from kteardown.vm.console import RecordsSeen

_CHUNK = 1 << 16
_LINE_MB, _PORT_MB = 1, 256
"""The most that a record, and all of a guest, may have; the largest boots write a few MB."""


class TooMuchError(Exception):
    """The guest writes more than records can have."""


class RecordLines:
    """Splits the received bytes into lines and calls ``on_line`` with each.

    ``started`` is the start of the machine on the clock of the event loop.
    """

    def __init__(self, on_line: Callable[[bytes], None], started: float) -> None:
        self._on_line = on_line
        self._started = started
        self._rest = bytearray()
        self._bytes = 0
        self._seen = RecordsSeen()
        self.first_s: float | None = None
        """Seconds from ``started`` to the first complete line."""

    async def receive(
        self, stream: asyncio.StreamReader, every_s: float, is_hung: Callable[[float], Awaitable[bool]]
    ) -> bool:
        """Pass on lines. Return True when the port is closed, False if the guest is hung.

        After each ``every_s`` without a line, ``is_hung`` is called with the seconds since the last line.
        """
        clock = asyncio.get_running_loop().time
        last_line = ask_at = clock()
        ask_at += every_s
        while True:
            try:
                async with asyncio.timeout_at(ask_at):
                    chunk = await stream.read(_CHUNK)
            except TimeoutError:
                if await is_hung(clock() - last_line):
                    return False
                ask_at = clock() + every_s
                continue
            if not chunk:
                return True
            if b"\n" in chunk:
                last_line = clock()
                ask_at = last_line + every_s
                self.first_s = self.first_s or last_line - self._started
            self.feed(chunk)

    def feed(self, chunk: bytes) -> None:
        """Process the next bytes, which may be any number. Raises TooMuchError."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            whole = bytes(self._rest + line)
            self._rest.clear()
            self._seen.lines += 1
            # Only these two types of records decide the outcome of the boot.
            if b'"bye"' in whole or b'"error"' in whole:
                with suppress(ValidationError):
                    record = parse(whole)
                    self._seen.bye |= isinstance(record, Bye)
                    self._seen.error = record.detail if isinstance(record, AgentError) else self._seen.error
            self._on_line(whole)
        self._rest += rest
        self._bytes += len(chunk)
        if len(self._rest) > _LINE_MB << 20:
            raise TooMuchError(f"the guest wrote a record of more than {_LINE_MB} MB")
        if self._bytes > _PORT_MB << 20:
            raise TooMuchError(f"the guest wrote more than {_PORT_MB} MB of records")

    def seen(self) -> RecordsSeen:
        """Return a summary of what was received so far."""
        return replace(self._seen, cut=len(self._rest))
