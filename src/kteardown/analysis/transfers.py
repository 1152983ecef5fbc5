"""On the contention clock, a verdict needs every cost of a moved line that was measured.

The cost of a moved line decides which CPU comes first, and so steers all counts. It is no property
of the kernel: what only one cost shows is inconclusive.
"""

from collections.abc import Mapping, Sequence

from kteardown.model.judged import Comparison, Verdict
from kteardown.model.record_fields import ParamValue

TRANSFER = "transfer_ticks"
"""The parameter of a point that is the cost of a moved line, in ticks."""
_ONE_COST = "it was measured with one cost of a moved line"


def agreed(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return comparisons of which those at one point have the same verdict with every cost."""
    verdicts: dict[object, dict[ParamValue, Verdict]] = {}
    for comparison in comparisons:
        cost = comparison.point.get(TRANSFER, 0)
        verdicts.setdefault(_place(comparison), {})[cost] = comparison.verdict
    agreeing = []
    for comparison in comparisons:
        by_cost = verdicts[_place(comparison)]
        verdict, reason = confirmed(comparison.verdict, comparison.reason, by_cost)
        agreeing.append(comparison.model_copy(update={"verdict": verdict, "reason": reason}))
    return agreeing


def _place(comparison: Comparison) -> object:
    rest = tuple(item for item in comparison.point.items() if item[0] != TRANSFER)
    return (
        comparison.workload,
        comparison.metric,
        comparison.statistic,
        comparison.variant,
        rest,
    )


def confirmed(
    verdict: Verdict, reason: str, by_cost: Mapping[ParamValue, Verdict]
) -> tuple[Verdict, str]:
    """Return a verdict with its reason if it is also that with each cost alone, else an
    inconclusive one."""
    if verdict in ("inconclusive", "broken", "mixed"):
        return verdict, reason
    if len(by_cost) < 2:
        return "inconclusive", _ONE_COST
    if {*by_cost.values()} - {verdict}:
        words = (f"{of_cost} at {cost} ticks" for cost, of_cost in sorted(by_cost.items()))
        return "inconclusive", f"it depends on the cost of a moved line: {', '.join(words)}"
    return verdict, reason
