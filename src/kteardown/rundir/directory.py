"""A run directory, which is the only state of a run; docs/formats.md describes its files.

A run on both clocks is a folder with ``clocks.json`` and a run directory for each clock, see
``rundir.find``.
"""

import errno
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from kteardown.door import LARGE, Entry
from kteardown.errors import InputError, LabError, damaged, failing
from kteardown.inputs.fragments import is_fragment_path
from kteardown.model.record import Record, parse
from kteardown.rundir import counting
from kteardown.rundir.counting import BootRecords

CLOCKS_FILE = "clocks.json"
"""The file of a folder that has a run directory for each clock."""
GUEST_FILE = "guest.json"
"""The hashes of the files of a script in the guests, by their paths there (``script.files``)."""
REHEARSAL_FILE = "rehearsal.json"
"""The times of a rehearsal, in the folder of the description of its script (``run.forecast``)."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_all_records: TypeAdapter[list[Record]] = TypeAdapter(list[Record])


class ResultHead(BaseModel):
    """What is needed of a ``result.json`` of any version to see whether it is current."""

    ended_boots: int | None = None
    sentence: str = ""


class RunDir:
    """A run directory, for reading; ``rundir.writer`` opens it for appending."""

    def __init__(self, place: Path | Entry) -> None:
        self.folder = place if isinstance(place, Entry) else Entry(place)
        self.path = self.folder.path
        self.run_file = self.folder / "run.json"
        self.experiment_file = self.folder / "experiment.json"
        self.workloads_file = self.folder / "workloads.json"
        self.published_file = self.folder / "published.json"
        self.plan_file = self.folder / "plan.json"
        self.kernels_file = self.folder / "kernels.json"
        self.unavailable_file = self.folder / "unavailable.json"
        self.counted_file = self.folder / "counted.json"
        self.events_file = self.folder / "events.json"
        self.environment_file = self.folder / "environment.json"
        self.records_file = self.folder / "records.ndjson"
        self.result_file = self.folder / "result.json"
        self.report_file = self.folder / "report.md"
        self.guest_file = self.folder / GUEST_FILE

    @property
    def name(self) -> str:
        """The run's id; of one clock of a run on both, the id of that run and the clock:
        ``ID/wall``."""
        both = Entry(self.path.parent, (CLOCKS_FILE,)).exists()
        return f"{self.path.parent.name}/{self.path.name}" if both else self.path.name

    @property
    def is_whole(self) -> bool:
        return self.experiment_file.exists() and self.run_file.exists()

    @property
    def profile(self) -> "RunDir":
        """The folder of the profiled boots; it has a plan if a profile was requested."""
        return RunDir(self.folder / "profile")

    @classmethod
    def create(cls, root: Path, experiment: str, *, now: datetime | None = None) -> "RunDir":
        """Create a run directory in ``root``, named as by ``new_folder``. Raises LabError."""
        return cls.create_at(new_folder(root, experiment, now=now))

    @classmethod
    def create_at(cls, place: Path | Entry) -> "RunDir":
        """Create a run directory, of which only the folder itself may exist. Raises LabError."""
        run = cls(place)
        with writing(run.folder):
            run.folder.make_folder()
            (run.folder / "console").make_new_folder()
        return run

    @classmethod
    def open(cls, path: Path) -> "RunDir":
        """Return the run directory at ``path``. Raises InputError if it is not one."""
        if not cls(path).is_whole:
            raise InputError(
                f"{path} is not a run directory: it has no experiment.json"
                if path.exists()
                else f"{path}: there is no such folder",
                hint="choose one of `kteardown list runs`, or the path of a run directory.",
            )
        return cls(path)

    def console_file(self, boot: int, attempt: int) -> Entry:
        return self.folder / f"console/{boot:04d}-{attempt}.log"

    def save(self, file: Entry, text: str) -> None:
        """Replace one of the run's files atomically. Raises LabError."""
        with writing(file):
            file.replace(text)

    def copy(self, source: Path, target: Entry) -> None:
        """Copy ``source`` to one of the run's files, and make its folder. Raises LabError."""
        hint = "check the file, then start the run anew."
        with failing(f"{source}: cannot be read", hint=hint, kind=LabError):
            content = Entry.of(source.resolve()).content(LARGE)
        self.make_folder(target.parent)
        with writing(target):
            target.replace(content, synced=False)

    def keep_fragments(self, fragments: Iterable[str]) -> tuple[str, ...]:
        """Copy fragments that are not shipped to the run; return all as it names them. Raises
        LabError."""
        # They may change later.
        kept = []
        for fragment in fragments:
            name = f"fragments/{Path(fragment).name}" if is_fragment_path(fragment) else fragment
            if name != fragment:
                self.copy(Path(fragment), self.folder / name)
            kept.append(name)
        return tuple(kept)

    def kept_fragments(self, kept: Iterable[str]) -> tuple[str, ...]:
        """Return what ``keep_fragments`` returned, with the paths of the copies. Raises
        InputError."""
        return tuple(
            str(self.plain_file(name).absolute()) if is_fragment_path(name) else name
            for name in kept
        )

    def plain_file(self, name: str) -> Path:
        """Return the path of one of the run's files for what reads it by itself. Raises
        InputError."""
        file = self.folder / name
        with failing(f"{file}: cannot be read", hint="restore the run directory from a copy."):
            return file.plain()

    def make_folder(self, folder: Entry) -> None:
        """Make one of the run's folders, with those above it, unless it exists. Raises LabError."""
        with writing(folder):
            folder.make_folder()

    def records(self) -> list[Record]:
        """Return every record in the order in which it arrived; empty before the first one.

        An incomplete last line (kteardown was killed while it wrote) is left out. Raises InputError
        that names the file and the line of a record that cannot be parsed.
        """
        with failing(
            f"{self.records_file}: cannot be read", hint="check the permissions of the file."
        ):
            try:
                # Only up to the present size: another process may be writing.
                lines = self.records_file.content(LARGE).split(b"\n")
            except FileNotFoundError:
                return []
        complete = lines[:-1]
        try:
            parsed = _all_records.validate_json(b"[" + b",".join(complete) + b"]", strict=True)
        except ValidationError:
            parsed = []
        if len(parsed) == len(complete):
            return parsed
        number = len(complete)
        what = "the file does not have one record in each line"
        for index, line in enumerate(complete, start=1):
            try:
                parse(line)
            except ValidationError as error:
                number = index
                what = error.errors()[0]["msg"]
                break
        raise InputError(
            f"{self.records_file}, line {number}: not a record: {what}",
            hint=(
                f"restore the file from a copy, or keep its first {number - 1} lines (`head -n`) "
                "and resume the run, which repeats the missing boots. Another program has written "
                "to this file."
            ),
        )

    def ended_boots(self) -> int:
        """Return how many boots have ended, including those of the profile, without parsing the
        records.

        Raises InputError if a file cannot be read.
        """
        ended = 0
        for file in (self.records_file, self.profile.records_file):
            with failing(f"{file}: cannot be read", hint="restore the run directory from a copy."):
                ended += file.count(b'"type":"boot_end"') if file.exists() else 0
        return ended

    def current_result(self) -> bytes | None:
        """Return ``result.json``; None if it is missing or damaged, or if boots have ended since
        then.

        Raises InputError if the records cannot be read.
        """
        try:
            text = self.result_file.content(LARGE)
            return (
                text
                if ResultHead.model_validate_json(text).ended_boots == self.ended_boots()
                else None
            )
        except (OSError, ValidationError):
            return None

    def boots(self) -> list[BootRecords]:
        """Return every boot that ended, with its records that count, by boot number. Raises
        InputError."""
        return counting.boots(self.records())

    def environment(self) -> dict[str, Any]:
        """Return ``environment.json``: ``command``, ``machine`` (of the first session),
        ``sessions``.

        Raises InputError.
        """
        file = self.environment_file
        hint = "restore the run directory from a copy."
        with failing(f"{file}: cannot be read", hint=hint), damaged(str(file), hint=hint):
            environment: dict[str, Any] = json.loads(file.content())
        return environment


def started(file: Entry) -> float:
    """Return when a run or a hunt began, in seconds since 1970: ``started`` in a JSON file of its
    folder."""
    # If that cannot be read, by the local time in the name of the folder, or else by the age of the
    # file.
    try:
        return datetime.fromisoformat(json.loads(file.content())["started"]).timestamp()
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        pass
    with suppress(ValueError, OverflowError):
        return datetime.strptime(file.path.parent.name[:15], "%Y%m%d-%H%M%S").timestamp()
    with suppress(OSError):
        return file.status().st_mtime
    return 0.0


def new_folder(root: Path, experiment: str, *, now: datetime | None = None) -> Path:
    """Create a folder ``YYYYMMDD-HHMMSS-experiment`` in ``root``, with a suffix if that exists.

    ``now`` is local time. Raises LabError if the folder cannot be created.
    """
    stem = f"{now or datetime.now():%Y%m%d-%H%M%S}-{experiment}"
    number = 1
    while True:
        path = root / (stem if number == 1 else f"{stem}-{number}")
        try:
            root.mkdir(parents=True, exist_ok=True)
            path.mkdir()
            return path
        except FileExistsError:
            if not root.is_dir():
                hint = "set KTEARDOWN_RUNS to a folder."
                raise LabError(f"KTEARDOWN_RUNS: {root} is not a folder", hint=hint) from None
            number += 1
        except OSError as error:
            raise write_failed(error, path) from error


@contextmanager
def removed_unless_whole(folder: Path) -> Iterator[None]:
    """Remove ``folder``, of a new run, if the block fails: a part of a run cannot be resumed."""
    try:
        yield
    except BaseException as error:
        Entry.of(folder).remove_tree()
        if isinstance(error, LabError):
            hint = error.hint.partition(" and continue with ")[0].rstrip(".")
            raise LabError(error.message, hint=f"{hint}, then start the run anew.") from error
        raise


@contextmanager
def writing(file: Entry) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise write_failed(error, file.path) from error


def write_failed(error: OSError, path: Path) -> LabError:
    if error.errno in _FULL:
        place = path.resolve()
        disk = next(folder for folder in (place, *place.parents) if os.path.ismount(folder))
        return LabError(
            f"{path}: cannot be written: the disk is full ({disk})",
            hint=(
                "free some space and continue with `kteardown run --resume RUN`; all records are "
                "kept."
            ),
        )
    return LabError(
        f"{path}: cannot be written: {error.strerror}", hint="check the folder and its disk."
    )
