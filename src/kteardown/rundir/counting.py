"""Which records count: the rule of docs/formats.md, applied to the records of a run directory."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from kteardown.model.record import (
    BootEnd,
    BootStart,
    Buckets,
    Check,
    Record,
    Sample,
    TrialEnd,
    TrialStart,
)
from kteardown.model.record_fields import ParamValue

EXACT = "icount"
"""The acceleration under which a boot gives the same records each time; with several CPUs, nearly
always."""
METAL = "metal"
"""The acceleration of a boot on a machine that is not of this lab, which has no clock in common
with it."""
TRIES = 3
"""A trial that is disturbed each time runs in so many attempts; after that it is void."""


@dataclass(frozen=True)
class Attempt:
    """One attempt at a boot; ``end`` is None if it was cut short, or still runs."""

    boot: int
    attempt: int
    start: BootStart
    end: BootEnd | None
    records: tuple[Record, ...]
    """Everything between."""

    @property
    def exact(self) -> bool:
        """Whether every attempt at this boot should give the same records (see ``EXACT``)."""
        return self.start.acceleration == EXACT


@dataclass(frozen=True)
class BootRecords(Attempt):
    """One boot that ended, with its last attempt and the records that count.

    In real time the trials of earlier attempts come first; each record names its attempt. ``end``
    is that of the last attempt, with the problems that the kernel reported in those before it.
    """

    end: BootEnd


@dataclass
class Trial:
    """One trial with its measured samples and histograms; warm-up is left out.

    ``status`` is ``ok``, ``void`` (an invariant failed), ``failed`` (it could not run),
    ``disturbed`` (it lost too much time to other work of the host), or empty if it did not end.
    """

    boot: int
    attempt: int
    index: int
    workload: str
    params: dict[str, ParamValue]
    status: str = ""
    detail: str = ""
    samples: dict[str, list[float]] = field(default_factory=dict)
    histograms: dict[str, list[Buckets]] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    """What the last check of each invariant says, by its name."""
    failed: Check | None = None
    """The last invariant that failed."""

    @property
    def usable(self) -> bool:
        return self.status == "ok"

    def take(self, record: Record) -> None:
        if isinstance(record, Check):
            self.details[record.name] = record.detail
            if not record.ok:
                self.failed = record
        elif isinstance(record, Sample):
            if not record.warmup:
                self.samples.setdefault(record.metric, []).append(record.value)
        elif isinstance(record, Buckets):
            if not record.warmup:
                self.histograms.setdefault(record.metric, []).append(record)
        elif isinstance(record, TrialEnd):
            void = record.status == "ok" and self.failed
            self.status, self.detail = "void" if void else record.status, record.detail
            if self.failed and not self.detail:
                self.detail = f"{self.failed.name}: {self.failed.detail}"
            # A failure is one also if the host disturbed it: it is not excused by that.
            if self.status == "ok" and record.disturbed:
                self.status, self.detail = "disturbed", record.disturbed


@dataclass(frozen=True)
class Repeat:
    cut: Attempt
    ended: Attempt
    same: bool
    trial: int | None
    """The first trial that differs, if they differ in a trial."""


def attempts(records: Iterable[Record]) -> list[Attempt]:
    """Return every attempt that has its start record, ordered by boot and number."""
    by_attempt: dict[tuple[int, int], list[Record]] = {}
    for record in records:
        by_attempt.setdefault((record.boot, record.attempt), []).append(record)
    result = []
    for (boot, number), lines in sorted(by_attempt.items()):
        start = lines[0]
        last = lines[-1]
        if isinstance(start, BootStart):
            end = last if isinstance(last, BootEnd) else None
            result.append(
                Attempt(boot, number, start, end, tuple(lines[1:-1] if end else lines[1:]))
            )
    return result


def boots(records: Iterable[Record]) -> list[BootRecords]:
    """Return every boot that ended, with the records that count, ordered by boot number."""
    result: dict[int, BootRecords] = {}
    before: dict[int, list[Attempt]] = {}
    for attempt in attempts(records):
        earlier = before.setdefault(attempt.boot, [])
        # An attempt to repeat disturbed trials may fail because of the host.
        is_repeat = any(map(_ended_ok, earlier))
        if attempt.end is not None and not (
            is_repeat and attempt.end.outcome == "infrastructure-error"
        ):
            # Repeating a trial hides nothing of the kernel.
            problems = tuple(
                p for a in earlier if a.end is not None and _ended_ok(a) for p in a.end.problems
            )
            result[attempt.boot] = BootRecords(
                attempt.boot,
                attempt.attempt,
                attempt.start,
                attempt.end.model_copy(update={"problems": (*problems, *attempt.end.problems)}),
                counted(earlier, attempt),
            )
        earlier.append(attempt)
    return [result[boot] for boot in sorted(result)]


def contributing(records: Iterable[Record]) -> list[Attempt]:
    """Return the attempts of which records count, ordered by boot and number."""
    records = list(records)
    used = {
        (boot.boot, number)
        for boot in boots(records)
        for number in (boot.attempt, *(record.attempt for record in boot.records))
    }
    return [attempt for attempt in attempts(records) if (attempt.boot, attempt.attempt) in used]


def _ended_ok(attempt: Attempt) -> bool:
    return attempt.end is not None and attempt.end.outcome == "ok"


def counted(earlier: Sequence[Attempt], last: Attempt) -> tuple[Record, ...]:
    """Return the records that count of a boot, from its last attempt and those before it.

    In real time these include the trials that attempts which were cut or ended ok completed, and
    ``last`` did not begin. Of a trial that was completed twice, the later one counts. Attempts of
    other executions of a job on a node, or on another host than the node, never count: they are of
    another machine. Of a boot whose guest forged a record nothing counts.
    """
    if last.end is not None and last.end.forged:
        return ()
    if last.exact:
        return last.records
    completed: dict[int, list[Record]] = {}
    for attempt in earlier:
        if attempt.start.job == last.start.job and (attempt.end is None or _ended_ok(attempt)):
            completed.update(completed_trials(attempt))
    begun = {record.trial for record in last.records if isinstance(record, TrialStart)}
    kept = (record for trial, lines in completed.items() if trial not in begun for record in lines)
    return (*kept, *last.records)


def trials(records: Iterable[Record]) -> Iterator[Trial]:
    """Yield the trials of the records of one boot, in order; those that did not end come last."""
    running: dict[int, Trial] = {}
    for record in records:
        if isinstance(record, TrialStart):
            running[record.trial] = Trial(
                record.boot, record.attempt, record.trial, record.workload, dict(record.params)
            )
        elif isinstance(record, TrialEnd):
            trial = running.pop(record.trial, None)
            if trial is not None:
                trial.take(record)
                yield trial
        elif isinstance(record, Sample | Buckets | Check) and record.trial in running:
            running[record.trial].take(record)
    yield from running.values()


def by_trial(records: Iterable[Record]) -> dict[int, list[Record]]:
    """Return the records of every trial, ended or not, by the index of the trial."""
    result: dict[int, list[Record]] = {}
    for record in records:
        trial = getattr(record, "trial", None)
        if isinstance(trial, int):
            result.setdefault(trial, []).append(record)
    return result


def completed_trials(attempt: Attempt) -> dict[int, list[Record]]:
    """Return the records of every trial of ``attempt`` that ended, by the index of the trial."""
    ended = {record.trial for record in attempt.records if isinstance(record, TrialEnd)}
    return {trial: lines for trial, lines in by_trial(attempt.records).items() if trial in ended}


def as_guest_wrote(records: Sequence[Record]) -> list[Record]:
    """Return the records without what the host added: the same for every attempt at an exact
    boot."""
    return [
        record.model_copy(
            update={"attempt": 0, **({"at_s": None} if isinstance(record, TrialEnd) else {})}
        )
        for record in records
    ]


def difference(first: Sequence[Record], second: Sequence[Record]) -> tuple[bool, int | None]:
    """Return whether two executions of an exact boot wrote the same, and the first trial that
    differs."""
    for a, b in zip_longest(as_guest_wrote(first), as_guest_wrote(second)):
        if a != b:
            return False, getattr(a or b, "trial", None)
    return True, None


def where(trial: int | None) -> str:
    return "before its first trial" if trial is None else f"in trial {trial}"


def repeats(records: Iterable[Record]) -> list[Repeat]:
    """Return every cut attempt on the instruction clock, compared with the ended one that repeated
    it."""
    every = [attempt for attempt in attempts(records) if attempt.exact]
    ended = {attempt.boot: attempt for attempt in every if attempt.end is not None}
    result = []
    for cut in every:
        last = ended.get(cut.boot)
        if cut.end is None and last and cut.attempt < last.attempt:
            result.append(
                Repeat(cut, last, *difference(cut.records, last.records[: len(cut.records)]))
            )
    return result
