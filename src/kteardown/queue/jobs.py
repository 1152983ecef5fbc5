"""The queue: series that are tried one at a time by a process in the background.

A job is a folder. ``job.json`` is written when it is added, ``started.json`` and ``ended.json`` by
the process that tries it, and ``cancelled`` by the one that cancels it, so that no file has two
writers. The process that tries jobs holds a lock, and so does `kteardown try`, which it starts: the
kernel releases it when both have ended, however they end.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, TypeVar

import psutil
from pydantic import AliasChoices, AwareDatetime, BaseModel, Field, ValidationError

from kteardown import spawn, version
from kteardown.door import Entry
from kteardown.errors import InputError
from kteardown.judge.verdicts import Outcome
from kteardown.paths import cache_dir, end_of, key_of, replace_text
from kteardown.queue import secret

State = Literal["running", "waiting", "ended", "cancelled"]
MOST_WAITING = 200
_ATTEMPTS = 2
"""A job whose process is killed is tried again, but not without end: the job may be the reason."""
_MOST_AGE = timedelta(days=90)
_MOST_BYTES = 1_000_000_000
_MOST_SECONDS = 4 * 3600
_LEAST_FREE = 10_000_000_000
SHOWN_DIGITS = 12
"""So many of an id are shown."""


_Model = TypeVar("_Model", bound=BaseModel)


class QueuedSeries(BaseModel):
    """What is to be tried: the arguments of `kteardown try`, and the folder in which they are
    given."""

    title: str
    what: list[str]
    """``mail`` is the file of the job."""
    arguments: list[str]
    cwd: str
    at: AwareDatetime
    code: str = ""
    """By which the user's own jobs are known (``queue.secret``); empty in jobs of earlier
    versions."""

    @property
    def words(self) -> list[str]:
        """All that decides what is executed, but the mail."""
        return [self.cwd, str(len(self.what)), *self.what, *self.arguments]


class _Started(BaseModel):
    attempt: int
    pid: int
    began: float
    """When the process began, in seconds of the epoch: another one may get its number."""
    at: AwareDatetime


class JobEnd(BaseModel):
    """How `kteardown try` ended: its exit code, or why it has none."""

    exit_code: int | None
    why: str = ""
    at: AwareDatetime


class JobAnswer(BaseModel):
    """Of the JSON of `kteardown try`: the answer in lines, and what it means for a gate."""

    # The files of jobs that earlier versions ran have the other name.
    headline: str = Field(default="", validation_alias=AliasChoices("headline", "sentence"))
    outcome: Outcome = "unsure"


class QueuedJob:
    """One job, for reading. Raises OSError, ValidationError if its first file is damaged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.id = folder.name
        self.asked = QueuedSeries.model_validate_json((Entry(folder) / "job.json").content())

    @property
    def ended(self) -> JobEnd | None:
        """How it ended; None before it has."""
        return _read(self.folder / "ended.json", JobEnd)

    @property
    def state(self) -> State:
        """What the files say, and whether its process lives."""
        if (self.folder / "cancelled").exists():
            return "cancelled"
        if self.ended:
            return "ended"
        return "running" if self.process() else "waiting"

    def process(self) -> psutil.Process | None:
        """Return the process that tries it; None if there is none."""
        started = _read(self.folder / "started.json", _Started)
        with suppress(psutil.Error):
            if started and psutil.Process(started.pid).create_time() == started.began:
                return psutil.Process(started.pid)
        return None

    @property
    def answer(self) -> JobAnswer:
        """What `kteardown try --json` wrote; empty if it wrote nothing."""
        return _read(self.folder / "answer.json", JobAnswer) or JobAnswer()

    def text(self, name: str, most: int = 100_000) -> str:
        """Return the last part of ``page.md`` or ``log``; empty if there is none."""
        return end_of(self.folder / name, most)


def _read(file: Path, kind: type[_Model]) -> _Model | None:
    with suppress(OSError, ValidationError):
        return kind.model_validate_json(Entry.of(file).content())
    return None


def jobs(folder: Path) -> list[QueuedJob]:
    """Return the jobs, the oldest first; one whose files are damaged is left out."""
    queued = []
    for path in folder.glob("[0-9a-f]" * SHOWN_DIGITS + "*"):
        with suppress(OSError, ValidationError):
            queued.append(QueuedJob(path))
    return sorted(queued, key=lambda job: (job.asked.at, job.id))


def add(
    folder: Path, title: str, what: Sequence[str], arguments: Sequence[str], mail: bytes = b""
) -> QueuedJob:
    """Add a job unless there is one for the same series and arguments, which is returned.

    ``mail`` is the file ``mail`` of ``what``. Raises InputError if too many wait, OSError.
    """
    facts = json.dumps([version(), os.getcwd(), *what, *arguments])
    target = folder / key_of(facts.encode() + mail)
    if not target.is_dir():
        waiting = [job for job in jobs(folder) if job.state == "waiting"]
        if len(waiting) >= MOST_WAITING:
            raise InputError(
                f"{len(waiting)} series wait in the queue, which takes no more",
                hint="see `kteardown queue`, and cancel some with `kteardown queue --cancel ID`.",
            )
        folder.mkdir(parents=True, exist_ok=True)
        asked = QueuedSeries(
            title=title,
            what=list(what),
            arguments=list(arguments),
            cwd=os.getcwd(),
            at=datetime.now(UTC),
        )
        asked = asked.model_copy(update={"code": secret.sealed(asked.words, mail)})
        work = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
        (work / "mail").write_bytes(mail)
        (work / "job.json").write_text(asked.model_dump_json())
        try:
            work.rename(target)
        except OSError:  # Another process has added it.
            shutil.rmtree(work)
    return QueuedJob(target)


def named(folder: Path, name: str) -> QueuedJob:
    """Return the job whose id begins with ``name``. Raises InputError."""
    matches = [job for job in jobs(folder) if name and job.id.startswith(name)]
    if len(matches) != 1:
        raise InputError(
            f"{'several jobs have' if matches else 'no job has'} an id that begins with {name!r}",
            hint="see `kteardown queue`.",
        )
    return matches[0]


def cancel(folder: Path, name: str) -> QueuedJob:
    """Cancel a job; if it runs, its process is interrupted, which ends its guests. Raises
    InputError.

    One that has ended or was cancelled is removed, and may be added again.
    """
    job = named(folder, name)
    if job.state in ("running", "waiting"):
        (job.folder / "cancelled").touch()
        if process := job.process():
            with suppress(psutil.Error):
                process.send_signal(signal.SIGINT)
    elif job.process() is None:
        shutil.rmtree(job.folder)
    return job


def start(folder: Path) -> None:
    """Start the process that tries the jobs, unless one runs."""
    with _only_one(folder) as lock:
        if lock is None:
            return
    with (folder / "log").open("ab") as log:
        spawn.start(
            spawn.kteardown("queue", "--run"),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            start_new_session=True,
        )


def work(folder: Path, note: Callable[[str], None]) -> int:
    """Try the jobs that wait, the oldest first, until there is none. Return how many ended.

    Does nothing if another process does that. If little space is left on the disk, the jobs wait.
    """
    ended = 0
    while waiting := [job for job in jobs(folder) if job.state == "waiting"]:
        with _only_one(folder) as lock:
            if lock is None:
                break
            _remove_old(folder)
            cache = cache_dir()
            cache.mkdir(parents=True, exist_ok=True)
            if shutil.disk_usage(cache).free < _LEAST_FREE:
                note(
                    f"{len(waiting)} jobs wait: less than {_LEAST_FREE // 10**9} GB are free in "
                    f"{cache}; `kteardown prune --older-than 30` frees space"
                )
                break
            note(f"{waiting[0].id[:SHOWN_DIGITS]}: {waiting[0].asked.title}")
            ended += _try(waiting[0], lock)
    return ended


def _try(job: QueuedJob, lock: int) -> bool:
    """Run `kteardown try`, and return whether the job has ended. A KeyboardInterrupt leaves it
    waiting."""
    before = _read(job.folder / "started.json", _Started)
    attempt = before.attempt + 1 if before else 1
    if not _is_own(job):
        why = "this user did not add the job, or an earlier version of kteardown did"
        return _end(
            job, None, f"{why}; `kteardown queue --cancel {job.id[:SHOWN_DIGITS]}` removes the job"
        )
    if attempt > _ATTEMPTS:
        return _end(job, None, f"its process was killed {_ATTEMPTS} times")
    what = [str(job.folder / "mail") if word == "mail" else word for word in job.asked.what]
    files = ["--json", str(job.folder / "answer.json"), "--markdown", str(job.folder / "page.md")]
    argv = spawn.kteardown("try", *what, *job.asked.arguments, *files, "--quiet")
    # Paths in its arguments are of the folder in which they were given.
    cwd = job.asked.cwd if Path(job.asked.cwd).is_dir() else job.folder
    with (job.folder / "log").open("wb") as log:
        process = spawn.start(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=cwd, pass_fds=[lock]
        )
    why = ""
    try:
        began = psutil.Process(process.pid).create_time()
        started = _Started(attempt=attempt, pid=process.pid, began=began, at=datetime.now(UTC))
        replace_text(job.folder / "started.json", started.model_dump_json())
        if (job.folder / "cancelled").exists():  # Before its process could be found.
            process.send_signal(signal.SIGINT)
        process.wait(_MOST_SECONDS)
    except subprocess.TimeoutExpired:
        why = f"it took longer than {_MOST_SECONDS // 3600} hours"
    except KeyboardInterrupt:
        (job.folder / "started.json").unlink(missing_ok=True)
        raise
    finally:
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            with suppress(
                subprocess.TimeoutExpired
            ):  # Python loses a signal in a callback of its imports.
                process.wait(30)
    if process.returncode < 0 and not why:
        return False
    return _end(job, None if why else process.returncode, why)


def _is_own(job: QueuedJob) -> bool:
    """Return whether this user has added it, as it is now."""
    mail = job.folder / "mail"
    return mail.is_file() and secret.is_sealed(job.asked.code, job.asked.words, mail.read_bytes())


def _end(job: QueuedJob, exit_code: int | None, why: str) -> bool:
    ended = JobEnd(exit_code=exit_code, why=why, at=datetime.now(UTC))
    replace_text(job.folder / "ended.json", ended.model_dump_json())
    return True


@contextmanager
def _only_one(folder: Path) -> Iterator[int | None]:
    """Yield the open lock file; None if another process has the lock."""
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        lock: int | None = fd
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock = None
        yield lock
    finally:
        os.close(fd)


def _remove_old(folder: Path) -> None:
    over = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) - _MOST_BYTES
    for job in jobs(folder):
        if job.state not in ("ended", "cancelled") or job.process():
            continue
        if over > 0 or datetime.now(UTC) - job.asked.at > _MOST_AGE:
            over -= sum(file.stat().st_size for file in job.folder.iterdir())
            shutil.rmtree(job.folder)
