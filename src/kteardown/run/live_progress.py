"""The progress of a run that is being measured: completed boots, running guests, and the medians so far.

It reads only what was written since the last call, so that it can be called every second while a guest is
measured.
"""

import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import ValidationError

from kteardown.model.plan import Plan
from kteardown.model.record import OUTCOMES, BootStart, Outcome, ParamValue, Record, TrialEnd, parse
from kteardown.rundir.counting import EXACT, Trial, attempts, boots, counted, trials
from kteardown.rundir.directory import RunDir

Place = tuple[str, str, tuple[tuple[str, ParamValue], ...]]
"""A workload, a metric, and the parameters of a point."""


@dataclass(frozen=True)
class FollowedBoot:
    """One boot, from its records so far; a running attempt is counted as if it ended now."""

    start: BootStart
    outcome: Outcome | None
    trial: str
    """The running trial; empty before the first and after the last."""
    medians: Mapping[int, Mapping[Place, float]]
    """The medians of each completed trial, by its index; empty for a trial that is not usable."""


@dataclass(frozen=True)
class Progress:
    """The progress of a run.

    ``left_s``: the expected seconds until the plan is done, None if unknown. ``medians``: by place and
    kernel, the median over boots of the medians of each boot.
    """

    boots: int
    boots_planned: int
    trials: int
    trials_planned: int
    outcomes: Mapping[Outcome, int]
    working: tuple[FollowedBoot, ...]
    """The running guests."""
    left_s: float | None
    medians: Mapping[Place, Mapping[str, float]]

    @property
    def share(self) -> float:
        """The share of the planned trials that are done, 0 to 1."""
        return min(1.0, self.trials / self.trials_planned) if self.trials_planned else 0.0


class Follower:
    """Reads a run's records as they grow. Not safe to call from several threads at once."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._forget()

    def look(self, now: datetime | None = None) -> Progress:
        """Return the progress of the run now. Raises OSError or ValueError if its plan cannot be read."""
        plan = Plan.model_validate_json(self._run.plan_file.read_bytes())
        self._read_new_records()
        # What an earlier session did not finish is run again, on the instruction clock from its start.
        kept = {
            number: boot
            for number, boot in self._boots.items()
            if boot.start.session == self._session
            or boot.outcome not in (None, "infrastructure-error")
            or (boot.outcome is None and boot.start.acceleration != EXACT)
        }
        trials = sum(len(boot.medians) for boot in kept.values())
        planned = sum(len(boot.trials) for boot in plan.boots)
        left_s = None
        if self._began is not None and self._done and planned > trials:
            # At the speed of this session.
            passed = ((now or datetime.now(UTC)) - self._began).total_seconds()
            left_s = max(0.0, passed) * (planned - trials) / self._done
        ends = [boot.outcome for boot in kept.values() if boot.outcome is not None]
        return Progress(
            boots=len(ends),
            boots_planned=len(plan.boots),
            trials=trials,
            trials_planned=planned,
            outcomes={outcome: ends.count(outcome) for outcome in OUTCOMES if outcome in ends},
            working=tuple(
                boot
                for _, boot in sorted(kept.items())
                if boot.outcome is None and boot.start.session == self._session
            ),
            left_s=left_s,
            medians=_medians(list(kept.values())),
        )

    def _forget(self) -> None:
        self._offset = 0
        self._records: dict[int, list[Record]] = {}
        self._boots: dict[int, FollowedBoot] = {}
        self._session: int | None = None
        self._began: datetime | None = None
        self._done = 0
        """The trials that ended in this session."""

    def _read_new_records(self) -> None:
        """Read what was written since the last call, and update the boots that have new records."""
        changed: dict[int, None] = {}
        text = b""
        with suppress(FileNotFoundError), self._run.records_file.open("rb") as stream:
            if os.fstat(stream.fileno()).st_size < self._offset:
                self._forget()
            stream.seek(self._offset)
            text = stream.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            try:
                record = parse(line)
            except ValidationError:
                continue
            if isinstance(record, BootStart) and record.session != self._session:
                self._session, self._done = record.session, 0
                self._began = datetime.fromisoformat(record.started_at)
            self._done += isinstance(record, TrialEnd)
            if record.boot in self._records or isinstance(record, BootStart):
                self._records.setdefault(record.boot, []).append(record)
                changed[record.boot] = None
        for number in changed:
            boot = self._boots[number] = _boot(self._records[number])
            exact = boot.start.acceleration == EXACT
            if exact and boot.outcome not in (None, "infrastructure-error"):
                # There will be no further attempt, so its records are not needed any more. In real time there
                # can be one: it repeats the trials that were disturbed.
                del self._records[number]


def _boot(records: Sequence[Record]) -> FollowedBoot:
    *before, last = attempts(records)
    if last.end is not None:
        (ended,) = boots(records)
        return FollowedBoot(ended.start, ended.end.outcome, "", _medians_by_trial(trials(ended.records)))
    found = list(trials(counted(before, last)))
    running = [trial for trial in found if not trial.status and trial.attempt == last.attempt]
    shown = ""
    if running:
        params = "".join(f" {name}={value}" for name, value in running[-1].params.items())
        shown = running[-1].workload + params
    return FollowedBoot(last.start, None, shown, _medians_by_trial(found))


def _medians_by_trial(found: Iterable[Trial]) -> dict[int, dict[Place, float]]:
    medians: dict[int, dict[Place, float]] = {}
    for trial in found:
        if trial.status:
            samples, point = trial.samples if trial.usable else {}, tuple(trial.params.items())
            places = {(trial.workload, name, point): statistics.median(of) for name, of in samples.items()}
            medians[trial.index] = places
    return medians


def _medians(boots: Sequence[FollowedBoot]) -> dict[Place, dict[str, float]]:
    found: dict[Place, dict[str, list[float]]] = {}
    for boot in boots:
        for medians in boot.medians.values():
            for place, value in medians.items():
                found.setdefault(place, {}).setdefault(boot.start.kernel, []).append(value)
    return {
        place: {kernel: statistics.median(values) for kernel, values in kernels.items()}
        for place, kernels in found.items()
    }
