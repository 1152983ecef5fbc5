"""Which records count: attempts at boots, those that were cut short, and what they completed.

The rule is in ``model.record``; here it is applied, to records as they lie in a run directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kteardown.model.record import BootEnd, BootStart, Record, TrialEnd, TrialStart

EXACT = "icount"
"""The acceleration under which a boot is the same to the byte each time."""


@dataclass(frozen=True)
class BootRecords:
    """One boot that ended: everything between its start and its end, in order.

    In real time what cut attempts before ``attempt`` completed comes first; each record names its attempt.
    """

    boot: int
    attempt: int
    start: BootStart
    end: BootEnd
    records: tuple[Record, ...]


@dataclass(frozen=True)
class Attempt:
    """One attempt at a boot; ``end`` is None where it was cut short, or is still at work."""

    boot: int
    number: int
    start: BootStart
    end: BootEnd | None
    records: tuple[Record, ...]
    """Everything between."""

    @property
    def exact(self) -> bool:
        """Whether every attempt at this boot gives the same records."""
        return self.start.acceleration == EXACT


@dataclass(frozen=True)
class Repeat:
    """A cut attempt that an ended one repeated. ``trial`` is the first that came out otherwise, if any."""

    cut: Attempt
    ended: Attempt
    same: bool
    trial: int | None = None


def attempts(records: Iterable[Record]) -> list[Attempt]:
    """Every attempt that has its start, by boot and number."""
    found: dict[tuple[int, int], list[Record]] = {}
    for record in records:
        found.setdefault((record.boot, record.attempt), []).append(record)
    result = []
    for (boot, number), lines in sorted(found.items()):
        start, last = lines[0], lines[-1]
        if isinstance(start, BootStart):
            end = last if isinstance(last, BootEnd) else None
            between = lines[1:-1] if end else lines[1:]
            result.append(Attempt(boot, number, start, end, tuple(between)))
    return result


def boots(records: Iterable[Record]) -> list[BootRecords]:
    """The last attempt that ended of every boot that has one, with what cut attempts add, by boot number."""
    result: dict[int, BootRecords] = {}
    cut: dict[int, list[Attempt]] = {}
    for attempt in attempts(records):
        before = cut.setdefault(attempt.boot, [])
        if attempt.end is None:
            before.append(attempt)
        else:
            kept = () if attempt.exact else _kept(before, attempt)
            result[attempt.boot] = BootRecords(
                attempt.boot, attempt.number, attempt.start, attempt.end, (*kept, *attempt.records)
            )
    return [result[boot] for boot in sorted(result)]


def by_trial(records: Iterable[Record]) -> dict[int, list[Record]]:
    """The records of every trial, ended or not, by the trial's index."""
    trials: dict[int, list[Record]] = {}
    for record in records:
        trial = getattr(record, "trial", None)
        if isinstance(trial, int):
            trials.setdefault(trial, []).append(record)
    return trials


def completed(attempt: Attempt) -> dict[int, list[Record]]:
    """The records of every trial of ``attempt`` that has its end, by the trial's index."""
    ended = {record.trial for record in attempt.records if isinstance(record, TrialEnd)}
    return {trial: lines for trial, lines in by_trial(attempt.records).items() if trial in ended}


def said(records: Sequence[Record]) -> list[Record]:
    """What the guest said, without what the lab put on it: the same for every attempt at an exact boot."""
    return [
        record.model_copy(update={"attempt": 0, **({"at_s": None} if isinstance(record, TrialEnd) else {})})
        for record in records
    ]


def repeats(records: Iterable[Record]) -> list[Repeat]:
    """Every cut attempt on the instruction clock, held against the ended one that repeated it."""
    every = [attempt for attempt in attempts(records) if attempt.exact]
    ended = {attempt.boot: attempt for attempt in every if attempt.end is not None}
    return [
        _repeat(cut, ended[cut.boot])
        for cut in every
        if cut.end is None and cut.boot in ended and cut.number < ended[cut.boot].number
    ]


def _repeat(cut: Attempt, ended: Attempt) -> Repeat:
    before, after = said(cut.records), said(ended.records)
    if after[: len(before)] == before:
        return Repeat(cut, ended, same=True)
    index = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(after))
    trial = getattr(cut.records[index], "trial", None)
    return Repeat(cut, ended, same=False, trial=trial)


def _kept(cut: Sequence[Attempt], ended: Attempt) -> tuple[Record, ...]:
    """What ``cut`` completed and ``ended`` did not begin; of a trial completed twice the later one."""
    trials: dict[int, list[Record]] = {}
    for attempt in cut:
        trials.update(completed(attempt))
    begun = {record.trial for record in ended.records if isinstance(record, TrialStart)}
    return tuple(record for trial, lines in trials.items() if trial not in begun for record in lines)
