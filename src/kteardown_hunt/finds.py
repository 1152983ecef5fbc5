"""What of a hunt is a find: what asks for a confirmation, what grows, and which cases are one
find."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from kteardown.rundir.counting import BootRecords, Trial, trials
from kteardown_hunt import limits
from kteardown_hunt.catalogue import Cost, Kind
from kteardown_hunt.folder import case_of
from kteardown_hunt.growth import MEMORY_WORTH_CONFIRMING, Curve, judge, may_be_steep, screen
from kteardown_hunt.plan import (
    Case,
)
from kteardown_hunt.predict import predict
from kteardown_hunt.result import (
    CaseResult,
    CostPrediction,
    FailureResult,
    Find,
    FunctionResult,
    GrowthResult,
)

METRICS: dict[Cost, str] = {
    "sync": "sync_ns",
    "deferred": "deferred_ns",
    "make": "make_ns",
    "held": "held_kb",
}
"""The metric of each cost in the records."""
FLOORS: dict[Cost, float] = {"sync": 20_000, "deferred": 60_000, "make": 40_000, "held": 512}
"""Differences that are noise: a tick of the timer takes some thousand instructions, and deferred
work is what is left of a stretch with tens of them; free memory is counted without the lists of
each CPU."""
BYSTANDERS = ("irqs_off_ns", "realtime_ns", "probe_ns", "objects_count")
_GUEST_FAILED = ("panic", "hang", "oom")
_OF_A_CASE = {"kind", "way", "user", "object"}
_SHARE_OF_A_CAUSE = 0.2
"""With less of the time, a function that two kinds have in common says nothing about a common
cause."""


@dataclass
class MeasuredCase:
    """One case on one kernel. Figures are medians over the repetitions of a trial."""

    case: Case
    figures: dict[str, dict[tuple[int, int], float]] = field(default_factory=dict)
    """By metric, then by seed and number of objects."""
    failures: list[FailureResult] = field(default_factory=list)
    left_out: set[int] = field(default_factory=set)
    """Numbers of objects that were expected to exceed the budget; one may have been measured
    later."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(sorted({size for by in self.figures.values() for _, size in by}))

    @property
    def beyond_budget(self) -> int | None:
        """Return the smallest number of objects that was left out because of the budget."""
        return min(self.left_out - set(self.sizes), default=None)

    def curve(self, cost: Cost) -> Curve | None:
        """Return the curve of a cost; None if it was not measured at any size."""
        by = self.figures.get(METRICS[cost], {})
        seeds = sorted({seed for seed, _ in by})
        sizes = sorted({size for _, size in by})
        if not sizes:
            return None
        rows = np.array([[by.get((seed, size), np.nan) for size in sizes] for seed in seeds])
        return Curve(tuple(sizes), rows, FLOORS[cost])

    def largest(self, metric: str) -> float | None:
        """Return the median over seeds of a metric at the largest number of objects that has it."""
        by = self.figures.get(metric, {})
        most = max((size for _, size in by), default=0)
        return (
            float(median([value for (_, size), value in by.items() if size == most]))
            if by
            else None
        )


def failure_of(trial: Trial, boot: BootRecords, objects: int) -> FailureResult:
    """Return how a trial failed that gave no figures: itself, or its guest."""
    outcome = trial.status and ("failed" if trial.status == "failed" else "void")
    return FailureResult(
        outcome=outcome or boot.end.outcome,
        objects=objects,
        detail=trial.detail or boot.end.detail,
    )


def measured(boots: Sequence[BootRecords]) -> dict[tuple[str, Case], MeasuredCase]:
    """Return every case on every kernel that ``boots`` began, by kernel and case."""
    cases: dict[tuple[str, Case], MeasuredCase] = {}
    for boot in boots:
        for trial in trials(boot.records):
            case = case_of(trial.params)
            into = cases.setdefault((boot.start.kernel, case), MeasuredCase(case))
            # Bystanders are measured at the largest number so far: only if all is well does the
            # trial say which.
            largest = max(into.sizes, default=0)
            objects = int(
                trial.params["objects"] or median(trial.samples.get("objects_count", [largest]))
            )
            if not trial.usable:
                into.failures.append(failure_of(trial, boot, objects))
            elif "beyond_budget_count" in trial.samples:
                into.left_out.add(objects)
            elif "needless_count" not in trial.samples:
                for metric, values in trial.samples.items():
                    into.figures.setdefault(metric, {})[boot.start.seed, objects] = float(
                        median(values)
                    )
    return cases


def worth_confirming(screened: Iterable[MeasuredCase]) -> dict[Case, int]:
    """Return the cases that may have a find, with the largest number of objects that the screen
    measured."""
    # Memory does not depend on how it is released. A guest reports it only while the number of
    # objects grows, so of one way of each kind at all sizes: that of the other ways, at one size or
    # two, asks for nothing.
    return {
        measured_case.case: max(measured_case.sizes)
        for measured_case in screened
        if measured_case.sizes
        and any(_asks_for(*costs) for costs in _curves(measured_case).items())
    }


def may_grow(measured_case: MeasuredCase) -> bool:
    """Return whether a case may have a find after one seed of the confirmation."""
    return any(may_be_steep(curve) for curve in _curves(measured_case).values())


def _asks_for(cost: Cost, curve: Curve) -> bool:
    if cost == "held":
        return len(curve.complete().sizes) > 2 and screen(curve, MEMORY_WORTH_CONFIRMING)
    return screen(curve)


def grows(measured_case: MeasuredCase) -> list[Cost]:
    return [
        cost
        for cost, curve in _curves(measured_case).items()
        if judge(curve).verdict == "superlinear"
    ]


def case_results(
    kinds: Sequence[Kind],
    screened: Mapping[Case, MeasuredCase],
    confirmed: Mapping[Case, MeasuredCase],
    causes: Mapping[Case, Mapping[Cost, FunctionResult]],
    elsewhere: Mapping[Case, Mapping[str, MeasuredCase]],
) -> list[CaseResult]:
    """Return the verdicts of all cases, from the confirmation where there is one."""
    kinds_by_name = {kind.name: kind for kind in kinds}
    results = []
    for case, first in screened.items():
        if case.kind not in kinds_by_name:
            continue
        kind = kinds_by_name[case.kind]
        second = confirmed.get(case)
        by_source = elsewhere.get(case, {})
        growth = {cost: _screened(cost, curve) for cost, curve in _curves(first).items()}
        if second is not None:
            growth |= _growths(second)
        both = [measured_case for measured_case in (second, first) if measured_case is not None]
        watched = {
            name: value
            for name in BYSTANDERS
            for measured_case in both
            if (value := measured_case.largest(name)) is not None
        }
        failed = tuple(failure for measured_case in both for failure in measured_case.failures)
        result = CaseResult(
            **vars(case),
            **kind.model_dump(include={"part", "object", "shape", "needs"}),
            growth=growth,
            call=kind.call if case.way == "call" else "",
            causes=dict(causes.get(case, {})),
            elsewhere={
                source: _growths(measured_case) for source, measured_case in by_source.items()
            },
            failed_elsewhere={
                source: measured_case.failures[0]
                for source, measured_case in by_source.items()
                if measured_case.failures
            },
            idle_ns=both[0].largest("idle_ns"),
            bystanders=watched,
            failures=tuple(map(_text, failed)),
            failed=failed,
            beyond_budget=first.beyond_budget,
        )
        results.append(result)
    return results


def finds_of(
    cases: Sequence[CaseResult], confirmed: Mapping[Case, MeasuredCase], kinds: Sequence[Kind]
) -> list[Find]:
    """Return the finds, the worst first."""
    kinds_by_name = {kind.name: kind for kind in kinds}
    # The memory that an object takes: one of the ways of its kind has it at all sizes.
    memory: dict[str, tuple[int, float]] = {}
    for case in cases:
        held = case.growth.get("held")
        if held is not None and held.costs[-1]:
            memory[case.kind] = max(
                memory.get(case.kind, (0, 0.0)), (held.sizes[-1], held.costs[-1])
            )
    kb_each = {kind: kb / size for kind, (size, kb) in memory.items()}
    finds = []
    for case in cases:
        same = case.model_dump(include=_OF_A_CASE)
        failed = next(
            (failure for failure in case.failed if failure.outcome in _GUEST_FAILED), None
        )
        if failed:
            finds.append(Find(**same, cost=None, failure=_text(failed), failed=failed))
        of = Case(case.kind, case.way, case.user)
        for cost, grown in case.growth.items():
            if grown.verdict == "superlinear" and grown.confirmed:
                curve = confirmed[of].curve(cost)
                assert curve is not None
                finds.append(
                    Find(
                        **same,
                        cost=cost,
                        growth=grown,
                        function=case.causes.get(cost),
                        prediction=_prediction(
                            curve, kinds_by_name[case.kind], case.user, kb_each.get(case.kind)
                        )
                        if cost != "held"
                        else None,
                        elsewhere={
                            source: growths[cost]
                            for source, growths in case.elsewhere.items()
                            if cost in growths
                        },
                        failed_elsewhere=case.failed_elsewhere,
                    )
                )
    return _merged(finds)


def _curves(measured_case: MeasuredCase) -> dict[Cost, Curve]:
    curves = {cost: measured_case.curve(cost) for cost in METRICS}
    return {cost: curve for cost, curve in curves.items() if curve is not None}


def _screened(cost: Cost, curve: Curve) -> GrowthResult:
    """Return the verdict of the screen: no find where it does not ask for a confirmation."""
    growth = _growth(curve, confirmed=False)
    if growth.verdict != "superlinear" or _asks_for(cost, curve):
        return growth
    reason = f"{growth.reason}, in the screen: too little to be confirmed"
    return growth.model_copy(update={"verdict": "unknown", "reason": reason})


def _growths(measured_case: MeasuredCase) -> dict[Cost, GrowthResult]:
    return {cost: _growth(curve, confirmed=True) for cost, curve in _curves(measured_case).items()}


def _growth(curve: Curve, *, confirmed: bool) -> GrowthResult:
    growth = judge(curve)
    last = growth.exponents[-1] if growth.exponents else None
    medians = np.nanmedian(curve.rows, axis=0)
    return GrowthResult(
        verdict=growth.verdict,
        reason=growth.reason,
        exponent=_finite(last.value) if last else None,
        exponent_ci=(_finite(last.low), _finite(last.high)) if last else (None, None),
        share=growth.share,
        rising=growth.rising,
        sizes=curve.sizes,
        costs=tuple(_finite(float(value)) for value in medians),
        confirmed=confirmed,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _prediction(
    curve: Curve, kind: Kind, user: str, kb_each: float | None
) -> CostPrediction | None:
    allowed = limits.largest(kind.limit, kind.most, user, kb_each)
    if (
        allowed is None
        or allowed[0] < curve.sizes[-1]
        or (predicted := predict(curve, allowed[0])) is None
    ):
        return None
    low, middle, high = predicted
    return CostPrediction(
        objects=allowed[0], limit=allowed[1], instructions=(low, middle, _finite(high))
    )


def _text(failure: FailureResult) -> str:
    return f"{failure.brief}: {failure.detail}"


def _merged(finds: Sequence[Find]) -> list[Find]:
    """Put finds together in which the same function makes the same cost grow; the worst one
    remains."""
    ordered = sorted(finds, key=_badness, reverse=True)
    groups: dict[object, list[Find]] = {}
    for number, find in enumerate(ordered):
        # What two finds have in common if they are one.
        cause: object = number
        if find.function is not None:
            kind = "" if find.function.share >= _SHARE_OF_A_CAUSE else find.kind
            cause = find.cost, find.function.place, kind
        groups.setdefault(cause, []).append(find)
    return [
        first.model_copy(update={"also": tuple(f"{find.kind}, {find.way}" for find in rest)})
        for first, *rest in groups.values()
    ]


def _badness(find: Find) -> tuple[bool, bool, float]:
    """Return the order of finds: failures of guests, then interrupts off, then the predicted
    cost."""
    if find.growth is None:
        return True, False, 0.0
    off = find.function is not None and find.function.no_interrupts > 0.5
    cost = find.prediction.instructions[1] if find.prediction else find.growth.costs[-1]
    return False, off, cost or 0.0
