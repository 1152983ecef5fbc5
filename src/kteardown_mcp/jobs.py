"""The jobs of a server: commands of kteardown, one at a time, which end with the server.

They are not jobs of ``kteardown.queue``. Those are for series alone, and they go on when what added
them has gone, which is what a mail program wants. A program that disappears must leave nothing
running. So a job lives in the server, below a guard (``guard``) which stops it if the server ends
in whatever way, and what the job answered is forgotten with the server. Runs are kept as always.

The jobs of all servers of a user take turns by a lock, which the guard holds until the last process
of the job has ended.
"""

import fcntl
import json
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

import anyio
from anyio.abc import TaskGroup

from kteardown import spawn
from kteardown.errors import InputError
from kteardown_mcp.commands import NamedPath, ToolCommand, Word
from kteardown_mcp.guard import GRACE_S
from kteardown_mcp.outside import quoted

State = Literal["waiting", "running", "ended", "cancelled"]
MOST_WAITING = 20
_MOST_KEPT = 20
"""So many jobs that have ended are remembered."""
_MOST_BYTES = 16_000_000
"""Of an answer, and of what a command prints."""
_GIVEN = "given"
"""The folder of a job's files that the client gave."""
_ENVIRONMENT = {"COLUMNS": "160", "NO_COLOR": "1", "KTEARDOWN_SYSTEM_PROGRAMS": "1"}
_LINES = 100
_LONGEST_LINE = 4000
_READING_S = 300.0
_MOST_READERS = 2
_HEARTBEAT_S = 10.0
_LOCK_POLL_S = 0.5
_DEATH_POLL_S = 1.0
_LAST_LINES_S = 3.0
_SHUTDOWN_S = 1.0
"""The client waits for two seconds after it has closed the connection; guards need no server."""

Progress = Callable[[float, str], Awaitable[None]]


@dataclass
class ServerJob:
    """One command and what is known of it. ``changed`` is set, and replaced, when that changes."""

    id: str
    tool: str
    asked: ToolCommand
    state: State = "waiting"
    exit_code: int | None = None
    why: str = ""
    """Why the job has no exit code."""
    printed: str = ""
    answer: Any = None
    """What ``--json`` wrote; None if it wrote nothing."""
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=_LINES))
    added: float = field(default_factory=time.monotonic)
    began: float = field(default_factory=time.monotonic)
    ended_at: float | None = None
    is_cancelled: bool = False
    scope: anyio.CancelScope | None = None
    """Of the task that runs it."""
    changed: anyio.Event = field(default_factory=anyio.Event)

    @property
    def is_over(self) -> bool:
        return self.state in ("ended", "cancelled")

    @property
    def seconds(self) -> float:
        return (self.ended_at or time.monotonic()) - self.began

    def change(self, state: State | None = None) -> None:
        """Set the state, and wake what waits for a change."""
        self.state = state or self.state
        if self.is_over:
            self.ended_at = self.ended_at or time.monotonic()
        before, self.changed = self.changed, anyio.Event()
        before.set()

    def add_line(self, line: str) -> None:
        if line.strip():
            self.lines.append(line[:_LONGEST_LINE])
            self.change()


class Jobs:
    """All jobs of this server, in the task group ``group``. The lock file is shared by servers."""

    def __init__(self, group: TaskGroup, lock: Path, most_seconds: float) -> None:
        self._group = group
        self._lock = lock
        self._most_seconds = most_seconds
        self._turn = anyio.Lock()
        self._readers = anyio.Semaphore(_MOST_READERS)
        self._dry_runs = anyio.Semaphore(_MOST_READERS)
        self._jobs: dict[str, ServerJob] = {}
        self._count = 0
        # A client may remember a job of an earlier server.
        self._letters = secrets.token_hex(2)
        self._is_closing = False

    def start(self, tool: str, asked: ToolCommand) -> ServerJob:
        """Add a job; it begins when those before it have ended. Raises InputError if too many
        wait."""
        waiting = [job for job in self._jobs.values() if not job.is_over]
        if len(waiting) > MOST_WAITING:
            raise InputError(
                f"{len(waiting)} jobs wait or run, and no more are taken",
                hint="wait for some with job_result, or cancel some with cancel_job.",
            )
        over = [job for job in self._jobs.values() if job.is_over]
        for old in over[: max(0, len(over) - _MOST_KEPT + 1)]:
            del self._jobs[old.id]
        self._count += 1
        job = ServerJob(f"job-{self._count}-{self._letters}", tool, asked)
        self._jobs[job.id] = job
        self._group.start_soon(self._run, job)
        return job

    def named(self, name: str) -> ServerJob:
        """Return a job by its id. Raises InputError."""
        if name not in self._jobs:
            known = ", ".join(self._jobs) or "none"
            raise InputError(
                f"there is no job {quoted(name)}",
                hint=f"this server knows: {known}; jobs of earlier connections are gone.",
            )
        return self._jobs[name]

    def before(self, job: ServerJob) -> int:
        """Return how many jobs of this server begin before ``job``, or run."""
        earlier = list(self._jobs.values())[: list(self._jobs).index(job.id)]
        return sum(not it.is_over and it.asked.boots == job.asked.boots for it in earlier)

    def cancel(self, job: ServerJob) -> None:
        """Cancel a job that waits or runs; it is over when its processes have ended."""
        if not job.is_over:
            job.is_cancelled = True
            job.why = "it was cancelled"
            if job.scope:
                job.scope.cancel()

    def close(self) -> None:
        """Stop all jobs. What is left of them ends by itself."""
        self._is_closing = True
        self._group.cancel_scope.cancel()

    async def wait(self, job: ServerJob, seconds: float, progress: Progress) -> None:
        """Wait until a job is over, for at most ``seconds``, and report what it does meanwhile."""
        with anyio.move_on_after(seconds):
            while not job.is_over:
                changed = job.changed
                # Not the seconds of the job, which begin anew after it has waited.
                await progress(time.monotonic() - job.added, self.doing(job))
                with anyio.move_on_after(_HEARTBEAT_S):
                    await changed.wait()

    def doing(self, job: ServerJob) -> str:
        """Return one line about what a job does now. It may have words from outside."""
        if job.state == "waiting" and (before := self.before(job)):
            return f"waits: jobs before it: {before}"
        if job.state == "waiting":
            return "waits for its turn, or for a job of another server"
        return job.lines[-1] if job.lines else job.state

    async def read(self, asked: ToolCommand) -> ServerJob:
        """Run a command that only reads, beside the job that runs. It has no id."""
        job = ServerJob("", "read", asked, state="running")
        async with self._readers:
            try:
                await self._execute(job, None, _READING_S)
            finally:
                job.change("ended")
        return job

    async def _run(self, job: ServerJob) -> None:
        try:
            with anyio.CancelScope() as job.scope:
                if job.is_cancelled:  # Before this task began.
                    return
                if not job.asked.boots:
                    async with self._dry_runs:
                        await self._begin(job, None)
                    return
                async with self._turn, self._machine() as lock:
                    await self._begin(job, lock)
        except (InputError, OSError, ValueError) as error:
            job.why = f"the job could not be started: {getattr(error, 'strerror', None) or error}"
        finally:
            # Mails are large, and an ended job may be remembered for days.
            job.asked = replace(job.asked, words=job.asked.shown)
            job.change("cancelled" if job.is_cancelled else "ended")

    async def _begin(self, job: ServerJob, lock: int | None) -> None:
        job.began = time.monotonic()
        job.change("running")
        await self._execute(job, lock, self._most_seconds)

    @asynccontextmanager
    async def _machine(self) -> AsyncIterator[int]:
        """Hold the lock of all servers of this user."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                await anyio.sleep(_LOCK_POLL_S)
            yield lock
        finally:
            os.close(lock)

    async def _execute(self, job: ServerJob, lock: int | None, most_seconds: float) -> None:
        folder = Path(tempfile.mkdtemp(prefix="kteardown-mcp-"))
        process: subprocess.Popen[bytes] | None = None
        try:
            answer = folder / "answer.json"
            words = [_word(folder, word) for word in job.asked.words]
            words += [f"--json={answer}"] if job.asked.json else []
            process = _started(folder, words, lock)

            def known(text: str) -> str:
                """Return a text with the names and the command that the client knows."""
                return text.replace(f" --json={answer}", "").replace(f"{folder}/{_GIVEN}/", "")

            with anyio.move_on_after(most_seconds) as limit:
                await self._followed(process, lambda line: job.add_line(known(line)))
            if limit.cancelled_caught:
                job.why = f"it was stopped after {most_seconds / 3600:g} hours, its limit"
                return
            job.exit_code = process.poll()
            job.printed = known(_start_of(folder / "printed"))
            with suppress(ValueError, RecursionError):
                job.answer = json.loads(known(_start_of(answer)))
        finally:
            # While kteardown cleans up, this is its folder; the guard removes it then.
            if process is None or process.poll() is not None:
                shutil.rmtree(folder, ignore_errors=True)

    async def _followed(
        self, process: "subprocess.Popen[bytes]", add: Callable[[str], None]
    ) -> None:
        """Give each line of a guard's command to ``add`` until all has ended. The life line is
        closed in any case."""
        errors = cast(Any, process.stderr).fileno()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_until_dead, process, group.cancel_scope)
                await _lines(errors, add)
                group.cancel_scope.cancel()
        finally:
            cast(Any, process.stdin).close()
            patience_s = _SHUTDOWN_S if self._is_closing else GRACE_S + 10
            with anyio.move_on_after(patience_s, shield=True):
                await _lines(errors, add)
                while process.poll() is None:
                    await anyio.sleep(0.02)
            cast(Any, process.stderr).close()


def _word(folder: Path, word: Word) -> str:
    """Return a word of the command; a file is written for it. Raises InputError if a path is
    refused by now."""
    if isinstance(word, str):
        return word
    if isinstance(word, NamedPath):
        return word.word()
    (folder / _GIVEN).mkdir(exist_ok=True)
    file = folder / _GIVEN / word.name
    file.write_bytes(word.content)
    file.chmod(0o755)
    return str(file)


def _started(folder: Path, words: list[str], lock: int | None) -> "subprocess.Popen[bytes]":
    command = spawn.kteardown(*words)
    with (folder / "printed").open("wb") as printed:
        return spawn.start(
            spawn.python("-m", "kteardown_mcp.guard", str(folder), *command),
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, **_ENVIRONMENT},
            pass_fds=() if lock is None else (lock,),
        )


async def _until_dead(process: "subprocess.Popen[bytes]", scope: anyio.CancelScope) -> None:
    """Cancel ``scope`` some seconds after the guard has ended: what it leaves, if it was killed,
    may hold its streams open."""
    while process.poll() is None:
        await anyio.sleep(_DEATH_POLL_S)
    await anyio.sleep(_LAST_LINES_S)
    scope.cancel()


async def _lines(errors: int, add: Callable[[str], None]) -> None:
    """Give each line that is read to ``add`` until the other end is closed."""
    os.set_blocking(errors, False)
    rest = b""
    while True:
        await anyio.wait_readable(errors)
        part = os.read(errors, 1 << 16)
        if not part:
            break
        *whole, rest = (rest + part).split(b"\n")
        rest = rest[-_LONGEST_LINE:]
        for line in whole:
            add(line.decode("utf-8", "replace"))
    add(rest.decode("utf-8", "replace"))


def _start_of(file: Path) -> str:
    with suppress(OSError), file.open("rb") as stream:
        return stream.read(_MOST_BYTES).decode("utf-8", "replace")
    return ""
