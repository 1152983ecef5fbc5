"""The records port as the lab hears it: bytes in, whole lines out, and what they amounted to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pydantic import ValidationError

from kteardown.model.record import AgentError, Bye, parse
from kteardown.vm.console import RecordsSeen

_CHUNK = 1 << 16


class RecordLines:
    """Cuts what arrives into lines and hands each over; ``started`` is on the clock of the event loop."""

    def __init__(self, on_line: Callable[[bytes], None], started: float) -> None:
        self._on_line = on_line
        self._started = started
        self._rest = b""
        self._seen = RecordsSeen()
        self.first_s: float | None = None
        """Seconds from ``started`` to the first whole line."""

    async def follow(self, stream: asyncio.StreamReader, silence_s: float) -> bool:
        """Hand over lines until the port closes (True) or none has come for ``silence_s`` (False)."""
        clock = asyncio.get_running_loop().time
        heard = clock()
        while True:
            try:
                async with asyncio.timeout_at(heard + silence_s):
                    chunk = await stream.read(_CHUNK)
            except TimeoutError:
                return False
            if not chunk:
                return True
            if b"\n" in chunk:
                heard = clock()
                self.first_s = self.first_s or heard - self._started
            self.feed(chunk)

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, in pieces of any size."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._note(line)
            self._on_line(line)

    def seen(self) -> RecordsSeen:
        """What came so far."""
        seen = self._seen
        return RecordsSeen(seen.lines, seen.bye, seen.error, len(self._rest))

    def _note(self, line: bytes) -> None:
        bye, error = self._seen.bye, self._seen.error
        # Only these two say how the boot goes; the rest is for others to read.
        if b'"bye"' in line or b'"error"' in line:
            try:
                record = parse(line)
            except ValidationError:
                record = None
            bye = bye or isinstance(record, Bye)
            error = record.detail if isinstance(record, AgentError) else error
        self._seen = RecordsSeen(self._seen.lines + 1, bye, error)
