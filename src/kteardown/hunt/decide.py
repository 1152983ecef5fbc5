"""From costs to finds: the verdict on every case, and cases with the same cause put together."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kteardown.hunt import limits
from kteardown.hunt.catalogue import Cost, Kind
from kteardown.hunt.costs import METRICS, MeasuredCase
from kteardown.hunt.curve import Curve
from kteardown.hunt.growth import MEMORY_WORTH_CONFIRMING, judge, may_be_steep, predict, screen
from kteardown.hunt.plan import Case
from kteardown.hunt.result import (
    CaseResult,
    CostPrediction,
    FailureResult,
    Find,
    FunctionResult,
    GrowthResult,
)

BYSTANDERS = ("irqs_off_ns", "realtime_ns", "probe_ns", "objects_count")
_GUEST_FAILED = ("panic", "hang", "oom")
_OF_A_CASE = {"kind", "way", "user", "object"}
_SHARE_OF_A_CAUSE = 0.2
"""With less of the time, a function that two kinds have in common says nothing about a common cause."""


def worth_confirming(screened: Iterable[MeasuredCase]) -> dict[Case, int]:
    """Return the cases that may have a find, with the largest number of objects that the screen measured.

    Memory does not depend on how it is released. A guest reports it only while the number of objects grows,
    so of one way of each kind at all sizes: that of the other ways, at one size or two, asks for nothing.
    """
    return {
        each.case: max(each.sizes)
        for each in screened
        if each.sizes and any(_asks_for(*costs) for costs in _curves(each).items())
    }


def may_grow(each: MeasuredCase) -> bool:
    """Return whether a case may have a find after one seed of the confirmation."""
    return any(may_be_steep(curve) for curve in _curves(each).values())


def _asks_for(cost: Cost, curve: Curve) -> bool:
    if cost == "held":
        return len(curve.complete().sizes) > 2 and screen(curve, MEMORY_WORTH_CONFIRMING)
    return screen(curve)


def grows(each: MeasuredCase) -> list[Cost]:
    """Return the costs of a case that are superlinear."""
    return [cost for cost, curve in _curves(each).items() if judge(curve).verdict == "superlinear"]


def case_results(
    kinds: Sequence[Kind],
    screened: Mapping[Case, MeasuredCase],
    confirmed: Mapping[Case, MeasuredCase],
    causes: Mapping[Case, Mapping[Cost, FunctionResult]],
    elsewhere: Mapping[Case, Mapping[str, MeasuredCase]],
) -> list[CaseResult]:
    """Return the verdicts of all cases, from the confirmation where there is one."""
    known = {kind.name: kind for kind in kinds}
    found = []
    for case, first in screened.items():
        if case.kind not in known:
            continue
        kind, second, others = known[case.kind], confirmed.get(case), elsewhere.get(case, {})
        growth = {cost: _screened(cost, curve) for cost, curve in _curves(first).items()}
        if second is not None:
            growth |= _growths(second)
        both = [each for each in (second, first) if each is not None]
        watched = {
            name: value for name in BYSTANDERS for each in both if (value := each.largest(name)) is not None
        }
        failed = tuple(failure for each in both for failure in each.failures)
        result = CaseResult(
            kind=kind.name,
            part=kind.part,
            object=kind.object,
            shape=kind.shape,
            way=case.way,
            user=case.user,
            growth=growth,
            call=kind.call if case.way == "call" else "",
            needs=kind.needs,
            causes=dict(causes.get(case, {})),
            elsewhere={source: _growths(each) for source, each in others.items()},
            failed_elsewhere={source: each.failures[0] for source, each in others.items() if each.failures},
            idle_ns=both[0].largest("idle_ns"),
            bystanders=watched,
            failures=tuple(map(_text, failed)),
            failed=failed,
            beyond_budget=first.beyond_budget,
        )
        found.append(result)
    return found


def finds(
    cases: Sequence[CaseResult], confirmed: Mapping[Case, MeasuredCase], kinds: Sequence[Kind]
) -> list[Find]:
    """Return the finds, the worst first."""
    known = {kind.name: kind for kind in kinds}
    # The memory that an object takes: one of the ways of its kind has it at all sizes.
    memory: dict[str, tuple[int, float]] = {}
    for case in cases:
        held = case.growth.get("held")
        if held is not None and held.costs[-1]:
            memory[case.kind] = max(memory.get(case.kind, (0, 0.0)), (held.sizes[-1], held.costs[-1]))
    kb_each = {kind: kb / size for kind, (size, kb) in memory.items()}
    found = []
    for case in cases:
        same = case.model_dump(include=_OF_A_CASE)
        failed = next((failure for failure in case.failed if failure.outcome in _GUEST_FAILED), None)
        if failed:
            found.append(Find(**same, cost=None, failure=_text(failed), failed=failed))
        of = Case(case.kind, case.way, case.user)
        for cost, growth in case.growth.items():
            if growth.verdict == "superlinear" and growth.confirmed:
                curve = confirmed[of].curve(cost)
                assert curve is not None
                found.append(
                    Find(
                        **same,
                        cost=cost,
                        growth=growth,
                        function=case.causes.get(cost),
                        prediction=_prediction(curve, known[case.kind], case.user, kb_each.get(case.kind))
                        if cost != "held"
                        else None,
                        elsewhere={
                            source: those[cost] for source, those in case.elsewhere.items() if cost in those
                        },
                        failed_elsewhere=case.failed_elsewhere,
                    )
                )
    return _merged(found)


def _curves(each: MeasuredCase) -> dict[Cost, Curve]:
    found = {cost: each.curve(cost) for cost in METRICS}
    return {cost: curve for cost, curve in found.items() if curve is not None}


def _screened(cost: Cost, curve: Curve) -> GrowthResult:
    """Return the verdict of the screen: no find where it does not ask for a confirmation."""
    found = _growth(curve, confirmed=False)
    if found.verdict != "superlinear" or _asks_for(cost, curve):
        return found
    reason = f"{found.reason}, in the screen: too little to be confirmed"
    return found.model_copy(update={"verdict": "unknown", "reason": reason})


def _growths(each: MeasuredCase) -> dict[Cost, GrowthResult]:
    return {cost: _growth(curve, confirmed=True) for cost, curve in _curves(each).items()}


def _growth(curve: Curve, *, confirmed: bool) -> GrowthResult:
    found = judge(curve)
    last = found.exponents[-1] if found.exponents else None
    medians = np.nanmedian(curve.rows, axis=0)
    return GrowthResult(
        verdict=found.verdict,
        reason=found.reason,
        exponent=_finite(last.value) if last else None,
        exponent_ci=(_finite(last.low), _finite(last.high)) if last else (None, None),
        share=found.share,
        rising=found.rising,
        sizes=curve.sizes,
        costs=tuple(_finite(float(value)) for value in medians),
        confirmed=confirmed,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _prediction(curve: Curve, kind: Kind, user: str, kb_each: float | None) -> CostPrediction | None:
    allowed = limits.largest(kind.limit, kind.most, user, kb_each)
    if allowed is None or allowed[0] < curve.sizes[-1] or (found := predict(curve, allowed[0])) is None:
        return None
    low, middle, high = found
    return CostPrediction(objects=allowed[0], limit=allowed[1], instructions=(low, middle, _finite(high)))


def _text(failure: FailureResult) -> str:
    return f"{failure.brief}: {failure.detail}"


def _merged(found: Sequence[Find]) -> list[Find]:
    """Put finds together in which the same function makes the same cost grow; the worst one remains."""
    ordered = sorted(found, key=_badness, reverse=True)
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
    """Return the order of finds: failures of guests, then interrupts off, then the predicted cost."""
    if find.growth is None:
        return True, False, 0.0
    off = find.function is not None and find.function.no_interrupts > 0.5
    cost = find.prediction.instructions[1] if find.prediction else find.growth.costs[-1]
    return False, off, cost or 0.0
