"""Boot kernels in QEMU: start it, read its records, and end it, without leaving processes behind."""

import asyncio
import contextlib
import fcntl
import logging
import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil
from qemu.qmp import EventListener, ExecuteError, QMPClient, QMPError, Runstate

from kteardown import spawn
from kteardown.door import Entry
from kteardown.errors import LabError, MissingError
from kteardown.model.arch import ARCHITECTURES
from kteardown.model.record import BootEnd
from kteardown.paths import read_or_empty
from kteardown.vm.cpu_pinning import pinned
from kteardown.vm.host import missing_qemu
from kteardown.vm.job import BootJob
from kteardown.vm.kernel_log import Ending, RecordsSeen, said_at_end
from kteardown.vm.qemu_command import qemu_command
from kteardown.vm.qemu_library import confinement, opened, preloaded

# QEMU answers late on a loaded host. After this time, no answer is expected any more.
_REPLY_S = 10.0

_DRIFT = re.compile(r"Host - Guest clock\s+(-?\d+) ms")
_HALTED = re.compile(r"\bHLT=([01])")

# Every boot ends with QEMU closing the connection. The library logs this as an error, which would be
# printed without a handler.
logging.getLogger("qemu.qmp").addHandler(logging.NullHandler())
_EVERY_S = 15.0
"""Host seconds between two looks at the guest's clock; none during records that follow each other."""
_STOPPED_S = 60.0
"""With all CPUs halted and no timer the guest's clock is stopped: nothing can wake such a guest."""
_SLOW_SHARE = 1 / 15
_SLOW_CPU_S = 240.0
"""The share of the limit that is enough, and the CPU seconds that QEMU must have needed for it."""
_HOST_S = 3600.0
"""A guest that executes nothing for this long, with a CPU that is not halted, is not the guest's fault."""
_CHUNK = 1 << 16
_LINE_MB = 1
_PORT_MB = 256
"""The most that a record, and all of a guest, may have; the largest boots write a few MB."""
# The largest pipe that an unprivileged user may have (fs.pipe-max-size): room for ten thousand records.
_PIPE_BYTES = 1 << 20
_CONSOLE_BYTES = 4 << 20
_STDERR_BYTES = 8 << 10
# The time that QEMU may take from closing its records port to its exit.
_EXIT_S = 10.0
_EXIT_LOOK_S = 0.01
# The time that a hung guest may take to print the stacks of its CPUs, on a loaded host.
_ANSWER_S = 60.0
# The most that a guest may print, and how often the lab looks.
_CONSOLE_MB = 64
_LOOK_S = 1.0


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
        # If QEMU ends right after its greeting, the library raises these, also where it was cancelled.
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
        """Wake the guest whenever it suspends to memory: nothing else does. Runs until it is cancelled."""
        # The clock of a guest that counts instructions does not advance while it is suspended, so when the
        # host answers changes nothing in the guest. ``plugins/main_loop.c`` has what is needed besides.
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
        """Wait until QEMU has ended; return ``guest-shutdown``, ``guest-reset`` and so on, or empty."""
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

    In real time it is hung after ``BootJob.silence_s`` seconds of the host. On the instruction clock a loaded
    host may take any time for a second of the guest, so the guest's own clock decides: it is hung after
    ``silence_s`` seconds of it, which are as many thousand million instructions, or after a sixth of them
    that took five minutes of the host: the emulator is slow at loops of PAUSE. The longest time without a
    record that any shipped workload was seen to take there is below one second, sleeps excepted, which take
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
        """Return how the guest's clock advanced by the limit, or can advance no more; empty if neither."""
        lag = await self.monitor.guest_clock_lag_s()
        now = asyncio.get_running_loop().time()
        if lag is None:
            if silent_s >= _HOST_S:
                raise QemuStuckError(f"QEMU did not give the guest's clock for {silent_s:.0f} s")
            return ""
        guest = now - lag
        # While the guest is suspended, QEMU can move its clock to the next alarm of the PC's clock, in a day.
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
        self, stream: asyncio.StreamReader, every_s: float, is_hung: Callable[[float], Awaitable[str]]
    ) -> str:
        """Pass on lines. Return "" when the port is closed, or how the guest is hung.

        After each ``every_s`` without a line, ``is_hung`` is called with the seconds since the last line; it
        returns what it saw of a guest that is hung.
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
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            whole = bytes(self._rest + line)
            self._rest.clear()
            self.lines += 1
            self.note(whole)
            self._on_line(whole)
        self._rest += rest
        self.cut = len(self._rest)
        self._bytes += len(chunk)
        if len(self._rest) > _LINE_MB << 20:
            raise TooMuchError(f"the guest wrote a record of more than {_LINE_MB} MB")
        if self._bytes > _PORT_MB << 20:
            raise TooMuchError(f"the guest wrote more than {_PORT_MB} MB of records")


def need_descriptors(folder: Path = Path("/dev/fd")) -> None:
    """Raise LabError if QEMU cannot open a file descriptor by its name, as it does the records port's."""
    if not folder.is_dir():
        raise LabError(
            f"{folder} does not exist, but QEMU writes the records of guests through it",
            hint=f"run `ln -s /proc/self/fd {folder}` as root: this host has no udev that makes the link.",
        )


class QemuMachine:
    """Boots kernels in QEMU. May be used from several threads at once.

    ``on_command`` is called with every command before it is run, without ``confinement``. QEMU inherits the
    file descriptors ``inherit`` and does nothing with them: it holds the locks on their files until it ends.
    """

    def __init__(
        self, on_command: Callable[[list[str]], None] = lambda argv: None, inherit: tuple[int, ...] = ()
    ) -> None:
        self._on_command = on_command
        self._inherit = inherit
        self._lock = threading.Lock()
        self._boots: dict[asyncio.Task[BootEnd], asyncio.AbstractEventLoop] = {}
        self._stopped = False

    def boot(self, job: BootJob, on_line: Callable[[bytes], None]) -> BootEnd:
        """Run one boot to its end.

        ``on_line`` is called with every complete line of the records port, without its newline, when it
        arrives. A failure of the guest is a result, not an exception. No process of the machine is left
        running when this returns or raises, KeyboardInterrupt included.

        Raises InputError if QEMU has no such machine, LabError if QEMU, setpriv or taskset is not installed,
        /dev/fd is missing or a file cannot be opened, what ``main_loop_library`` raises, KeyboardInterrupt
        after ``stop``, and whatever ``on_line`` raises.
        """
        if not shutil.which(ARCHITECTURES[job.arch].qemu):
            raise missing_qemu(job.arch)
        for tool in ("setpriv", "taskset"):
            if not shutil.which(tool):
                raise MissingError(f"{tool} is not installed", ["util-linux"])
        need_descriptors()
        try:
            return asyncio.run(self._boot(job, on_line))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None

    def release(self) -> None:
        """Nothing is held between boots."""

    def stop(self) -> None:
        """End every boot in progress and prevent later ones. May be called from any thread."""
        with self._lock:
            self._stopped = True
            for task, loop in self._boots.items():
                loop.call_soon_threadsafe(task.cancel)
            self._boots.clear()  # Once: a second time would end what ends the guest.

    async def _boot(self, job: BootJob, on_line: Callable[[bytes], None]) -> BootEnd:
        task = asyncio.current_task()
        assert task is not None
        with self._lock:
            if self._stopped:
                raise asyncio.CancelledError
            self._boots[task] = asyncio.get_running_loop()
        try:
            with pinned(job) as where, preloaded(job) as (before, more):
                prefix, inherit = (*where.prefix, *before), (*self._inherit, *more)
                result = await _run(where.job, prefix, on_line, self._on_command, inherit)
                return result.model_copy(update={"placed": where.placed})
        finally:
            with self._lock:
                self._boots.pop(task, None)


@dataclass(frozen=True)
class _Guest:
    process: "subprocess.Popen[bytes]"
    command: tuple[str, ...]
    started: float
    records: asyncio.StreamReader
    monitor_socket: socket.socket
    errors: asyncio.Task[str]

    async def exit_status(self) -> int:
        """Wait until QEMU has ended; a status below 0 is the number of a signal."""
        while True:
            status = self.process.poll()
            if status is not None:
                return status
            await asyncio.sleep(_EXIT_LOOK_S)


async def _run(
    job: BootJob,
    prefix: tuple[str, ...],
    on_line: Callable[[bytes], None],
    on_command: Callable[[list[str]], None],
    inherit: tuple[int, ...],
) -> BootEnd:
    peak_kb: int | None = None
    async with _started(job, prefix, on_command, inherit) as guest:

        def on_record(line: bytes) -> None:
            nonlocal peak_kb
            # Not at every sample record: it takes time on the host while the guest is being measured.
            if b'"sample"' not in line:
                # While it runs: after its exit the kernel no longer reports it.
                status = read_or_empty(Path(f"/proc/{guest.process.pid}/status"))
                peak = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
                peak_kb = int(peak[1]) if peak else peak_kb
            on_line(line)

        lines = RecordLines(on_record, guest.started)
        try:
            ending = await _receive(guest, job, lines)
        except TooMuchError as flood:
            ending = Ending("flooded", str(flood))
        duration = asyncio.get_running_loop().time() - guest.started
    with job.console.stream() as console:
        start = max(0, os.fstat(console.fileno()).st_size - _CONSOLE_BYTES)
        console.seek(start)
        text = console.read()
    end = len(text) if ending.console_bytes is None else max(0, ending.console_bytes - start)
    # What the guest printed by itself, and what it printed when the lab interrupted it.
    before, after = text[:end].decode(errors="replace"), text[end:].decode(errors="replace")
    if ending.note:
        with os.fdopen(job.console.append(), "ab") as console_end:
            console_end.write(ending.note.encode())
    return BootEnd(
        **said_at_end(before, lines, ending, after),
        duration_s=duration,
        first_record_s=lines.first_s,
        command=list(guest.command),
        host_load=os.getloadavg()[0],
        peak_rss_kb=peak_kb,
    )


@contextlib.asynccontextmanager
async def _started(
    job: BootJob, prefix: tuple[str, ...], on_command: Callable[[list[str]], None], inherit: tuple[int, ...]
) -> AsyncIterator[_Guest]:
    reading, writing = os.pipe()
    with contextlib.suppress(OSError):  # With a smaller pipe, a slow lab slows the guest down.
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    ours, theirs = socket.socketpair()
    started = asyncio.get_running_loop().time()
    with contextlib.ExitStack() as stack:
        stack.callback(ours.close)
        pipe = stack.enter_context(os.fdopen(reading, "rb", buffering=0))
        try:
            monitor = theirs.fileno()
            command = qemu_command(job, records=writing, monitor=monitor)
            on_command([*prefix, *command])
            confined, sandbox = confinement(job.arch, job.acceleration)
            os.fchmod(writing, 0o622)  # QEMU may be another user, and no other process can reach the pipe.
            lent, files, options = stack.enter_context(opened(job))
            lent_command = qemu_command(lent, records=writing, monitor=monitor)
            # Not that of asyncio: what it leaves open if it is cancelled ends with a traceback.
            process = spawn.start(
                [*confined, *prefix, *lent_command, *options, *sandbox],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(writing, monitor, *inherit, *files),
                # Ctrl-C in the terminal must reach only the lab, which then ends QEMU.
                start_new_session=True,
            )
        finally:
            os.close(writing)
            theirs.close()
        assert process.stderr is not None
        errors = stack.enter_context(process.stderr)
        # Without an await: nothing can cancel it.
        stack.callback(process.wait)
        stack.callback(process.kill)
        records = await _reader(pipe, stack)
        # Read all the time: QEMU must never wait for the lab.
        last_lines = asyncio.create_task(_last_lines(await _reader(errors, stack)))
        yield _Guest(process, tuple(command), started, records, ours, last_lines)


async def _reader(pipe: IO[bytes], stack: contextlib.ExitStack) -> asyncio.StreamReader:
    """Return what reads a pipe, until ``stack`` is closed."""
    stream = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), pipe)
    stack.callback(transport.close)
    return stream


async def _receive(guest: _Guest, job: BootJob, lines: RecordLines) -> Ending:
    """Pass on records until the guest ends, is stopped, or is hung. Raises TooMuchError."""
    monitor = Monitor()
    try:
        async with asyncio.timeout(job.silence_s):
            connected = await monitor.connect(guest.monitor_socket)
        if not connected:
            return await _broken(guest)
        if job.on_vcpus and (threads := await monitor.vcpu_threads()):
            job.on_vcpus(threads)

        async def is_hung(_: float) -> str:
            return f"no record for {job.silence_s:g} s"

        rule: Callable[[float], Awaitable[str]] = is_hung
        every_s = job.silence_s
        if job.acceleration == "icount":
            rule = GuestSilence(monitor, job.silence_s, lambda: cpu_time_s(guest.process.pid)).is_hung
            every_s = _EVERY_S
        received = asyncio.create_task(lines.receive(guest.records, every_s, rule))
        paused = asyncio.create_task(monitor.paused())
        flooded = asyncio.create_task(_flooded(job.console))
        awake = asyncio.create_task(monitor.keep_awake())
        tasks = (received, paused, flooded, awake)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if received.done():
                if silence := received.result():
                    return await _silent(guest, job, monitor, silence)
                return await _ended(guest, monitor)
            if flooded.done():
                raise TooMuchError(f"the guest printed more than {_CONSOLE_MB} MB")
            return Ending("broken", f"QEMU stopped the guest: {paused.result()}")
        finally:
            await asyncio.gather(*(task for task in tasks if task.cancel()), return_exceptions=True)
    except QemuStuckError as stuck:
        return Ending("broken", str(stuck))
    except TimeoutError:
        return Ending("broken", f"QEMU did not start within {job.silence_s:g} s")
    finally:
        await monitor.close()


async def _flooded(console: Entry) -> None:
    while console.status().st_size <= _CONSOLE_MB << 20:
        await asyncio.sleep(_LOOK_S)


async def _ended(guest: _Guest, monitor: Monitor) -> Ending:
    reason = await monitor.shutdown_reason()
    if reason == "guest-shutdown":
        return Ending("powered-off")
    return Ending("reset") if reason == "guest-reset" else await _broken(guest)


async def _broken(guest: _Guest) -> Ending:
    try:
        async with asyncio.timeout(_EXIT_S):
            status = await guest.exit_status()
            errors = await guest.errors
    except TimeoutError:
        return Ending("broken", "QEMU closed its channels and did not exit")
    ended = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
    return Ending("broken", f"QEMU ended by itself ({ended})" + (f": {errors}" if errors else ""))


async def _silent(guest: _Guest, job: BootJob, monitor: Monitor, silence: str) -> Ending:
    state, registers = await monitor.state(), await monitor.registers()
    where = re.findall(r"\b(?:RIP|EIP|PC)=([0-9a-f]{8,16})", registers)
    size = job.console.status().st_size
    if await monitor.interrupt():
        # The kernel prints the stacks, panics and resets; if it cannot, it is too broken to answer.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ANSWER_S):
                await guest.exit_status()
    # Without those of floating point, which nothing in a kernel hangs on.
    lines = [line for line in registers.splitlines() if not line.startswith(("FCW", "FPR", "XMM", "YMM"))]
    note = "\n".join([f"\n--- kteardown: {silence}; QEMU says: {state}", *lines, ""])
    detail = silence + (f", at {', '.join(where)}" if where else "")
    return Ending("silent", detail, note, size)


async def _last_lines(stream: asyncio.StreamReader) -> str:
    """Read ``stream`` to its end and return the last 8 KiB, with lines joined by semicolons."""
    text = b""
    while chunk := await stream.read(_STDERR_BYTES):
        text = (text + chunk)[-_STDERR_BYTES:]
    return "; ".join(text.decode(errors="replace").split("\n")).strip("; ")
