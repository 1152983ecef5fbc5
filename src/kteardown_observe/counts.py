"""The counts of a machine, as the collector writes them. They come from outside: nothing in them is
trusted.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kteardown.errors import InputError
from kteardown.visible import on_one_line

FORMAT = 1
"""Of ``counts.json``."""
MOST_BYTES = 4 << 20
_KEY = "kteardown_counts"
_NEARLY = 0.9
"""A count is nearly complete if this share was looked at."""
_QUOTED = 100
"""So many characters of what is wrong are quoted in an error."""
_COLLECT = "collect again: `kteardown observe --collector > observe.py`, and run observe.py there."

Number = Annotated[int, Field(ge=0, le=10**12)]
Seconds = Annotated[float, Field(ge=0, le=10**12)]
Text = Annotated[str, Field(max_length=400)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,60}$")]


class _Model(BaseModel):
    """A part of the document. Keys of a later collector of this format are ignored."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False, extra="ignore", strict=True)


class CountOwner(_Model):
    """One that has many of what is counted."""

    name: Text
    number: Number


class _VisitedCount(_Model):
    """``number``: at least so many, if the count is not complete.

    ``seen`` and ``of``: how many processes or cgroups were looked at, and how many there are.
    """

    number: Number
    complete: bool = True
    seen: Number | None = None
    of: Number | None = None

    @property
    def is_nearly_complete(self) -> bool:
        """Whether all was counted, but for a few that could not be read."""
        visited = self.seen is not None and self.of is not None
        return self.complete or (visited and (self.seen or 0) >= _NEARLY * (self.of or 0))


class ObjectCount(_VisitedCount):
    """``number`` is that of the whole machine."""

    how: Text = ""
    """What the number is, if its name does not say it."""
    largest: Annotated[tuple[CountOwner, ...], Field(max_length=20)] = ()

    def amount(self, of: Literal["number", "largest"]) -> int:
        """Return the number of the whole machine, or of the owner that has most."""
        if of == "number":
            return self.number
        return max((owner.number for owner in self.largest), default=0)


class LimitUse(_VisitedCount):
    """How many there are of what the kernel limits to ``bound``. If each owner has the limit, of
    the one that is fullest."""

    name: Name
    bound: Annotated[int, Field(ge=1, le=2**64)]
    owner: Text = ""


class MissingCounts(_Model):
    """What was not counted, and why."""

    counts: Annotated[tuple[Name, ...], Field(max_length=200)]
    reason: Text
    detail: Text = ""


class CollectorReading(_Model):
    """What one part of the collector cost."""

    name: Text
    cpu_s: Seconds
    files: Number = 0
    complete: bool = True


class Collection(_Model):
    """When, by whom and at what cost the counts were taken."""

    at_s: Seconds
    wall_s: Seconds
    cpu_s: Seconds
    peak_kb: Number
    cpu_limit_s: Seconds = 2
    user: Text
    python: Text = ""
    readings: Annotated[tuple[CollectorReading, ...], Field(max_length=100)] = ()
    removed_instances: Annotated[tuple[Text, ...], Field(max_length=1000)] = ()
    """What killed collectors had left in tracefs."""


class ObservedMachine(_Model):
    """The machine that was looked at. None: it could not be read, as in some containers."""

    release: Text | None = None
    arch: Text | None = None
    possible_cpus: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    online_cpus: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    numa_nodes: Annotated[int, Field(ge=1, le=100_000)] | None = None
    memory_kb: Number | None = None
    uptime_s: Seconds | None = None
    cgroups: Text | None = None
    container: bool | None = None


class Calibration(_Model):
    """How long this machine took to release ``objects``, several times, in ns."""

    kind: Name
    objects: Annotated[int, Field(ge=1, le=10**9)]
    ns: Annotated[tuple[Number, ...], Field(min_length=1, max_length=100)]


class EventCount(_Model):
    """How often something happened, and with whom most often."""

    number: Number
    largest: Annotated[tuple[CountOwner, ...], Field(max_length=20)] = ()


class Throttling(_Model):
    """Periods of all cgroups with a quota, and in how many of them one was throttled."""

    periods: Number = 0
    number: Number = 0
    largest: Annotated[tuple[CountOwner, ...], Field(max_length=20)] = ()


class StackWait(_Model):
    """For how long tasks slept uninterruptibly at one stack, by samples; the innermost function
    comes first."""

    stack: Annotated[tuple[Text, ...], Field(max_length=50)]
    seconds: Seconds
    samples: Number
    names: Annotated[tuple[CountOwner, ...], Field(max_length=20)] = ()


class WatchedRates(_Model):
    """What happened in some seconds."""

    seconds: Seconds
    events: Annotated[dict[Name, EventCount], Field(max_length=20)]
    throttled: Throttling = Throttling()
    waits: Annotated[tuple[StackWait, ...], Field(max_length=100)] = ()
    samples: Number = 0


class MachineCounts(_Model):
    """The whole document."""

    taken: Collection
    machine: ObservedMachine | None = None
    counts: Annotated[dict[Name, ObjectCount], Field(max_length=1000)]
    missing: Annotated[tuple[MissingCounts, ...], Field(max_length=1000)] = ()
    limits: Annotated[tuple[LimitUse, ...], Field(max_length=100)] | None = None
    """None: the collector did not read them."""
    calibration: Annotated[tuple[Calibration, ...], Field(max_length=100)] | None = None
    rates: WatchedRates | None = None

    @property
    def host(self) -> ObservedMachine:
        """The machine; without facts if none could be read."""
        return self.machine or ObservedMachine()

    @property
    def why_missing(self) -> dict[str, str]:
        """The reason why a count is missing, by its name."""
        return {name: missing.reason for missing in self.missing for name in missing.counts}


def read_counts(path: Path) -> MachineCounts:
    """Return the counts in a file, or on standard input if it is ``-``. Raises InputError."""
    if path == Path("-"):
        return parse_counts(sys.stdin.buffer.read(MOST_BYTES + 1), "standard input")
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}",
            hint="name a file that the collector wrote.",
        ) from error
    return parse_counts(content, str(path))


def parse_counts(content: bytes, name: str) -> MachineCounts:
    """Return the counts in a document of the collector; errors call it ``name``. Raises
    InputError."""
    if len(content) > MOST_BYTES:
        raise InputError(
            f"{name}: is larger than {MOST_BYTES >> 20} MiB, which counts never are", hint=_COLLECT
        )
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: is not whole JSON: {error}", hint=_COLLECT) from error
    if not isinstance(document, dict) or _KEY not in document:
        raise InputError(
            f"{name}: has no key {_KEY!r}: the collector did not write it", hint=_COLLECT
        )
    version = document[_KEY]
    if version != FORMAT or not isinstance(version, int):
        quoted = str(version)[:_QUOTED]
        raise InputError(
            f"{name}: has the format {quoted!r}; this kteardown reads format {FORMAT}",
            hint="use the collector and the judge of the same version of kteardown.",
        )
    try:
        return MachineCounts.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = on_one_line(".".join(map(str, first["loc"])))[:_QUOTED]
        raise InputError(f"{name}: {where}: {first['msg']}", hint=_COLLECT) from error
