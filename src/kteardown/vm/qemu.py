"""Boot kernels in QEMU: start it, read its records, and end it, without leaving processes
behind."""

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

from kteardown import spawn
from kteardown.door import Entry
from kteardown.errors import LabError, MissingError
from kteardown.model.arch import ARCHITECTURES
from kteardown.model.record import BootEnd
from kteardown.paths import read_or_empty
from kteardown.vm.cpu_pinning import pinned
from kteardown.vm.host import missing_qemu
from kteardown.vm.job import BootJob
from kteardown.vm.kernel_log import Ending, said_at_end
from kteardown.vm.monitor import GuestSilence, Monitor, QemuStuckError, cpu_time_s
from kteardown.vm.qemu_command import qemu_command
from kteardown.vm.qemu_library import confinement, opened, preloaded
from kteardown.vm.record_lines import RecordLines, TooMuchError

# QEMU answers late on a loaded host. After this time, no answer is expected any more.


# Every boot ends with QEMU closing the connection. The library logs this as an error, which would
# be printed without a handler.
logging.getLogger("qemu.qmp").addHandler(logging.NullHandler())
_EVERY_S = 15.0
"""Host seconds between two looks at the guest's clock; none during records that follow each
other."""
# The largest pipe that an unprivileged user may have (fs.pipe-max-size): room for ten thousand
# records.
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


def need_descriptors(folder: Path = Path("/dev/fd")) -> None:
    """Raise LabError if QEMU cannot open a file descriptor by its name, as it does the records
    port's."""
    if not folder.is_dir():
        raise LabError(
            f"{folder} does not exist, but QEMU writes the records of guests through it",
            hint=(
                f"run `ln -s /proc/self/fd {folder}` as root: this host has no udev that makes the "
                "link."
            ),
        )


class QemuMachine:
    """Boots kernels in QEMU. May be used from several threads at once.

    ``on_command`` is called with every command before it is run, without ``confinement``. QEMU
    inherits the file descriptors ``inherit`` and does nothing with them: it holds the locks on
    their files until it ends.
    """

    def __init__(
        self,
        on_command: Callable[[list[str]], None] = lambda argv: None,
        inherit: tuple[int, ...] = (),
    ) -> None:
        self._on_command = on_command
        self._inherit = inherit
        self._lock = threading.Lock()
        self._boots: dict[asyncio.Task[BootEnd], asyncio.AbstractEventLoop] = {}
        self._stopped = False

    def boot(self, job: BootJob, on_line: Callable[[bytes], None]) -> BootEnd:
        """Run one boot to its end.

        ``on_line`` is called with every complete line of the records port, without its newline,
        when it arrives. A failure of the guest is a result, not an exception. No process of the
        machine is left running when this returns or raises, KeyboardInterrupt included.

        Raises InputError if QEMU has no such machine, LabError if QEMU, setpriv or taskset is not
        installed, /dev/fd is missing or a file cannot be opened, what ``main_loop_library`` raises,
        KeyboardInterrupt after ``stop``, and whatever ``on_line`` raises.
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
            with pinned(job) as where, preloaded(job) as (before, descriptors):
                prefix = (*where.prefix, *before)
                inherit = (*self._inherit, *descriptors)
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
            # Not at every sample record: it takes time on the host while the guest is being
            # measured.
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
    before = text[:end].decode(errors="replace")
    after = text[end:].decode(errors="replace")
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
    job: BootJob,
    prefix: tuple[str, ...],
    on_command: Callable[[list[str]], None],
    inherit: tuple[int, ...],
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
            os.fchmod(
                writing, 0o622
            )  # QEMU may be another user, and no other process can reach the pipe.
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
            rule = GuestSilence(
                monitor, job.silence_s, lambda: cpu_time_s(guest.process.pid)
            ).is_hung
            every_s = _EVERY_S
        received = asyncio.create_task(lines.receive(guest.records, every_s, rule))
        paused = asyncio.create_task(monitor.paused())
        flooded = asyncio.create_task(_flooded(job.console))
        awake = asyncio.create_task(monitor.keep_awake())
        clock = asyncio.create_task(_follow_clock(guest, job, monitor))
        deciding = (received, paused, flooded, awake)
        try:
            await asyncio.wait(deciding, return_when=asyncio.FIRST_COMPLETED)
            if received.done():
                if silence := received.result():
                    return await _silent(guest, job, monitor, silence)
                return await _ended(guest, monitor)
            if flooded.done():
                raise TooMuchError(f"the guest printed more than {_CONSOLE_MB} MB")
            return Ending("broken", f"QEMU stopped the guest: {paused.result()}")
        finally:
            tasks = (*deciding, clock)
            await asyncio.gather(*(task for task in tasks if task.cancel()), return_exceptions=True)
    except QemuStuckError as stuck:
        return Ending("broken", str(stuck))
    except TimeoutError:
        return Ending("broken", f"QEMU did not start within {job.silence_s:g} s")
    finally:
        await monitor.close()


async def _follow_clock(guest: _Guest, job: BootJob, monitor: Monitor) -> None:
    if job.on_clock:
        await monitor.follow_clock(
            guest.started, job.on_clock, counts_instructions=job.acceleration == "icount"
        )


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
    state = await monitor.state()
    registers = await monitor.registers()
    where = re.findall(r"\b(?:RIP|EIP|PC)=([0-9a-f]{8,16})", registers)
    size = job.console.status().st_size
    if await monitor.interrupt():
        # The kernel prints the stacks, panics and resets; if it cannot, it is too broken to answer.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ANSWER_S):
                await guest.exit_status()
    # Without those of floating point, which nothing in a kernel hangs on.
    lines = [
        line for line in registers.splitlines() if not line.startswith(("FCW", "FPR", "XMM", "YMM"))
    ]
    note = "\n".join([f"\n--- kteardown: {silence}; QEMU says: {state}", *lines, ""])
    detail = silence + (f", at {', '.join(where)}" if where else "")
    return Ending("silent", detail, note, size)


async def _last_lines(stream: asyncio.StreamReader) -> str:
    """Read ``stream`` to its end and return the last 8 KiB, with lines joined by semicolons."""
    text = b""
    while chunk := await stream.read(_STDERR_BYTES):
        text = (text + chunk)[-_STDERR_BYTES:]
    return "; ".join(text.decode(errors="replace").split("\n")).strip("; ")
