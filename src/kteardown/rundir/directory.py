"""A run directory, which is the only state of a run; docs/formats.md describes its files.

A run on both clocks is a folder with ``clocks.json`` and a run directory for each clock, see ``rundir.find``.
"""

import errno
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from kteardown.errors import InputError, LabError, failing
from kteardown.inputs.fragments import is_fragment_path
from kteardown.model.record import Record, parse
from kteardown.paths import replace_text
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

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run_file = path / "run.json"
        self.experiment_file = path / "experiment.json"
        self.workloads_file = path / "workloads.json"
        self.published_file = path / "published.json"
        self.plan_file = path / "plan.json"
        self.kernels_file = path / "kernels.json"
        self.unavailable_file = path / "unavailable.json"
        self.counted_file = path / "counted.json"
        self.environment_file = path / "environment.json"
        self.records_file = path / "records.ndjson"
        self.result_file = path / "result.json"
        self.report_file = path / "report.md"
        self.guest_file = path / GUEST_FILE

    @property
    def name(self) -> str:
        """The run's id; of one clock of a run on both, the id of that run and the clock: ``ID/wall``."""
        both = (self.path.parent / CLOCKS_FILE).is_file()
        return f"{self.path.parent.name}/{self.path.name}" if both else self.path.name

    @property
    def is_whole(self) -> bool:
        return self.experiment_file.is_file() and self.run_file.is_file()

    @property
    def profile(self) -> "RunDir":
        """The folder of the profiled boots; it has a plan if a profile was requested."""
        return RunDir(self.path / "profile")

    @classmethod
    def create(cls, root: Path, experiment: str, *, now: datetime | None = None) -> "RunDir":
        """Create a run directory in ``root``, named as by ``new_folder``. Raises LabError."""
        return cls.create_at(new_folder(root, experiment, now=now))

    @classmethod
    def create_at(cls, path: Path) -> "RunDir":
        """Create a run directory at ``path``, of which only the last folder may exist. Raises LabError."""
        with writing(path):
            path.mkdir(exist_ok=True)
            (path / "console").mkdir()
        return cls(path)

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

    def console_path(self, boot: int, attempt: int) -> Path:
        return self.path / "console" / f"{boot:04d}-{attempt}.log"

    def save(self, file: Path, text: str) -> None:
        """Replace one of the run's files atomically. Raises LabError."""
        with writing(file):
            replace_text(file, text)

    def copy(self, source: Path, target: Path) -> None:
        """Copy ``source`` to one of the run's files, and make its folder. Raises LabError."""
        hint = "check the file, then start the run anew."
        with failing(f"{source}: cannot be read", hint=hint, kind=LabError):
            content = source.read_bytes()
        self.make_folder(target.parent)
        with writing(target):
            target.write_bytes(content)

    def keep_fragments(self, fragments: Iterable[str]) -> tuple[str, ...]:
        """Copy fragments that are not shipped to the run; return all as it names them. Raises LabError."""
        # They may change later.
        kept = []
        for fragment in fragments:
            name = f"fragments/{Path(fragment).name}" if is_fragment_path(fragment) else fragment
            if name != fragment:
                self.copy(Path(fragment), self.path / name)
            kept.append(name)
        return tuple(kept)

    def kept_fragments(self, kept: Iterable[str]) -> tuple[str, ...]:
        """Return fragments that ``keep_fragments`` returned, with the paths of the copies.

        Raises InputError if one is not a copy.
        """
        here, names = self.path.absolute(), tuple(kept)
        for name in filter(is_fragment_path, names):
            if name != f"fragments/{Path(name).name}":
                raise InputError(
                    f"{self.path}: the fragment {name} is not in its folder fragments",
                    hint="restore the folder from a copy, or start anew.",
                )
        return tuple(str(here / name) if is_fragment_path(name) else name for name in names)

    def make_folder(self, folder: Path) -> None:
        """Make one of the run's folders, with those above it, unless it exists. Raises LabError."""
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)

    def records(self) -> list[Record]:
        """Return every record in the order in which it arrived; empty before the first one.

        An incomplete last line (kteardown was killed while it wrote) is left out. Raises InputError that
        names the file and the line of a record that cannot be parsed.
        """
        with failing(f"{self.records_file}: cannot be read", hint="check the permissions of the file."):
            try:
                with self.records_file.open("rb") as stream:
                    # Only up to the present size: another process may be writing.
                    lines = stream.read(os.fstat(stream.fileno()).st_size).split(b"\n")
            except FileNotFoundError:
                return []
        complete = lines[:-1]
        try:
            found = _all_records.validate_json(b"[" + b",".join(complete) + b"]", strict=True)
        except ValidationError:
            found = []
        if len(found) == len(complete):
            return found
        number, what = len(complete), "the file does not have one record in each line"
        for index, line in enumerate(complete, start=1):
            try:
                parse(line)
            except ValidationError as error:
                number, what = index, error.errors()[0]["msg"]
                break
        raise InputError(
            f"{self.records_file}, line {number}: not a record: {what}",
            hint=f"restore the file from a copy, or keep its first {number - 1} lines (`head -n`) and resume "
            "the run, which repeats the missing boots. Another program has written to this file.",
        )

    def ended_boots(self) -> int:
        """Return how many boots have ended, including those of the profile, without parsing the records."""
        files = (self.records_file, self.profile.records_file)
        return sum(file.read_bytes().count(b'"type":"boot_end"') for file in files if file.is_file())

    def current_result(self) -> bytes | None:
        """Return ``result.json``; None if it is missing or damaged, or if boots have ended since then."""
        try:
            text = self.result_file.read_bytes()
            return text if ResultHead.model_validate_json(text).ended_boots == self.ended_boots() else None
        except (OSError, ValidationError):
            return None

    def boots(self) -> list[BootRecords]:
        """Return every boot that ended, with its records that count, by boot number. Raises InputError."""
        return counting.boots(self.records())

    def environment(self) -> dict[str, Any]:
        """Return ``environment.json``: ``command``, ``machine`` (of the first session), ``sessions``."""
        environment: dict[str, Any] = json.loads(self.environment_file.read_bytes())
        return environment


def started(file: Path) -> float:
    """Return when a run or a hunt began, in seconds since 1970: ``started`` in a JSON file of its folder."""
    # If that cannot be read, by the local time in the name of the folder, or else by the age of the file.
    try:
        return datetime.fromisoformat(json.loads(file.read_bytes())["started"]).timestamp()
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        pass
    with suppress(ValueError, OverflowError):
        return datetime.strptime(file.parent.name[:15], "%Y%m%d-%H%M%S").timestamp()
    with suppress(OSError):
        return file.stat().st_mtime
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
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, LabError):
            hint = error.hint.partition(" and continue with ")[0].rstrip(".")
            raise LabError(error.message, hint=f"{hint}, then start the run anew.") from error
        raise


@contextmanager
def writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise write_failed(error, path) from error


def write_failed(error: OSError, path: Path) -> LabError:
    if error.errno in _FULL:
        place = path.resolve()
        disk = next(folder for folder in (place, *place.parents) if os.path.ismount(folder))
        return LabError(
            f"{path}: cannot be written: the disk is full ({disk})",
            hint="free some space and continue with `kteardown run --resume RUN`; all records are kept.",
        )
    return LabError(f"{path}: cannot be written: {error.strerror}", hint="check the folder and its disk.")
