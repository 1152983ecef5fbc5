"""Read the records of machines from consoles: serial lines, their logs, whatever is between.

A record is one line that the machine sent (agent/machine/init.c):

    @kteardown TOKEN BOOT ATTEMPT NUMBER CRC {...}

``ATTEMPT`` is of the kernel's random boot id, ``NUMBER`` counts from 0, and ``CRC`` is the CRC-32 of all that
is between the mark and it, and of the record. Each line is judged alone: two machines may be in one log, and
a line that lost a character is as good as absent. Most lines are sent twice. Line 0 describes the machine,
the last one says how many there are. Everything else is what the kernel printed. A console is hostile.
"""

import re
import zlib
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from kteardown.errors import InputError, failing
from kteardown.model.record import BootEnd, Hello, Record, parse
from kteardown.vm.job import BootJob
from kteardown.vm.kernel_log import Ending, RecordsSeen, said_at_end
from kteardown.vm.qemu import GIVEN

_LINE = re.compile(
    rb"@kteardown (?P<summed>(?P<token>[0-9a-f]{16}) (?P<boot>\d{1,6}) (?P<attempt>[0-9a-f]{8}) "
    rb"(?P<number>\d{1,7}) )(?P<crc>[0-9a-f]{8}) (?P<record>\{.*\})"
)
_MARK = b"@kteardown "
_SENT = b'{"type":"sent",'
_NAMED = re.compile(rb"kteardown\.boot=([0-9a-f]{16}):(\d{1,6})\b")
_LONGEST = 1 << 16
_MOST_BYTES, _MOST_BOOTS = 1 << 28, 10_000
_CONSOLE_LINES, _CONSOLE_LINE = 2000, 2000
_MACHINE = 0
_Facts = dict[str, str | dict[str, str | bool]]
_facts: TypeAdapter[_Facts] = TypeAdapter(_Facts)


class Sent(BaseModel):
    """The last line of a boot. ``throttled`` counts events of a processor that was too hot; -1: unknown."""

    records: int
    status: int
    uptime_ms: int
    throttled: int = -1
    bytes: int = 0
    zone: int = 0
    """The size of the memory to which the ``bytes`` before it were written; 0: a serial line."""


@dataclass
class LoggedBoot:
    """One boot of one machine, as far as the consoles have it."""

    token: str
    boot: int
    attempt: str
    lines: dict[int, bytes] = field(default_factory=dict)
    console: deque[str] = field(default_factory=deque)

    @property
    def machine(self) -> _Facts:
        """What the machine says of itself, its settings made steady, and the build ID of its kernel."""
        try:
            return _facts.validate_json(self.lines.get(_MACHINE, b"{}"))
        except ValidationError:
            return {}

    @property
    def last(self) -> Sent | None:
        """The last line."""
        with suppress(ValidationError, ValueError):
            return Sent.model_validate_json(self.lines[max(self.lines)])
        return None

    @property
    def sent(self) -> Sent | None:
        """The last line, if all before it are there."""
        return self.last if self.last and self.last.records == len(self.lines) - 2 else None

    @property
    def raw_records(self) -> list[bytes]:
        """The lines of the agent, as far as they are there."""
        lines = [line for number, line in sorted(self.lines.items()) if number != _MACHINE]
        return lines[:-1] if self.sent else lines

    def records(self) -> list[Record]:
        """Return the records of the agent. Raises ValidationError."""
        return [parse(line) for line in self.raw_records]

    def lacks(self, cpus: int) -> str:
        """Return of what the machine has too little: space for records, or possible CPUs; empty: nothing."""
        if (last := self.last) and 0 < last.zone < last.bytes:
            return f"records: they have {last.bytes >> 10} kB, its pmsg zone of ramoops {last.zone >> 10} kB"
        with suppress(IndexError, ValidationError):
            hello = parse(self.raw_records[0])
            if isinstance(hello, Hello) and hello.cpus_possible < cpus:
                return f"possible CPUs: the machine has {hello.cpus_possible}, and the plan {cpus}"
        return ""

    def end(self, ending: Ending) -> BootEnd:
        """Return how the boot ended, by what is on the console."""
        sent = self.sent
        seen = RecordsSeen(lines=len(self.lines), bye=sent is not None)
        for line in self.raw_records if sent else ():
            seen.note(line)
        return BootEnd(
            **said_at_end("\n".join(self.console), seen, ending),
            duration_s=sent.uptime_ms / 1000 if sent else 0.0,
            first_record_s=None,
            command=[],
            host_load=0.0,
        )

    def facts(self) -> dict[str, Any]:
        """Return what is known of the machine, in the form of ``vm.host.facts``. Raises ValidationError."""
        hello = next((record for record in self.records() if isinstance(record, Hello)), None)
        seen = {"mitigations": hello.mitigations, "hypervisor": hello.hypervisor or None} if hello else {}
        return {**self.machine, **seen}


class Consoles:
    """What some consoles printed: the boots in the order in which they began, and the damaged lines."""

    def __init__(self) -> None:
        self.boots: dict[tuple[str, int, str], LoggedBoot] = {}
        self.damaged = 0
        self.bytes = 0
        """The size of what is kept: all records, and the last lines of each boot's console."""
        self._before: deque[str] = deque()
        """What no boot is known to have printed."""
        self.next_console()

    def next_console(self) -> None:
        self._take_before()
        self._now: LoggedBoot | None = None
        self._ended = False

    def add(self, line: bytes) -> None:
        """Add the next line of a console, without its end."""
        found = _LINE.search(line)
        if found and zlib.crc32(found["summed"] + found["record"]) == int(found["crc"], 16):
            boot = self._begin(found["token"].decode(), int(found["boot"]), found["attempt"].decode())
            record = found["record"]
            self._ended = record.startswith(_SENT)
            if boot.lines.setdefault(int(found["number"]), record) is record:
                self.bytes += len(record)
            return
        self.damaged += _MARK in line
        now, named = self._now, _NAMED.search(line)
        if named and (now is None or self._ended or now.boot != int(named[2])):
            # A kernel that panics before its first process prints its command line with the log.
            now, self._ended = self._begin(named[1].decode(), int(named[2]), ""), False
        if line.strip():
            console = self._before if now is None or self._ended else now.console
            self._keep(console, line[:_CONSOLE_LINE].decode(errors="replace"))

    def _begin(self, *key: *tuple[str, int, str]) -> LoggedBoot:
        boot = self.boots.setdefault(key, LoggedBoot(*key))
        if self._now is not boot:
            self._now = boot
            for line in self._take_before():
                self._keep(boot.console, line)
        return boot

    def _take_before(self) -> list[str]:
        lines = list(self._before)
        self.bytes -= sum(map(len, lines))
        self._before.clear()
        return lines

    def _keep(self, console: deque[str], line: str) -> None:
        if len(console) == _CONSOLE_LINES:
            self.bytes -= len(console.popleft())
        self.bytes += len(line)
        console.append(line)


def read_logs(files: Sequence[Path]) -> Consoles:
    """Read logs one after the other, in bounded memory. Raises InputError."""
    consoles = Consoles()
    for path in files:
        consoles.next_console()
        hint = "name the log of a serial line."
        with failing(f"{path}: cannot be read", hint=hint), path.open("rb") as log:
            # What is longer than a record can be is read in parts.
            while line := log.readline(_LONGEST):
                consoles.add(line.rstrip(b"\r\n"))
                if consoles.bytes > _MOST_BYTES or len(consoles.boots) > _MOST_BOOTS:
                    raise InputError(
                        f"{path}: more than {_MOST_BYTES >> 20} MB of boots, or {_MOST_BOOTS} boots",
                        hint="import fewer logs at once, those of whole blocks together.",
                    )
    return consoles


def kernel_line(job: BootJob, named: str, line: str) -> str:
    """Return the command line of the kernel of a boot that records call ``named``: its token and number.

    ``line``: the serial line of the machine for records and console, such as ``ttyS1``. The arguments of the
    experiment come last, and so override the others.
    """
    given = GIVEN["machine_arguments"].format(
        line=line, named=named, job=job, possible=job.possible_cpus or job.cpus
    )
    return " ".join([*GIVEN["kernel_arguments"], given, *job.kernel_args])
