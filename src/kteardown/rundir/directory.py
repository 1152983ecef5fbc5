"""How lines are kept: a run directory, the only state that a run has.

- ``experiment.json``: the experiment, complete; ``plan.json``: every boot in its order;
- ``kernels.json``: what the kernels are; ``environment.json``: the command and the host, as it was in
  each session of measuring;
- ``records.ndjson``: one record a line, written and synced as it arrives;
- ``console/NNNN-A.log``: the whole console of boot NNNN, attempt A;
- ``result.json`` and ``report.md``: made from the above, and can be made again.
"""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError

from kteardown.errors import InputError, LabError
from kteardown.model.record import BootEnd, BootStart, Record, TrialEnd, parse
from kteardown.rundir import counting
from kteardown.rundir.counting import EXACT, BootRecords

__all__ = ["BootRecords", "RecordWriter", "RunDir"]

_FULL = (errno.ENOSPC, errno.EDQUOT)
_all_records: TypeAdapter[list[Record]] = TypeAdapter(list[Record])


class RunDir:
    """A run directory, for reading; ``writer`` opens it for appending."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.experiment_file = path / "experiment.json"
        self.plan_file = path / "plan.json"
        self.kernels_file = path / "kernels.json"
        self.environment_file = path / "environment.json"
        self.records_file = path / "records.ndjson"
        self.result_file = path / "result.json"
        self.report_file = path / "report.md"

    @property
    def name(self) -> str:
        """The run's id."""
        return self.path.name

    @property
    def profile(self) -> RunDir:
        """The folder of the profiled boots; it has a plan if a profile was requested."""
        return RunDir(self.path / "profile")

    @classmethod
    def create(cls, root: Path, experiment: str, *, now: datetime | None = None) -> RunDir:
        """A new directory ``YYYYMMDD-HHMMSS-experiment`` under ``root``; a suffix where that is taken.

        ``now`` is local time. Raises LabError where it cannot be made.
        """
        stem = f"{now or datetime.now():%Y%m%d-%H%M%S}-{experiment}"
        number = 1
        while True:
            path = root / (stem if number == 1 else f"{stem}-{number}")
            try:
                root.mkdir(parents=True, exist_ok=True)
                path.mkdir()
                (path / "console").mkdir()
                return cls(path)
            except FileExistsError:
                if not root.is_dir():
                    hint = "set KTEARDOWN_RUNS to a folder."
                    raise LabError(f"{root} is not a folder", hint=hint) from None
                number += 1
            except OSError as error:
                raise _failed(error, path) from error

    @classmethod
    def open(cls, path: Path) -> RunDir:
        """The run directory at ``path``. Raises InputError where there is none."""
        if not (path / "experiment.json").is_file():
            raise InputError(
                f"{path} is no run directory: it has no experiment.json",
                hint="`kteardown list runs` shows the runs that there are.",
            )
        return cls(path)

    def console_path(self, boot: int, attempt: int) -> Path:
        """Where the console of this attempt is."""
        return self.path / "console" / f"{boot:04d}-{attempt}.log"

    def save(self, file: Path, text: str) -> None:
        """Replace one of the run's files, whole or not at all. Raises LabError."""
        # With the process in its name: a report may be made while the run that it is of goes on.
        partial = file.with_name(f"{file.name}.{os.getpid()}.partial")
        try:
            with partial.open("w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(file)
            _sync_folder(file.parent)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise _failed(error, file) from error

    def records(self) -> list[Record]:
        """Every record in the order in which it arrived; none where nothing was recorded yet.

        A last line that was cut (the lab died while it wrote) is left out.
        Raises InputError that names the file and line of a record that is none.
        """
        try:
            with self.records_file.open("rb") as stream:
                # As long as it is now: a run that is being written may be read beside that.
                lines = stream.read(os.fstat(stream.fileno()).st_size).split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError(
                f"{self.records_file}: cannot be read: {error.strerror}", hint="look at who may read it."
            ) from error
        complete = lines[:-1]
        try:
            found = _all_records.validate_json(b"[" + b",".join(complete) + b"]")
        except ValidationError:
            found = []
        if len(found) != len(complete):
            raise self._corrupt(complete)
        return found

    def boots(self) -> list[BootRecords]:
        """Every boot that ended, with all its records that count, by boot number. Raises InputError."""
        return counting.boots(self.records())

    def environment(self) -> dict[str, Any]:
        """``environment.json``: ``command``, ``machine`` (the first session's), ``sessions``."""
        environment: dict[str, Any] = json.loads(self.environment_file.read_bytes())
        return environment

    @contextmanager
    def writer(self, machine: Mapping[str, Any] | None = None) -> Iterator[RecordWriter]:
        """Append to the run's records; what a lab that was killed left behind is cleared away first.

        ``machine``: the host as it is now. With the first boot that starts it becomes another session
        of the run's environment. Raises InputError where another lab is at work on this directory,
        LabError where the disk fails.
        """
        lock = FileLock(self.path / "lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise InputError(
                f"another kteardown is at work on {self.path}",
                hint="wait until it is done, or interrupt it and resume the run here.",
            ) from None
        except OSError as error:
            raise _failed(error, self.path) from error
        try:
            self._sweep()
            writer = RecordWriter(self, machine)
            try:
                yield writer
            finally:
                writer.close()
        finally:
            lock.release()

    def _sweep(self) -> None:
        """Remove what only a lab at work needs; this one has the lock, and nothing at work yet."""
        for left in (*self.path.glob("*.partial"), *self.path.glob("console/*.cpio")):
            left.unlink(missing_ok=True)

    def _corrupt(self, lines: list[bytes]) -> InputError:
        number, what = len(lines), "not one record a line"
        for index, line in enumerate(lines, start=1):
            try:
                parse(line)
            except ValidationError as error:
                number, what = index, error.errors()[0]["msg"]
                break
        return InputError(
            f"{self.records_file}, line {number}: not a record: {what}",
            hint=f"something else wrote to this file: restore it from a copy, or keep its first {number - 1} "
            "lines (`head -n`) and resume the run, which boots again what is missing.",
        )


class RecordWriter:
    """Appends records, each with one write and one sync. Safe to call from several threads."""

    def __init__(self, run: RunDir, machine: Mapping[str, Any] | None = None) -> None:
        self._run = run
        self._machine = machine
        self._session: int | None = None
        self._lock = threading.Lock()
        try:
            self._fd = os.open(run.records_file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _failed(error, run.records_file) from error
        try:
            self._end = self._drop_cut_line()
            self._finished: dict[int, BootEnd] = {}
            self._attempts: dict[int, int] = {}
            self._completed: dict[tuple[int, int], set[int]] = {}
            for record in run.records():
                self._note(record)
        except BaseException:
            os.close(self._fd)
            raise

    def append(self, record: Record, *, boot: int, attempt: int) -> None:
        """Keep one record with its boot and attempt on it; it is on the disk on return.

        Raises LabError where the disk is full or fails; what was written before stays whole.
        """
        stamp: dict[str, int] = {"boot": boot, "attempt": attempt}
        with self._lock:
            if isinstance(record, BootStart):
                stamp["session"] = self._open_session()
            stamped = record.model_copy(update=stamp)
            line = stamped.model_dump_json().encode() + b"\n"
            try:
                written = os.write(self._fd, line)
                if written != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(self._fd)
            except OSError as error:
                self._take_back()
                raise _failed(error, self._run.records_file) from error
            self._end += len(line)
            self._note(stamped)

    def console_path(self, boot: int, attempt: int) -> Path:
        """Where the console of this attempt goes."""
        return self._run.console_path(boot, attempt)

    def finished(self) -> Mapping[int, BootEnd]:
        """The boots that need no further attempt, with their last end.

        A boot that ended by the lab's own failure is not among them: it says nothing about the kernel.
        """
        with self._lock:
            ends = self._finished.items()
            return {boot: end for boot, end in ends if end.outcome != "infrastructure-error"}

    def completed(self, boot: int) -> frozenset[int]:
        """The trials of ``boot``, by index, that cut attempts completed in real time: not to be run again."""
        with self._lock:
            return frozenset().union(*(done for (of, _), done in self._completed.items() if of == boot))

    def next_attempt(self, boot: int) -> int:
        """The number of the next attempt at this boot, from 0."""
        with self._lock:
            return self._attempts.get(boot, -1) + 1

    def close(self) -> None:
        """End appending; everything is on the disk already."""
        os.close(self._fd)

    def _note(self, record: Record) -> None:
        self._attempts[record.boot] = max(record.attempt, self._attempts.get(record.boot, -1))
        attempt = (record.boot, record.attempt)
        if isinstance(record, BootStart) and record.acceleration != EXACT:
            self._completed[attempt] = set()
        elif isinstance(record, TrialEnd) and attempt in self._completed:
            self._completed[attempt].add(record.trial)
        elif isinstance(record, BootEnd):
            self._finished[record.boot] = record
            self._completed.pop(attempt, None)

    def _open_session(self) -> int:
        """The number of this session, which the first boot of it puts into the environment."""
        if self._session is None:
            if self._machine is None:
                self._session = 0
            else:
                environment = self._run.environment()
                sessions = [*environment.get("sessions", ()), {"machine": dict(self._machine)}]
                self._run.save(
                    self._run.environment_file, json.dumps({**environment, "sessions": sessions}, indent=1)
                )
                self._session = len(sessions) - 1
        return self._session

    def _drop_cut_line(self) -> int:
        size = os.fstat(self._fd).st_size
        end = size
        while end > 0:
            step = min(end, 1 << 16)
            block = os.pread(self._fd, step, end - step)
            newline = block.rfind(b"\n")
            if newline >= 0:
                end = end - step + newline + 1
                break
            end -= step
        if end != size:
            os.ftruncate(self._fd, end)
            os.fsync(self._fd)
        return end

    def _take_back(self) -> None:
        # Best effort: a half line that stays is dropped by readers and by the next writer anyway.
        try:
            os.ftruncate(self._fd, self._end)
        except OSError:
            return


def _sync_folder(folder: Path) -> None:
    """Put a new name in ``folder`` on the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _failed(error: OSError, path: Path) -> LabError:
    if error.errno in _FULL:
        return LabError(
            f"the disk is full: {_mount_point(path)} (writing {path})",
            hint="free some space there and go on with `kteardown run --resume RUN`: "
            "what was recorded is kept.",
        )
    return LabError(f"{path}: cannot be written: {error.strerror}", hint="check the folder and its disk.")


def _mount_point(path: Path) -> Path:
    place = path.resolve()
    while not os.path.ismount(place):
        place = place.parent
    return place
