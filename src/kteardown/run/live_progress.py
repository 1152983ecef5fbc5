"""A run as it goes on: what is done, what is at work, and the medians so far.

Light enough to be asked every second beside a measurement: a look reads what was written since the last one.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import ValidationError

from kteardown.model.plan import Plan
from kteardown.model.record import (
    OUTCOMES,
    BootEnd,
    BootStart,
    Check,
    Outcome,
    ParamValue,
    Record,
    Sample,
    TrialEnd,
    TrialStart,
    parse,
)
from kteardown.rundir.counting import EXACT
from kteardown.rundir.directory import RunDir

Place = tuple[str, str, tuple[tuple[str, ParamValue], ...]]
"""A workload, a metric, and the parameters of a point."""


@dataclass(frozen=True)
class Working:
    """A guest that runs; ``trial`` is what it does, empty before the first."""

    boot: int
    kernel: str
    seed: int
    trial: str


@dataclass(frozen=True)
class Progress:
    """How a run stands. ``left_s``: seconds until all that is planned is done, None where nothing tells.

    ``medians``: by place and kernel, the median over boots of the medians inside them.
    """

    boots: int
    boots_planned: int
    trials: int
    trials_planned: int
    outcomes: Mapping[Outcome, int]
    working: tuple[Working, ...]
    left_s: float | None
    medians: Mapping[Place, Mapping[str, float]]

    @property
    def share(self) -> float:
        """Of the trials that are planned, those that are done: 0 to 1."""
        return min(1.0, self.trials / self.trials_planned) if self.trials_planned else 0.0


@dataclass
class _Boot:
    """One boot as its lines arrive, its last attempt last."""

    start: BootStart
    ended: Outcome | None = None
    trial: TrialStart | None = None
    failed: bool = False
    samples: dict[str, list[float]] = field(default_factory=dict)
    figures: dict[int, dict[Place, float]] = field(default_factory=dict)
    """By trial that ended."""


class Follower:
    """Reads a run's records as they grow. Not safe to call from several threads at once."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._forget()

    def look(self, now: datetime | None = None) -> Progress:
        """How the run stands now. Raises OSError or ValueError where its plan cannot be read."""
        plan = Plan.model_validate_json(self._run.plan_file.read_bytes())
        for line in self._new_lines():
            try:
                self._take(parse(line))
            except ValidationError:
                continue
        boots = self._boots.values()
        trials = sum(len(boot.figures) for boot in boots)
        planned = sum(len(boot.trials) for boot in plan.boots)
        ends = [boot.ended for boot in boots if boot.ended is not None]
        return Progress(
            boots=len(ends),
            boots_planned=len(plan.boots),
            trials=trials,
            trials_planned=planned,
            outcomes={outcome: ends.count(outcome) for outcome in OUTCOMES if outcome in ends},
            working=tuple(
                _working(number, boot) for number, boot in sorted(self._boots.items()) if not boot.ended
            ),
            left_s=self._left(trials, planned, now or datetime.now(UTC)),
            medians=_medians(list(boots)),
        )

    def _forget(self) -> None:
        self._offset = 0
        self._boots: dict[int, _Boot] = {}
        self._session: int | None = None
        self._began: datetime | None = None
        self._before = 0

    def _new_lines(self) -> list[bytes]:
        try:
            with self._run.records_file.open("rb") as stream:
                if os.fstat(stream.fileno()).st_size < self._offset:
                    self._forget()
                stream.seek(self._offset)
                text = stream.read()
        except FileNotFoundError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        return whole.splitlines()

    def _take(self, record: Record) -> None:
        if isinstance(record, BootStart):
            self._start(record)
            return
        boot = self._boots.get(record.boot)
        if boot is None or record.attempt != boot.start.attempt:
            return
        if isinstance(record, BootEnd):
            boot.ended, boot.trial = record.outcome, None
        elif isinstance(record, TrialStart):
            boot.trial, boot.failed, boot.samples = record, False, {}
        elif isinstance(record, Check):
            boot.failed = boot.failed or not record.ok
        elif isinstance(record, Sample) and not record.warmup:
            boot.samples.setdefault(record.metric, []).append(record.value)
        elif isinstance(record, TrialEnd) and boot.trial is not None:
            usable = record.status == "ok" and not boot.failed
            boot.figures[record.trial] = _figures(boot.trial, boot.samples) if usable else {}
            boot.trial = None

    def _start(self, record: BootStart) -> None:
        before = self._boots.get(record.boot)
        # In real time what a cut attempt completed is kept; see records.schema.
        kept = before.figures if before and not before.ended and record.acceleration != EXACT else {}
        self._boots[record.boot] = _Boot(record, figures=dict(kept))
        if record.session != self._session:
            self._session = record.session
            self._began = datetime.fromisoformat(record.started_at)
            self._before = sum(len(boot.figures) for boot in self._boots.values())

    def _left(self, trials: int, planned: int, now: datetime) -> float | None:
        """By the pace of this session."""
        done = trials - self._before
        if self._began is None or done <= 0 or planned <= trials:
            return None
        return max(0.0, (now - self._began).total_seconds()) * (planned - trials) / done


def _working(number: int, boot: _Boot) -> Working:
    trial = boot.trial
    words = "" if trial is None else " ".join(f"{name}={value}" for name, value in trial.params.items())
    return Working(number, boot.start.kernel, boot.start.seed, f"{trial.workload} {words}" if trial else "")


def _figures(trial: TrialStart, samples: Mapping[str, Sequence[float]]) -> dict[Place, float]:
    point = tuple(trial.params.items())
    return {(trial.workload, metric, point): statistics.median(values) for metric, values in samples.items()}


def _medians(boots: Sequence[_Boot]) -> dict[Place, dict[str, float]]:
    found: dict[Place, dict[str, list[float]]] = {}
    for boot in boots:
        for figures in boot.figures.values():
            for place, value in figures.items():
                found.setdefault(place, {}).setdefault(boot.start.kernel, []).append(value)
    return {
        place: {kernel: statistics.median(values) for kernel, values in kernels.items()}
        for place, kernels in found.items()
    }
