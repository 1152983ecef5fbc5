"""Read the records of machines from consoles: serial lines, their logs, whatever is between.

A record is one line that the machine sent (agent/machine/init.c):

    @kteardown RUN BOOT ATTEMPT NUMBER MAC {...}

``ATTEMPT`` is of the kernel's random boot id, ``NUMBER`` counts from 0, and ``MAC`` is the
HMAC-SHA256 of all that is between the mark and it, and of the record, cut to 128 bits. Each boot
has a key of its own, which is on the command line of its kernel and in no line: so no kernel speaks
for another one. Each line is judged alone: two machines may be in one log, and a line that lost a
character is as good as absent. Most lines are sent twice. Line 0 describes the machine, the last
one says how many there are. Everything else is what the kernel printed. A console is hostile.
"""

import hmac
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from kteardown.errors import InputError, failing
from kteardown.model.record import AgentError, BootEnd, Hello, Record, parse
from kteardown.vm.job import BootJob
from kteardown.vm.kernel_log import Ending, RecordsSeen, said_at_end
from kteardown.vm.qemu_command import GIVEN

_LINE = re.compile(
    rb"@kteardown (?P<signed>(?P<token>[0-9a-f]{16}) (?P<boot>\d{1,6}) (?P<attempt>[0-9a-f]{8}) "
    rb"(?P<number>\d{1,7}) )(?P<mac>[0-9a-f]{32}) (?P<record>\{.*\})"
)
_MARK = b"@kteardown "
_SENT = b'{"type":"sent",'
_NAMED = re.compile(rb"kteardown\.boot=([0-9a-f]{16}):(\d{1,6}):([0-9a-f]{32})\b")
_KEY_BYTES = 16
_LONGEST = 1 << 16
_MOST_BYTES = 1 << 28
_MOST_BOOTS = 10_000
_CONSOLE_LINES = 2000
_CONSOLE_LINE = 2000
_MACHINE = 0
_Facts = dict[str, str | dict[str, str | bool]]
_facts: TypeAdapter[_Facts] = TypeAdapter(_Facts)
KeyOf = Callable[[str, int], bytes | None]
"""Returns the key of a boot of a run; None if there is no such run."""


def key_of_boot(secret: bytes, run: str, boot: int) -> bytes:
    """Return the key of one boot, from which neither the secret of its run nor another key
    follows."""
    return hmac.digest(secret, f"{run} {boot}".encode(), "sha256")[:_KEY_BYTES]


def mac_of(key: bytes, text: bytes) -> bytes:
    """Return the MAC of a line as it is written."""
    return hmac.digest(key, text, "sha256")[:_KEY_BYTES].hex().encode()


class Sent(BaseModel):
    """The last line of a boot. ``throttled`` counts events of a processor that was too hot; -1:
    unknown."""

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
    files: set[int] = field(default_factory=set)
    """The numbers of the logs that have something of it."""
    differs: bool = False
    """Whether two whole lines with one number are not the same."""
    ended: bool = False
    """Whether its last line was there."""

    @property
    def machine(self) -> _Facts:
        """What the machine says of itself, its settings made steady, and the build ID of its
        kernel."""
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
        """The lines of the agent; of a boot without its end, those before the first that is
        missing."""
        whole = takewhile(self.lines.__contains__, count(_MACHINE + 1))
        return [self.lines[number] for number in whole if not self.lines[number].startswith(_SENT)]

    @property
    def error(self) -> str:
        """What the agent could not do, after a colon; empty if it says nothing of it."""
        record = self._record(-1)
        return f": {record.detail}" if isinstance(record, AgentError) else ""

    def _record(self, position: int) -> Record | None:
        """Return a record of the agent; None if there is none, or if it is not one."""
        with suppress(IndexError, ValidationError):
            return parse(self.raw_records[position])
        return None

    def lacks(self, cpus: int) -> str:
        """Return of what the machine has too little: space for records, or possible CPUs; empty:
        nothing."""
        if (last := self.last) and 0 < last.zone < last.bytes:
            return (
                f"too little space for records: they take {last.bytes >> 10} kB, and the pmsg zone "
                f"of ramoops has {last.zone >> 10} kB"
            )
        hello = self._record(0)
        if isinstance(hello, Hello) and hello.cpus_possible < cpus:
            return (
                f"too few possible CPUs: the machine has {hello.cpus_possible}, and the plan "
                f"needs {cpus}"
            )
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
        """Return what is known of the machine, in the form of ``vm.host.facts``."""
        hello = self._record(0)
        facts = dict[str, Any](self.machine)
        if isinstance(hello, Hello):
            facts |= {"mitigations": hello.mitigations, "hypervisor": hello.hypervisor or None}
        return facts


class Consoles:
    """What some consoles printed: the boots in the order in which they began, and the damaged
    lines.

    ``key_of`` gives the keys with which lines are verified. What is printed while no boot is known
    to run can be of any kernel: it is of a boot only if that boot's key follows, as in the log of a
    panic.
    """

    def __init__(self, key_of: KeyOf, *, alone: bool = False) -> None:
        """``alone``: no other boot can have printed what is before the first line of one."""
        self._key_of = key_of
        self._alone = alone
        self.boots: dict[tuple[str, int, str], LoggedBoot] = {}
        self.damaged = 0
        self.strange = 0
        """Lines of runs whose keys are not known."""
        self.bytes = 0
        """The size of what is kept: all records, and the last lines of each boot's console."""
        self._file = -1
        self._before: deque[str] = deque()
        """What no boot is known to have printed."""
        self.next_console()

    def next_console(self) -> None:
        self._take_before()
        self._file += 1
        self._now: LoggedBoot | None = None

    def add(self, line: bytes) -> None:
        """Add the next line of a console, without its end."""
        match = _LINE.search(line)
        if match and self._is_signed(match):
            self._add_record(match)
            return
        self.damaged += _MARK in line
        if (argument := _NAMED.search(line)) and self._is_key(argument):
            # A kernel that panics before its first process prints its command line with the log.
            now = self._now
            key = (argument[1].decode(), int(argument[2]))
            if now is None or (now.token, now.boot) != key:
                self._begin((*key, ""), _of_this_kernel(self._take_before()))
        if line.strip():
            self._print(line[:_CONSOLE_LINE].decode(errors="replace"))

    def _is_signed(self, match: re.Match[bytes]) -> bool:
        key = self._key_of(match["token"].decode(), int(match["boot"]))
        self.strange += key is None
        return key is not None and hmac.compare_digest(
            mac_of(key, match["signed"] + match["record"]), match["mac"]
        )

    def _is_key(self, argument: re.Match[bytes]) -> bool:
        key = self._key_of(argument[1].decode(), int(argument[2]))
        return key is not None and hmac.compare_digest(key.hex().encode(), argument[3])

    def _add_record(self, match: re.Match[bytes]) -> None:
        number = int(match["number"])
        record = match["record"]
        before = self._take_before()
        name = match["token"].decode(), int(match["boot"]), match["attempt"].decode()
        boot = self._begin(name, before if self._alone else ())
        kept = boot.lines.setdefault(number, record)
        boot.differs |= kept != record
        self.bytes += len(record) if kept is record else 0
        boot.ended |= record.startswith(_SENT)
        # What follows its end is of the next kernel, or was written by one that repeats these
        # lines.
        if boot.ended:
            self._now = None

    def _begin(self, name: tuple[str, int, str], before: Iterable[str]) -> LoggedBoot:
        boot = self._now = self.boots.setdefault(name, LoggedBoot(*name))
        boot.files.add(self._file)
        for text in before:
            self._print(text)
        return boot

    def _print(self, text: str) -> None:
        self._keep(self._before if self._now is None else self._now.console, text)

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


def _of_this_kernel(lines: list[str]) -> list[str]:
    """Return the lines from the one with which a kernel begins its log; all if there is none."""
    starts = [number for number, line in enumerate(lines) if "Linux version " in line]
    return lines[starts[-1] :] if starts else lines


def read_logs(files: Sequence[Path], key_of: KeyOf) -> Consoles:
    """Read logs one after the other, in bounded memory. Raises InputError."""
    consoles = Consoles(key_of)
    for number, path in enumerate(files):
        if number:
            consoles.next_console()
        hint = "name the log of a serial line."
        with failing(f"{path}: cannot be read", hint=hint), path.open("rb") as log:
            # What is longer than a record can be is read in parts.
            while line := log.readline(_LONGEST):
                consoles.add(line.rstrip(b"\r\n"))
                if consoles.bytes > _MOST_BYTES or len(consoles.boots) > _MOST_BOOTS:
                    raise InputError(
                        f"{path}: more than {_MOST_BYTES >> 20} MB of boots, or {_MOST_BOOTS} "
                        "boots",
                        hint="import fewer logs at once; keep the logs of a block together.",
                    )
    return consoles


def named(run: str, boot: int, key: bytes) -> str:
    """Return what the command line of a kernel calls a boot."""
    return f"{run}:{boot}:{key.hex()}"


def kernel_line(job: BootJob, named: str, line: str) -> str:
    """Return the command line of the kernel of a boot that is ``named``: its run, number and key.

    ``line``: the serial line of the machine for records and console, such as ``ttyS1``. The
    arguments of the experiment come last, and so override the others.
    """
    given = GIVEN["machine_arguments"].format(
        line=line, named=named, job=job, possible=job.possible_cpus or job.cpus
    )
    return " ".join([*GIVEN["kernel_arguments"], given, *job.kernel_args])
