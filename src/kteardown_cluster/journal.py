"""What the jobs of a cluster made: the folder ``jobs`` of a run directory (docs/formats.md).

- ``token``: the part of the jobs' names that belongs to this run;
- ``unsettled``: is there while a session uses the cluster, and after it if that was interrupted.

A file gets its name in ``done`` by a link, which is atomic on a shared file system as well: no
piece has two results, none is incomplete, and none has parts of two executions. Nothing here
depends on what the scheduler remembers.
"""

import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from kteardown.door import LARGE, Entry
from kteardown.errors import LabError, failing
from kteardown.model.record import BootEnd, BootStart, Record, parse
from kteardown.rundir import counting
from kteardown.rundir.counting import where
from kteardown.rundir.directory import RunDir, writing

Kind = Literal["done", "check"]
_TOKEN = re.compile("[0-9a-f]{10}")


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")


class Receipt(_Model):
    """The first line of a result: which execution of the piece ``key`` it is."""

    key: str
    attempt: int
    name: str
    """The name of the execution; no other has it."""
    node: str
    job: str
    """The id of the job. A scheduler that was killed may use an id again."""
    qemu: str
    """The SHA-256 of the QEMU that booted the guests."""
    machine: dict[str, Any]
    records: int


class Failure(_Model):
    """Why an execution has no result. ``host``: because of its node, so that another node is
    better."""

    key: str
    attempt: int
    node: str
    reason: str
    host: bool = False


class Compared(_Model):
    key: str
    boot: int
    kernel: str
    nodes: tuple[str, str]
    same: bool
    trial: int | None = None
    """The first trial that differs, if the boots differ in a trial."""


@dataclass(frozen=True)
class Published:
    """The result of a piece: the records of each boot, from its start to its end."""

    receipt: Receipt
    folder: Entry
    boots: Mapping[int, Sequence[Record]]

    def attempts(self, boot: int) -> list[Sequence[Record]]:
        """Return the attempts at ``boot`` on that node, without those that failed because of the
        host."""
        # The number of each is that of its console.
        by_number: dict[int, list[Record]] = {}
        for record in self.boots[boot]:
            by_number.setdefault(record.attempt, []).append(record)
        return [
            attempt
            for attempt in by_number.values()
            if getattr(attempt[-1], "outcome", "") != "infrastructure-error"
        ]


class Journal:
    def __init__(self, run: RunDir) -> None:
        self._run = run
        # Jobs run in another folder.
        self.folder = Entry(run.folder.root.absolute(), run.folder.names) / "jobs"
        self.path = self.folder.path

    def create(self) -> None:
        """Make the folders. Raises LabError."""
        with writing(self.folder):
            for name in ("attempts", "done", "check", "aside", "failed"):
                (self.folder / name).make_folder()

    @property
    def unsettled(self) -> bool:
        """Whether a session began to use a cluster and did not come to its end."""
        return (self.folder / "unsettled").exists()

    def mark(self, *, unsettled: bool) -> None:
        """Write whether a session is using a cluster. Raises LabError."""
        file = self.folder / "unsettled"
        with writing(file):
            if unsettled:
                file.create().close()
            else:
                file.remove()

    def token(self) -> str:
        """Return the token of the run, which is made with the first call. Raises LabError."""
        file = self.folder / "token"
        if not file.exists():
            self._run.save(file, secrets.token_hex(5))
        with _reading(file):
            token = file.text()
        # It names jobs that may be cancelled: a list of names would be those of others.
        if not _TOKEN.fullmatch(token):
            raise LabError(
                f"{file}: its content is not the token of a run", hint="start the run anew."
            )
        return token

    def new_attempt(self, key: str) -> tuple[int, Entry]:
        """Make the folder of a further attempt, and return its number, from 0. Raises LabError."""
        parent = self.folder / "attempts" / key
        with writing(parent):
            parent.make_folder()
            number = max(
                (int(folder.name) for folder in parent.entries() if folder.name.isdecimal()),
                default=-1,
            )
            while True:
                number += 1
                with suppress(FileExistsError):
                    (parent / str(number)).make_new_folder()
                    return number, parent / str(number)

    def attempt(self, key: str, number: int) -> Entry:
        return self.folder / "attempts" / key / str(number)

    def published(self, kind: Kind) -> set[str]:
        files = (self.folder / kind).entries("*.ndjson")
        return {file.name.removesuffix(".ndjson") for file in files}

    def has(self, kind: Kind, key: str) -> bool:
        return (self.folder / kind / f"{key}.ndjson").exists()

    def read(self, kind: Kind, key: str) -> Published:
        """Return the result of a piece. Raises ValueError if the file is damaged, LabError."""
        file = self.folder / kind / f"{key}.ndjson"
        with _reading(file):
            return read_published(file, self.folder)

    def put_aside(self, kind: Kind, key: str) -> None:
        """Take back a result that cannot be used. Raises LabError."""
        file = self.folder / kind / f"{key}.ndjson"
        with writing(file):
            file.move_to(self.folder / "aside" / f"{key}.damaged-{secrets.token_hex(4)}")

    def failures(self, of: Collection[tuple[str, int]]) -> dict[tuple[str, int], Failure]:
        """Return why executions of these pieces and attempts failed. Other files are not read."""
        by_attempt: dict[tuple[str, int], Failure] = {}
        for file in (self.folder / "failed").entries("*.json") if of else ():
            key, _, rest = file.name.partition(".")
            number = rest.partition(".")[0]
            if number.isdecimal() and (key, int(number)) in of:
                with suppress(OSError, ValidationError):
                    by_attempt[key, int(number)] = Failure.model_validate_json(file.content())
        return by_attempt

    def compared(self) -> list[Compared]:
        """Return which boots were executed twice, and whether they were the same."""
        try:
            lines = (self.folder / "compared.ndjson").content().splitlines()
        except OSError:
            return []
        comparisons = []
        for line in lines:
            with suppress(ValidationError):
                comparisons.append(Compared.model_validate_json(line))
        return comparisons

    def add_compared(self, comparisons: Sequence[Compared]) -> None:
        """Write what was compared. Raises LabError."""
        # The whole file is replaced: a line that is appended to one which a full disk cut would be
        # lost.
        lines = [
            comparison.model_dump_json() + "\n" for comparison in (*self.compared(), *comparisons)
        ]
        self._run.save(self.folder / "compared.ndjson", "".join(lines))


def publish(
    journal: Entry, kind: Kind, folder: Entry, receipt: Receipt, records: Sequence[Record]
) -> bool:
    """Write a result into ``folder`` and publish it; return whether it was the first. Raises
    OSError."""
    file = folder / "result.ndjson"
    file.replace("".join(line.model_dump_json() + "\n" for line in (receipt, *records)))
    if file.link_to(journal / kind / f"{receipt.key}.ndjson"):
        return True
    file.link_to(journal / "aside" / f"{receipt.key}.{receipt.name}.ndjson")
    return False


def write_failure(journal: Entry, failure: Failure, name: str) -> None:
    """Write why an execution failed. Raises OSError."""
    file = journal / "failed" / f"{failure.key}.{failure.attempt}.{name}.json"
    file.replace(failure.model_dump_json())


def _reading(file: Entry) -> AbstractContextManager[None]:
    hint = "check the file system, then resume the run."
    return failing(f"{file}: cannot be read", hint=hint, kind=LabError)


def read_published(file: Entry, journal: Entry) -> Published:
    """Return the result in ``file``. Raises ValueError if it is damaged, OSError."""
    first, *lines = file.content(LARGE).splitlines()
    receipt = Receipt.model_validate_json(first)
    records = [parse(line) for line in lines]
    boots: dict[int, list[Record]] = {}
    for record in records:
        boots.setdefault(record.boot, []).append(record)
    whole = all(isinstance(b[0], BootStart) and isinstance(b[-1], BootEnd) for b in boots.values())
    if len(records) != receipt.records or not boots or not whole:
        raise ValueError(f"{file} is incomplete")
    folder = journal / "attempts" / receipt.key / str(receipt.attempt) / receipt.name
    return Published(receipt, folder, boots)


def compare(first: Published, second: Published) -> list[Compared]:
    """Compare two executions of the same piece on the instruction clock, boot by boot."""
    comparisons = []
    for boot, records in first.boots.items():
        ours, theirs = (
            counting.boots(execution) for execution in (records, second.boots.get(boot, ()))
        )
        same, trial = counting.difference(
            *([r for b in side for r in b.records] for side in (ours, theirs))
        )
        start = records[0]
        assert isinstance(start, BootStart)
        comparisons.append(
            Compared(
                key=first.receipt.key,
                boot=boot,
                kernel=start.kernel,
                nodes=(first.receipt.node, second.receipt.node),
                same=same and [b.end.outcome for b in ours] == [b.end.outcome for b in theirs],
                trial=trial,
            )
        )
    return comparisons


def notes_of_run(run: RunDir) -> list[str]:
    """Return a note on each boot that was executed on two nodes and was not the same."""
    return [
        f"boot {comparison.boot} of {comparison.kernel} was executed on "
        f"{' and '.join(comparison.nodes)} and differed {where(comparison.trial)}: one of these "
        "nodes is at fault, or this guest is not deterministic"
        for comparison in Journal(run).compared()
        if not comparison.same
    ]
