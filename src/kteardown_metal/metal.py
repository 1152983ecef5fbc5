"""Boot kernels on a machine by ssh and kexec, read what they send, and wait until it is back.
Experimental.

The machine's own system is reached by ssh. It locks itself for the run, gets the files of a boot,
arms its watchdog, and starts the kernel. That sends its records (``console_records``) over the
serial line, or leaves them in memory for the machine's own kernel (ramoops), and resets the
machine. A reset is known by ssh, by another boot id: a machine that hangs is silent. Nothing is
booted on a machine that did not come back.
"""

import os
import secrets
import shlex
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from pydantic import Field

from kteardown import spawn
from kteardown.door import Entry
from kteardown.errors import LabError
from kteardown.model.record import BootEnd
from kteardown.model.workload import StrictModel
from kteardown.vm.job import BootJob
from kteardown.vm.kernel_log import Ending
from kteardown.vm.qemu_library import WITH_LAB
from kteardown_metal.console_records import Consoles, LoggedBoot, kernel_line, named

_SSH = (
    "ssh",
    "-oBatchMode=yes",
    "-oConnectTimeout=15",
    "-oServerAliveInterval=5",
    "-oServerAliveCountMax=3",
)
_SCRIPT = files("kteardown_metal").joinpath("metal_files/machine.sh").read_text(encoding="utf-8")
_REFUSED = 3
_NO_CONNECTION = 255
_UPLOAD_S = 600.0
_REPLY_S = 60.0
_QUIET_S = 5.0
_ASK_S = 3.0
"""After so long without a character, and so often, a machine is asked by ssh whether it is back."""
_CONSOLE_BYTES = 64 << 20
_KEXEC = b"Starting new kernel"
_KEXEC_S = 120.0
"""The last line of a kernel that prints notices; how long the services of its system may take to
stop."""
_SPARE_S = 30.0


class MachineConfig(StrictModel):
    """A section ``[machines."HOST"]`` of the configuration; docs/machine.md says what each setting
    is."""

    serial: str = ""
    line: Annotated[str, Field(pattern=r"^tty[A-Za-z]{1,6}\d{1,3}$")] = "ttyS0"
    power_command: str = ""
    ssh: tuple[str, ...] = ()
    kernel_args: tuple[str, ...] = ()
    boot_s: Annotated[int, Field(ge=10)] = 600
    back_s: Annotated[float, Field(gt=0)] = 900.0


class Proof(StrictModel):
    """What ``kteardown doctor`` saw a machine do. Times are in seconds from kexec to the answer by
    ssh."""

    proved_at: str
    success_s: float
    panic_s: float
    hang_s: float
    by: Annotated[str, Field(pattern="^(watchdog|power command)$")]
    back_s: float
    """The longest time from the end of a boot to the answer by ssh."""
    facts: dict[str, Any]
    """The machine, as ``vm.host.facts`` describes a host."""


class SshError(Exception):
    """A command on the machine failed."""


class NoAnswerError(SshError):
    """The machine did not answer."""


@dataclass(frozen=True)
class Returned:
    """A boot after which the machine came back."""

    boot: LoggedBoot
    ending: Ending
    total_s: float
    """From kexec to the answer by ssh."""
    back_s: float
    """Of that, since the last line of the records; without it, all."""
    powered: bool


@dataclass
class MetalMachine:
    """Boots kernels on one machine, one after the other. ``owner`` names the run in the machine's
    lock.

    ``first`` is the first process of its boots, which also arms the watchdog. ``proof`` is None
    while ``kteardown doctor`` makes one.
    """

    host: str
    config: MachineConfig
    first: Path
    owner: str
    proof: Proof | None
    note: Callable[[str], None]
    watchdog_s: int = 0
    """The period with which the watchdog is armed before each boot; 0: not at all."""
    _stopped: threading.Event = field(default_factory=threading.Event)
    _pool: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, 1))
    """Its thread asks by ssh whether the machine is back; meanwhile the serial line is read."""

    @property
    def back_s(self) -> float:
        """How long the machine may take to come back."""
        return self.config.back_s if self.proof is None else 2 * self.proof.back_s + _SPARE_S

    def boot(self, job: BootJob, on_line: Callable[[bytes], None]) -> BootEnd:
        """Run one boot to the return of the machine, as ``QemuMachine.boot`` does; lines come at
        its end.

        Raises LabError if the machine is refused or does not come back, KeyboardInterrupt after
        ``stop``, and whatever ``on_line`` raises.
        """
        try:
            returned = self.run(job)
        except SshError as error:
            return LoggedBoot("", 0, "").end(Ending("broken", str(error)))
        if (
            self.proof
            and returned.boot.sent
            and returned.boot.machine.get("cpu") != self.proof.facts.get("cpu")
        ):
            raise LabError(
                f"{self.host} has changed since it was proved: its processor, or a setting of the "
                "processor, is not the same",
                hint="prove it again with `kteardown doctor --machine`, and start the run anew.",
            )
        if returned.ending.how == "powered-off":
            for line in returned.boot.raw_records:
                on_line(line)
        return returned.boot.end(returned.ending)

    def run(self, job: BootJob) -> Returned:
        """As ``boot``, with the times. Raises SshError if the machine fails before the boot."""
        token = secrets.token_hex(8)
        key = secrets.token_bytes(16)
        old = self._take()
        for path, name in (
            (job.image, "bzImage"),
            (job.initramfs, "initramfs"),
            (self.first, "init"),
        ):
            self._ssh(f"cat >/var/lib/kteardown/{name}", path.read_bytes(), _UPLOAD_S)
        with _serial_line(self.config.serial, job.console) as serial:
            # No console has the second name, so that no serial port is one.
            both = (
                (self.config.line, "") if self.config.serial else ("pmsg0", self._script("ramoops"))
            )
            serial.key = key
            words = [kernel_line(job, named(token, 0, key), both[0]), *both[1].split()]
            self._script("boot", str(self.watchdog_s), " ".join([*words, *self.config.kernel_args]))
            returned = self._until_back(serial, token, old)
        if lacks := returned.boot.lacks(job.possible_cpus or job.cpus):
            hint = "choose a smaller design, another machine, or a larger ramoops.pmsg_size."
            raise LabError(f"{self.host}: {lacks}", hint=hint)
        return returned

    def stop(self) -> None:
        """Wait for no boot any more; the machine comes back by itself. May be called from any
        thread."""
        self._stopped.set()

    def release(self) -> None:
        """Unlock the machine, if it answers."""
        if self._stopped.is_set():
            self.note(f"{self.host}: removing the lock of this run, if it answers within 15 s")
        with suppress(SshError, LabError):
            self._script("release", self.owner)

    def _take(self) -> str:
        """Lock the machine for one boot, and return its boot id. It may be on its way back from a
        boot."""
        seconds = int(self.config.boot_s + 2 * self.back_s + _UPLOAD_S)
        until = time.monotonic() + self.back_s
        while True:
            try:
                return self._script("take", self.owner, str(seconds)).strip()
            except NoAnswerError as error:
                if time.monotonic() > until:
                    raise LabError(
                        f"{self.host} does not answer: {error}",
                        hint="look at its console, or switch it on.",
                    ) from error
            self._pause()

    def _until_back(self, serial: "_SerialLine", token: str, old: str) -> Returned:
        began = asked = time.monotonic()
        until = began + self.config.boot_s + self.back_s
        sent_at = 0.0
        powered = False
        asking: Future[tuple[str, float, bytes]] | None = None
        while True:
            self._pause(0.5)
            serial.read()
            now = time.monotonic()
            if not sent_at and serial.sent(token):
                sent_at = now
                until = now + self.back_s
            if now - asked > _ASK_S and (sent_at or now - serial.received_at > _QUIET_S):
                asking = asking or self._pool.submit(self._up, old)
            if asking is not None and asking.done():
                (boot_id, uptime_s, left), asking = asking.result(), None
                asked = time.monotonic()
                if boot_id == old and asked - began > _KEXEC_S:
                    raise SshError(f"{self.host} runs its own kernel {_KEXEC_S:.0f} s after kexec")
                if boot_id and boot_id != old:
                    # A machine's clock can be wrong, and what comes before its last line is of the
                    # boot.
                    serial.add(left)
                    boot = serial.boot(token, max(sent_at, asked - uptime_s))
                    ending = self._ending(boot, asked - began, powered)
                    return Returned(
                        boot, ending, asked - began, asked - (sent_at or began), powered
                    )
            if now > until:
                if powered or not self.config.power_command:
                    tried = (
                        "the power command was tried once" if powered else "it has no power command"
                    )
                    raise LabError(
                        f"{self.host} did not come back within {now - began:.0f} s; {tried}",
                        hint=(
                            "kteardown boots nothing on it any more: switch it off and on, then "
                            "resume the run."
                        ),
                    )
                powered = True
                until = now + self.back_s
                self.note(f"{self.host} does not come back: trying the power command once")
                with suppress(subprocess.TimeoutExpired):
                    spawn.run(
                        ["sh", "-c", self.config.power_command], check=False, timeout=_REPLY_S
                    )

    def _ending(self, boot: LoggedBoot, total_s: float, powered: bool) -> Ending:
        """Return how a boot ended whose machine is back."""
        if boot.sent:
            return Ending("powered-off")
        if powered:
            return Ending("silent", f"no answer for {total_s:.0f} s, until the power command")
        if not boot.lines and not boot.console:
            return Ending("broken", "nothing of the boot arrived")
        if len(boot.lines) > 1:
            return Ending("broken", f"only {len(boot.lines)} of its lines arrived")
        if self.watchdog_s and total_s >= self.watchdog_s:
            return Ending("silent", f"the watchdog reset the machine after {self.watchdog_s} s")
        return Ending("reset")

    def _up(self, old: str) -> tuple[str, float, bytes]:
        """Return the boot id, the age of its kernel and, if the id is not ``old``, what ramoops
        has."""
        with suppress(SshError, ValueError):
            boot_id, uptime, left = self._script("up", "" if self.config.serial else old).split(
                "\n", 2
            )
            return boot_id, float(uptime.split()[0]), left.encode(errors="surrogateescape")
        return "", 0.0, b""

    def _script(self, *words: str) -> str:
        return self._ssh(shlex.join(["sh", "-s", *words]), _SCRIPT.encode())

    def _ssh(self, command: str, content: bytes = b"", limit_s: float = _REPLY_S) -> str:
        """Run a command on the machine. Raises SshError, and LabError if the machine is refused."""
        argv = [*_SSH, *self.config.ssh, "--", self.host, command]
        try:
            # In a session of its own, so that Ctrl-C reaches only the lab.
            done = spawn.run(
                argv,
                input=content,
                capture_output=True,
                timeout=limit_s,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise NoAnswerError(f"{self.host}: no answer by ssh for {limit_s:.0f} s") from error
        message = " ".join(done.stderr.decode(errors="replace").split()[-60:])
        if done.returncode == _REFUSED:
            hint = "docs/machine.md says what a test machine needs."
            raise LabError(f"{self.host} is not used: {message}", hint=hint)
        if done.returncode:
            kind = NoAnswerError if done.returncode == _NO_CONNECTION else SshError
            raise kind(f"{self.host}: ssh: status {done.returncode}: {message}")
        return done.stdout.decode(errors="surrogateescape")

    def _pause(self, seconds: float = 2.0) -> None:
        if self._stopped.wait(seconds):
            raise KeyboardInterrupt


class _SerialLine:
    """What a command prints into a file: the serial line of a machine."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", written: BinaryIO, stream: BinaryIO
    ) -> None:
        self._process, self._written, self._stream = process, written, stream
        self._lines: list[tuple[float, bytes]] = []
        self._rest, self._size = b"", 0
        self.key: bytes | None = None
        """Of the boot that is awaited."""
        self.received_at = time.monotonic()

    def read(self) -> None:
        """Read what has come. Raises LabError if the command has ended."""
        if self._process.poll() is not None:
            raise LabError(
                f"the command of the serial line ended with status {self._process.returncode}",
                hint="correct serial in the configuration (docs/machine.md).",
            )
        chunk = self._stream.read(_CONSOLE_BYTES - self._size)
        self._size += len(chunk)
        self.received_at = time.monotonic() if chunk else self.received_at
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._lines += ((self.received_at, line.rstrip(b"\r")) for line in lines)

    def add(self, left: bytes) -> None:
        """Add what a machine had in memory of the boot that ended before."""
        if left:
            os.ftruncate(self._written.fileno(), 0)
            os.pwrite(self._written.fileno(), left, 0)
            self._lines += ((0.0, line.rstrip(b"\r")) for line in left.split(b"\n"))

    def sent(self, token: str) -> bool:
        """Return whether all lines of a boot are there."""
        return (
            any(b'"sent"' in line for _, line in self._lines) and self.boot(token).sent is not None
        )

    def boot(self, token: str, until: float = float("inf")) -> LoggedBoot:
        """Return a boot: what came after kexec, and before the machine's own kernel began."""
        lines = [line for at, line in self._lines if at <= until]
        start = max((number for number, line in enumerate(lines) if _KEXEC in line), default=-1) + 1
        consoles = Consoles(
            lambda run, number: self.key if (run, number) == (token, 0) else None, alone=True
        )
        for line in lines[start:]:
            consoles.add(line)
        boots = [boot for boot in consoles.boots.values() if boot.token == token]
        boot = max(boots, key=lambda boot: len(boot.lines), default=LoggedBoot(token, 0, ""))
        if len(boot.lines) < 2:  # Without a record of the agent, all is text of this boot.
            boot.console = deque(
                line.decode(errors="replace") for line in lines[start:] if line.strip()
            )
        return boot


@contextmanager
def _serial_line(command: str, console: Entry) -> Iterator[_SerialLine]:
    """Run the command of a serial line in the block; empty: on that line nothing comes."""
    with console.create() as written, console.stream() as stream:
        # A command that went on after a lab that was killed would keep the line from the next lab.
        argv = (
            "setpriv",
            *WITH_LAB,
            str(os.getpid()),
            "sh",
            "-c",
            command or "exec sleep infinity",
        )
        null = subprocess.DEVNULL
        also = subprocess.STDOUT
        process = spawn.start(argv, stdin=null, stdout=written, stderr=also, start_new_session=True)
        try:
            yield _SerialLine(process, written, stream)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
