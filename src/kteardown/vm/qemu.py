"""Kernels in QEMU: started, listened to, and ended, with nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from kteardown.errors import LabError, MissingError
from kteardown.model.arch import ARCHITECTURES, Arch
from kteardown.vm.console import Ending, classify
from kteardown.vm.cpu_pinning import Cores
from kteardown.vm.image_header import check_image
from kteardown.vm.job import BootJob, BootResult
from kteardown.vm.qemu_command import Channels, missing_qemu, qemu_command
from kteardown.vm.qemu_monitor import Monitor
from kteardown.vm.record_port import RecordLines

# What the kernel lets anybody have (fs.pipe-max-size): ten thousand records ahead of the lab.
_PIPE_BYTES = 1 << 20
_CONSOLE_BYTES = 4 << 20
_STDERR_BYTES = 8 << 10
# How long QEMU may take from closing its records port to its exit.
_EXIT_S = 10.0

# The kernel ends QEMU when the lab's thread that started it dies, SIGKILL included; what a handler
# or a destructor of ours does would not survive that. The shell closes the gap before the
# request: had the lab died by then, its parent would be another process.
_DIES_WITH_LAB = ("setpriv", "--pdeathsig", "KILL", "sh", "-c", '[ "$PPID" = "$0" ] && exec "$@"')


def qemu_version(arch: Arch) -> str:
    """The version of QEMU for ``arch``, such as ``7.2.22``. Raises LabError where there is none."""
    try:
        said = subprocess.run(
            [ARCHITECTURES[arch].qemu, "--version"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise missing_qemu(arch) from error
    version = re.search(r"version (\d[\w.]*)", said)
    return version[1] if version else said.strip()


class QemuMachine:
    """Boots kernels in QEMU. May be used from several threads at once.

    ``tell`` hears every command before it is run.
    """

    def __init__(self, tell: Callable[[list[str]], None] = lambda argv: None) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._boots: dict[asyncio.Task[BootResult], asyncio.AbstractEventLoop] = {}
        self._stopped = False
        self._cores = Cores()

    def boot(self, job: BootJob, on_line: Callable[[bytes], None]) -> BootResult:
        """Run one boot to its end; the contract is ``vm.job.Machine``.

        Raises InputError where the image is no kernel for the architecture, LabError where QEMU
        or setpriv is not installed or the console cannot be written, KeyboardInterrupt after
        ``stop``, and what ``on_line`` raises.
        """
        check_image(job.image, job.arch)
        if not shutil.which(ARCHITECTURES[job.arch].qemu):
            raise missing_qemu(job.arch)
        for tool in ("setpriv", "taskset"):
            if not shutil.which(tool):
                raise MissingError(f"{tool} is not installed", ["util-linux"])
        try:
            job.console.write_bytes(b"")
        except OSError as error:
            raise LabError(
                f"cannot write the console to {job.console}: {error.strerror}",
                hint="free some space or choose another place with KTEARDOWN_RUNS.",
            ) from error
        try:
            return asyncio.run(self._boot(job, on_line))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None

    def stop(self) -> None:
        """End every boot in progress, from any thread, for good: later boots do not begin either."""
        with self._lock:
            self._stopped = True
            for task, loop in self._boots.items():
                loop.call_soon_threadsafe(task.cancel)

    async def _boot(self, job: BootJob, on_line: Callable[[bytes], None]) -> BootResult:
        task = asyncio.current_task()
        assert task is not None
        with self._lock:
            if self._stopped:
                raise asyncio.CancelledError
            self._boots[task] = asyncio.get_running_loop()
        try:
            with self._cores.place(job) as prefix:
                return await _run(job, prefix, on_line, self._tell)
        finally:
            with self._lock:
                del self._boots[task]


@dataclass(frozen=True)
class _Guest:
    """A QEMU that was started, and the lab's ends of its channels."""

    process: asyncio.subprocess.Process
    command: tuple[str, ...]
    started: float
    records: asyncio.StreamReader
    monitor_socket: socket.socket
    errors: asyncio.Task[str]


class _Memory:
    """The most memory that a process had, as seen while it lived: afterwards nobody can ask any more."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self.peak_kb: int | None = None

    def look(self) -> None:
        with contextlib.suppress(OSError):
            peak = re.search(r"^VmHWM:\s+(\d+) kB", self._status.read_text(), re.MULTILINE)
            self.peak_kb = int(peak[1]) if peak else self.peak_kb


async def _run(
    job: BootJob,
    prefix: tuple[str, ...],
    on_line: Callable[[bytes], None],
    tell: Callable[[list[str]], None],
) -> BootResult:
    async with _started(job, prefix, tell) as guest:
        memory = _Memory(guest.process.pid)

        def heard(line: bytes) -> None:
            # Not at every sample: a look costs host time while the guest is being measured.
            if b'"sample"' not in line:
                memory.look()
            on_line(line)

        lines = RecordLines(heard, guest.started)
        ending = await _follow(guest, job, lines)
        duration = asyncio.get_running_loop().time() - guest.started
    with job.console.open("rb") as console:
        console.seek(max(0, job.console.stat().st_size - _CONSOLE_BYTES))
        text = console.read().decode(errors="replace")
    outcome, detail = classify(text, lines.seen(), ending)
    if ending.note:
        with job.console.open("a", encoding="utf-8") as console_end:
            console_end.write(ending.note)
    return BootResult(outcome, detail, duration, lines.first_s, guest.command, memory.peak_kb)


@contextlib.asynccontextmanager
async def _started(
    job: BootJob, prefix: tuple[str, ...], tell: Callable[[list[str]], None]
) -> AsyncIterator[_Guest]:
    """QEMU with its channels; on the way out, whatever the way, it is dead and they are closed."""
    loop = asyncio.get_running_loop()
    reading, writing = os.pipe()
    with contextlib.suppress(OSError):  # Less room only means that a slow lab slows the guest.
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    ours, theirs = socket.socketpair()
    started = loop.time()
    with contextlib.ExitStack() as stack:
        stack.callback(ours.close)
        pipe = stack.enter_context(os.fdopen(reading, "rb", buffering=0))
        try:
            command = qemu_command(job, Channels(records=writing, monitor=theirs.fileno()))
            tell([*prefix, *command])
            process = await asyncio.create_subprocess_exec(
                *(*_DIES_WITH_LAB, str(os.getpid()), *prefix, *command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(writing, theirs.fileno()),
                # Ctrl-C in the terminal is for the lab, which then ends QEMU.
                start_new_session=True,
            )
        finally:
            os.close(writing)
            theirs.close()
        assert process.stderr is not None
        process_fd = os.pidfd_open(process.pid)
        stack.callback(os.close, process_fd)
        errors = asyncio.create_task(_last_of(process.stderr))
        try:
            records = asyncio.StreamReader()
            transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(records), pipe)
            stack.callback(transport.close)
            yield _Guest(process, tuple(command), started, records, ours, errors)
        finally:
            # Not process.kill(): it reaps a QEMU that has just ended, behind the back of the event loop.
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(process_fd, signal.SIGKILL)
            await process.wait()
            await errors


async def _follow(guest: _Guest, job: BootJob, lines: RecordLines) -> Ending:
    """Hand over records until the guest ends, stops, or falls silent."""
    monitor = Monitor()
    try:
        async with asyncio.timeout(job.silence_s):
            greeted = await monitor.connect(guest.monitor_socket)
        if not greeted:
            return await _broken(guest)
        heard = asyncio.create_task(lines.follow(guest.records, job.silence_s))
        paused = asyncio.create_task(monitor.paused())
        try:
            await asyncio.wait({heard, paused}, return_when=asyncio.FIRST_COMPLETED)
            if heard.done():
                return await (_ended(guest, monitor) if heard.result() else _silent(job, monitor))
            return Ending("broken", f"QEMU stopped the guest: {paused.result()}")
        finally:
            heard.cancel()
            paused.cancel()
            await asyncio.gather(heard, paused, return_exceptions=True)
    except TimeoutError:
        return Ending("broken", f"QEMU did not come up in {job.silence_s:g} s")
    finally:
        await monitor.close()


async def _ended(guest: _Guest, monitor: Monitor) -> Ending:
    reason = await monitor.shutdown_reason()
    if reason == "guest-shutdown":
        return Ending("powered-off")
    if reason == "guest-reset":
        return Ending("reset")
    return await _broken(guest)


async def _broken(guest: _Guest) -> Ending:
    """QEMU ended by itself: what it said last, else how it ended."""
    try:
        async with asyncio.timeout(_EXIT_S):
            status = await guest.process.wait()
            said = await guest.errors
    except TimeoutError:
        return Ending("broken", "QEMU closed its channels and did not exit")
    ended = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
    return Ending("broken", f"QEMU ended by itself ({ended})" + (f": {said}" if said else ""))


async def _silent(job: BootJob, monitor: Monitor) -> Ending:
    """Nothing was heard for too long: look at the CPUs before they go; the console keeps it all."""
    state, registers = await monitor.state(), await monitor.registers()
    silence = f"no record for {job.silence_s:g} s"
    where = re.findall(r"\b(?:RIP|EIP|PC)=([0-9a-f]{8,16})", registers)
    note = f"\n--- kteardown: {silence}; QEMU says: {state}\n{registers}"
    return Ending("silent", silence + (f", at {', '.join(where)}" if where else ""), note)


async def _last_of(stream: asyncio.StreamReader) -> str:
    """The last lines of all that comes, once it has ended."""
    said = b""
    while chunk := await stream.read(_STDERR_BYTES):
        said = (said + chunk)[-_STDERR_BYTES:]
    return "; ".join(said.decode(errors="replace").split("\n")).strip("; ")
