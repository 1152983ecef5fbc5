"""Append records to a run directory: one process at a time, each record synced before the next."""

import errno
import json
import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from kteardown.door import LARGE
from kteardown.errors import InputError, LabError
from kteardown.model.record import BootEnd, BootStart, Record, TrialEnd
from kteardown.paths import read_or_empty
from kteardown.rundir.counting import EXACT, TRIES
from kteardown.rundir.directory import RunDir, write_failed, writing


@contextmanager
def open_writer(run: RunDir, machine: Mapping[str, Any] | None = None) -> "Iterator[RecordWriter]":
    """Open ``run`` for appending records, and remove files that a killed process left behind.

    ``machine``: the facts of this host. With the first boot they become another session of the
    run's environment. Raises as ``locked`` does, and LabError if the disk fails.
    """
    with locked(run):
        with writing(run.folder):
            for left in (
                *run.folder.entries("*.partial"),
                *(run.folder / "console").entries("*.cpio"),
            ):
                with writing(left):
                    left.remove()
        writer = RecordWriter(run, machine)
        try:
            yield writer
        finally:
            writer.close()


@contextmanager
def locked(run: RunDir) -> Iterator[None]:
    """Hold the lock of ``run``. Raises InputError if another process writes to it, LabError."""
    with ExitStack() as stack:
        try:
            stack.enter_context((run.folder / "lock").locked())
        except BlockingIOError:
            raise InputError(
                f"{run.path}: another kteardown is writing to this run",
                hint="wait until it is done, or interrupt it and resume the run.",
            ) from None
        except OSError as error:
            raise write_failed(error, run.path) from error
        yield


def is_locked(run: RunDir) -> bool:
    """Return whether a process of this host writes to ``run``, according to ``/proc/locks``."""
    # Taking the lock, even for a moment, would make a kteardown that starts in this moment fail.
    # Only the inode is compared: on stacked file systems the device in /proc/locks is not that of
    # stat(2).
    try:
        inode = str((run.folder / "lock").status().st_ino)
    except OSError:
        return False
    # "1: FLOCK ADVISORY WRITE 4711 fe:01:1234 0 EOF"; a waiting process has "->" after the number.
    held = (
        line.split()
        for line in read_or_empty(Path("/proc/locks")).splitlines()
        if " -> " not in line
    )
    return any(
        len(words) > 5 and words[1] == "FLOCK" and words[5].split(":")[-1] == inode
        for words in held
    )


class RecordWriter:
    """Appends records, each with one write and one sync. Safe to call from several threads."""

    def __init__(self, run: RunDir, machine: Mapping[str, Any] | None = None) -> None:
        self.run = run
        self._machine = machine
        self._session: int | None = None
        self.agent_hash = ""
        """The SHA-256 of the agent in the boots of this session."""
        self._lock = threading.RLock()
        with writing(run.records_file):
            self._fd = run.records_file.append()
        try:
            self._end = self._drop_cut_line()
            self._finished: dict[int, BootEnd] = {}
            self._attempts: dict[int, int] = {}
            self._jobs: dict[int, str] = {}
            """By boot, the job of its last attempt; empty if that was on this host."""
            self._nodes: dict[str, Any] = {}
            self._completed: dict[tuple[int, int], set[int]] = {}
            self._disturbed: dict[int, Counter[int]] = {}
            for record in run.records():
                self._note(record)
        except BaseException:
            os.close(self._fd)
            raise

    def append(self, *records: Record, boot: int, attempt: int) -> None:
        """Write records with their boot and attempt, synced. Raises LabError; those before it stay
        intact."""
        with self._lock:
            self._write([self._stamped(record, boot, attempt) for record in records])

    def adopt(self, attempts: Sequence[Sequence[Record]], *, boot: int) -> int:
        """Write the attempts of a job at a boot; return the number of the first. Raises
        LabError."""
        # With one sync; nothing is written if they are the last ones at this boot already.
        start = attempts[-1][0]
        end = attempts[-1][-1]
        with self._lock:
            last = self._attempts.get(boot, -1)
            is_same_job = isinstance(start, BootStart) and self._jobs.get(boot) == start.job
            if is_same_job and self._finished.get(boot) == self._stamped(end, boot, last):
                return last + 1 - len(attempts)
            self._write(
                [
                    self._stamped(record, boot, last + 1 + number)
                    for number, records in enumerate(attempts)
                    for record in records
                ]
            )
            return last + 1

    def add_node(self, name: str, machine: Mapping[str, Any]) -> None:
        """Add the facts of a node of a cluster to the environment, unless they are known. Raises
        LabError."""
        with self._lock:
            if self._nodes.get(name) != machine:
                environment = self.run.environment()
                self._nodes = {**environment.get("nodes", {}), name: dict(machine)}
                environment["nodes"] = self._nodes
                self.run.save(self.run.environment_file, json.dumps(environment, indent=1))

    def _stamped(self, record: Record, boot: int, attempt: int) -> Record:
        stamp: dict[str, int] = {"boot": boot, "attempt": attempt}
        if isinstance(record, BootStart):
            # The first boot of this session adds it to the environment.
            if self._session is None and self._machine is not None:
                environment = self.run.environment()
                session = {"machine": dict(self._machine), "agent_hash": self.agent_hash}
                sessions = [*environment.get("sessions", ()), session]
                environment |= {"machine": sessions[0]["machine"], "sessions": sessions}
                self.run.save(self.run.environment_file, json.dumps(environment, indent=1))
                self._session = len(sessions) - 1
            stamp["session"] = self._session or 0
        return record.model_copy(update=stamp)

    def _write(self, records: Sequence[Record]) -> None:
        lines = b"".join(record.model_dump_json().encode() + b"\n" for record in records)
        if self._end + len(lines) > LARGE:
            raise LabError(
                f"{self.run.records_file} has reached {LARGE >> 20} MB, the largest size that "
                "kteardown can read",
                hint="start another run with fewer boots or repetitions.",
            )
        try:
            written = os.write(self._fd, lines)
            if written != len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._fd)
        except OSError as error:
            # Best effort: readers and the next writer drop an incomplete line anyway.
            with suppress(OSError):
                os.ftruncate(self._fd, self._end)
            raise write_failed(error, self.run.records_file.path) from error
        self._end += len(lines)
        for record in records:
            self._note(record)

    def finished(self) -> Mapping[int, BootEnd]:
        """Return the boots that need no further attempt, with their last end record.

        A boot that failed because of the host is not one of them: it says nothing about the kernel.
        Neither is one that ended ok with disturbed trials, which are to be repeated.
        """
        with self._lock:
            return {
                boot: end
                for boot, end in self._finished.items()
                if end.outcome != "infrastructure-error"
                and (end.outcome != "ok" or not self.to_repeat(boot))
            }

    def completed(self, boot: int) -> frozenset[int]:
        """Return the indices of the trials of ``boot`` that earlier attempts completed in real
        time.

        These trials are not run again. A disturbed trial is one of them after its last try. None of
        a boot of a job on a node of a cluster is: a boot is never put together from two machines.
        """
        with self._lock:
            return frozenset() if self._jobs.get(boot) else self._completed_of(boot)

    def of_jobs(self) -> frozenset[int]:
        with self._lock:
            return frozenset(boot for boot, job in self._jobs.items() if job)

    def to_repeat(self, boot: int) -> frozenset[int]:
        """Return the indices of the disturbed trials of ``boot`` that are to be run again."""
        with self._lock:
            times = self._disturbed.get(boot, Counter())
            disturbed = frozenset(trial for trial in times if times[trial])
            return disturbed - self._completed_of(boot) if disturbed else disturbed

    def next_attempt(self, boot: int) -> int:
        with self._lock:
            return self._attempts.get(boot, -1) + 1

    def close(self) -> None:
        os.close(self._fd)

    def _note(self, record: Record) -> None:
        self._attempts[record.boot] = max(record.attempt, self._attempts.get(record.boot, -1))
        attempt = (record.boot, record.attempt)
        if isinstance(record, BootStart) and self._jobs.get(record.boot, "") != record.job:
            # Another machine begins the boot anew.
            self._disturbed.pop(record.boot, None)
            for old in [old for old in self._completed if old[0] == record.boot]:
                del self._completed[old]
        if isinstance(record, BootStart):
            self._jobs[record.boot] = record.job
        if isinstance(record, BootStart) and record.acceleration != EXACT:
            self._completed[attempt] = set()
        elif isinstance(record, TrialEnd) and attempt in self._completed:
            times = self._disturbed.setdefault(record.boot, Counter())
            times[record.trial] += bool(record.disturbed)
            if not record.disturbed or times[record.trial] >= TRIES:
                self._completed[attempt].add(record.trial)
        elif isinstance(record, BootEnd):
            self._finished[record.boot] = record
            if record.outcome != "ok":
                self._completed.pop(attempt, None)

    def _completed_of(self, boot: int) -> frozenset[int]:
        return frozenset().union(*(done for (of, _), done in self._completed.items() if of == boot))

    def _drop_cut_line(self) -> int:
        with writing(self.run.records_file):
            content = self.run.records_file.content(LARGE)
        end = content.rfind(b"\n") + 1
        if end != len(content):
            os.ftruncate(self._fd, end)
            os.fsync(self._fd)
        return end
