"""From the records of a stage to the costs of each case on each kernel."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from kteardown.hunt.catalogue import Cost
from kteardown.hunt.curve import Curve
from kteardown.hunt.measure import case_of
from kteardown.hunt.plan import Case
from kteardown.hunt.result import FailureResult
from kteardown.rundir.counting import BootRecords, Trial, trials

METRICS: dict[Cost, str] = {
    "sync": "sync_ns",
    "deferred": "deferred_ns",
    "make": "make_ns",
    "held": "held_kb",
}
"""The metric of each cost in the records."""
FLOORS: dict[Cost, float] = {"sync": 20_000, "deferred": 60_000, "make": 40_000, "held": 512}
"""Differences that are noise: a tick of the timer takes some thousand instructions, and deferred work is what
is left of a stretch with tens of them; free memory is counted without the lists of each CPU."""


@dataclass
class MeasuredCase:
    """One case on one kernel. Figures are medians over the repetitions of a trial."""

    case: Case
    kernel: str
    figures: dict[str, dict[tuple[int, int], float]] = field(default_factory=dict)
    """By metric, then by seed and number of objects."""
    failures: list[FailureResult] = field(default_factory=list)
    left_out: set[int] = field(default_factory=set)
    """Numbers of objects that were expected to exceed the budget; one may have been measured later."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the numbers of objects that were measured."""
        return tuple(sorted({size for by in self.figures.values() for _, size in by}))

    @property
    def beyond_budget(self) -> int | None:
        """Return the smallest number of objects that was left out because of the budget."""
        return min(self.left_out - set(self.sizes), default=None)

    def curve(self, cost: Cost) -> Curve | None:
        """Return the curve of a cost; None if it was not measured at any size."""
        by = self.figures.get(METRICS[cost], {})
        seeds, sizes = sorted({seed for seed, _ in by}), sorted({size for _, size in by})
        if not sizes:
            return None
        rows = np.array([[by.get((seed, size), np.nan) for size in sizes] for seed in seeds])
        return Curve(tuple(sizes), rows, FLOORS[cost])

    def largest(self, metric: str) -> float | None:
        """Return the median over seeds of a metric at the largest number of objects that has it."""
        by = self.figures.get(metric, {})
        most = max((size for _, size in by), default=0)
        return float(median([value for (_, size), value in by.items() if size == most])) if by else None


def measured(boots: Sequence[BootRecords]) -> dict[tuple[str, Case], MeasuredCase]:
    """Return every case on every kernel that ``boots`` began, by kernel and case."""
    found: dict[tuple[str, Case], MeasuredCase] = {}
    for boot in boots:
        for trial in trials(boot.records):
            case = case_of(trial.params)
            key = boot.start.kernel, case
            _take(found.setdefault(key, MeasuredCase(case, boot.start.kernel)), boot, trial)
    return found


def _take(into: MeasuredCase, boot: BootRecords, trial: Trial) -> None:
    # Bystanders are measured at the largest number so far: only if all is well does the trial say which.
    largest = max(into.sizes, default=0)
    objects = int(trial.params["objects"] or median(trial.samples.get("objects_count", [largest])))
    if not trial.usable:
        outcome = "failed" if trial.status == "failed" else "void" if trial.status else boot.end.outcome
        detail = trial.detail or boot.end.detail
        into.failures.append(FailureResult(outcome=outcome, objects=objects, detail=detail))
        return
    if "beyond_budget_count" in trial.samples:
        into.left_out.add(objects)
        return
    if "needless_count" in trial.samples:
        return
    for metric, values in trial.samples.items():
        into.figures.setdefault(metric, {})[boot.start.seed, objects] = float(median(values))
