"""Boot kernels in QEMU: start it, read its records, and end it, without leaving processes behind."""

import asyncio
import contextlib
import fcntl
import os
import re
import shutil
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from kteardown.errors import LabError, MissingError
from kteardown.model.arch import ARCHITECTURES
from kteardown.paths import read_or_empty
from kteardown.vm.confinement import confinement, opened
from kteardown.vm.console import Ending, classify
from kteardown.vm.cpu_pinning import CpuPinning
from kteardown.vm.image_header import check_image
from kteardown.vm.installed_qemu import missing_qemu
from kteardown.vm.job import BootJob, BootResult
from kteardown.vm.kernel_log import last_lines_of, problems
from kteardown.vm.qemu_command import Channels, qemu_command
from kteardown.vm.qemu_library import preloaded
from kteardown.vm.qemu_monitor import Monitor
from kteardown.vm.record_port import RecordLines, TooMuchError
from kteardown.vm.silence import GuestSilence, HostSilence, QemuStuckError, cpu_time_s

# The largest pipe that an unprivileged user may have (fs.pipe-max-size): room for ten thousand records.
_PIPE_BYTES = 1 << 20
_CONSOLE_BYTES = 4 << 20
_STDERR_BYTES = 8 << 10
# The time that QEMU may take from closing its records port to its exit.
_EXIT_S = 10.0
# The time that a hung guest may take to print the stacks of its CPUs, on a loaded host.
_ANSWER_S = 60.0
# The most that a guest may print, and how often the lab looks.
_CONSOLE_MB = 64
_LOOK_S = 1.0


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
        self._boots: dict[asyncio.Task[BootResult], asyncio.AbstractEventLoop] = {}
        self._stopped = False
        self._cpu_pinning = CpuPinning()

    def boot(self, job: BootJob, on_line: Callable[[bytes], None]) -> BootResult:
        """Run one boot to its end, as ``vm.job.Machine`` specifies.

        Raises InputError if the image is not a kernel for the architecture, LabError if QEMU, setpriv
        or taskset is not installed, /dev/fd is missing or a file cannot be opened, what
        ``main_loop_library`` raises, KeyboardInterrupt after ``stop``, and whatever ``on_line`` raises.
        """
        check_image(job.image, job.arch)
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

    def stop(self) -> None:
        """End every boot in progress and prevent later ones. May be called from any thread."""
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
            with self._cpu_pinning.pinned(job) as where, preloaded(job) as start:
                prefix, inherit = (*where.prefix, *start.prefix), (*self._inherit, *start.inherit)
                result = await _run(where.job, prefix, on_line, self._on_command, inherit)
                return replace(result, placed=where.placed)
        finally:
            with self._lock:
                del self._boots[task]


@dataclass(frozen=True)
class _Guest:
    """A running QEMU and the lab's ends of its channels."""

    process: asyncio.subprocess.Process
    command: tuple[str, ...]
    started: float
    records: asyncio.StreamReader
    monitor_socket: socket.socket
    errors: asyncio.Task[str]


async def _run(
    job: BootJob,
    prefix: tuple[str, ...],
    on_line: Callable[[bytes], None],
    on_command: Callable[[list[str]], None],
    inherit: tuple[int, ...],
) -> BootResult:
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
    with job.console.open("rb") as console:
        start = max(0, job.console.stat().st_size - _CONSOLE_BYTES)
        console.seek(start)
        text = console.read()
    end = len(text) if ending.console_bytes is None else max(0, ending.console_bytes - start)
    # What the guest printed by itself, and what it printed when the lab interrupted it.
    before, after = text[:end].decode(errors="replace"), text[end:].decode(errors="replace")
    outcome, detail = classify(before, lines.seen(), ending)
    if ending.note:
        with job.console.open("a", encoding="utf-8") as console_end:
            console_end.write(ending.note)
    last_lines = () if outcome == "ok" else last_lines_of(after or before)
    return BootResult(
        outcome, detail, duration, lines.first_s, guest.command, peak_kb, problems(before), last_lines
    )


@contextlib.asynccontextmanager
async def _started(
    job: BootJob, prefix: tuple[str, ...], on_command: Callable[[list[str]], None], inherit: tuple[int, ...]
) -> AsyncIterator[_Guest]:
    """Start QEMU with its channels; on exit from the block, kill it and close them."""
    loop = asyncio.get_running_loop()
    reading, writing = os.pipe()
    with contextlib.suppress(OSError):  # With a smaller pipe, a slow lab slows the guest down.
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    ours, theirs = socket.socketpair()
    started = loop.time()
    with contextlib.ExitStack() as stack:
        stack.callback(ours.close)
        pipe = stack.enter_context(os.fdopen(reading, "rb", buffering=0))
        try:
            channels = Channels(records=writing, monitor=theirs.fileno())
            command = qemu_command(job, channels)
            on_command([*prefix, *command])
            confined, sandbox = confinement(job.arch, job.acceleration)
            os.fchmod(writing, 0o622)  # QEMU may be another user, and no other process can reach the pipe.
            lent, files, options = stack.enter_context(opened(job))
            words = [*confined, *prefix, *qemu_command(lent, channels), *options, *sandbox]
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(writing, theirs.fileno(), *inherit, *files),
                # Ctrl-C in the terminal must reach only the lab, which then ends QEMU.
                start_new_session=True,
            )
        finally:
            os.close(writing)
            theirs.close()
        assert process.stderr is not None
        process_fd = -1
        with contextlib.suppress(ProcessLookupError):  # It has ended, and been waited for.
            process_fd = os.pidfd_open(process.pid)
            stack.callback(os.close, process_fd)
        errors = asyncio.create_task(_last_lines(process.stderr))
        try:
            records = asyncio.StreamReader()
            transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(records), pipe)
            stack.callback(transport.close)
            yield _Guest(process, tuple(command), started, records, ours, errors)
        finally:
            # Not process.kill(): it would reap a QEMU that has just ended, which the event loop must do.
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(process_fd, signal.SIGKILL)
            await process.wait()
            await errors


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
        silence: GuestSilence | HostSilence = HostSilence(job.silence_s)
        if job.acceleration == "icount":
            silence = GuestSilence(monitor, job.silence_s, lambda: cpu_time_s(guest.process.pid))
        received = asyncio.create_task(lines.receive(guest.records, silence.every_s, silence.is_hung))
        paused = asyncio.create_task(monitor.paused())
        flooded = asyncio.create_task(_flooded(job.console))
        tasks = (received, paused, flooded)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if received.done():
                if received.result():
                    return await _ended(guest, monitor)
                return await _silent(guest, job, monitor, silence.detail)
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


async def _flooded(console: Path) -> None:
    """Wait until the guest has printed more than it may."""
    while console.stat().st_size <= _CONSOLE_MB << 20:
        await asyncio.sleep(_LOOK_S)


async def _ended(guest: _Guest, monitor: Monitor) -> Ending:
    reason = await monitor.shutdown_reason()
    if reason == "guest-shutdown":
        return Ending("powered-off")
    if reason == "guest-reset":
        return Ending("reset")
    return await _broken(guest)


async def _broken(guest: _Guest) -> Ending:
    """Describe a QEMU that ended by itself: its exit status and the end of its error output."""
    try:
        async with asyncio.timeout(_EXIT_S):
            status = await guest.process.wait()
            errors = await guest.errors
    except TimeoutError:
        return Ending("broken", "QEMU closed its channels and did not exit")
    ended = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
    return Ending("broken", f"QEMU ended by itself ({ended})" + (f": {errors}" if errors else ""))


async def _silent(guest: _Guest, job: BootJob, monitor: Monitor, silence: str) -> Ending:
    """Describe a hung guest: the registers of its CPUs and, where the board has an NMI, their stacks."""
    state, registers = await monitor.state(), await monitor.registers()
    where = re.findall(r"\b(?:RIP|EIP|PC)=([0-9a-f]{8,16})", registers)
    size = job.console.stat().st_size
    if await monitor.interrupt():
        # The kernel prints the stacks, panics and resets; if it cannot, it is too broken to answer.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ANSWER_S):
                await guest.process.wait()
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
