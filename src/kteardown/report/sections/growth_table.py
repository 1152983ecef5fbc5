"""The tables of growth laws: the cost of one more object, the law, its exponent, and predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kteardown.model.result import Law, Prediction, Result
from kteardown.model.workload import Workload
from kteardown.report.comparison_groups import PointKey, is_headline, point_key
from kteardown.report.formatting import Scale, change_of, number, parameter, point_text, scale
from kteardown.report.metric_names import metric_name
from kteardown.report.table import Block, Cell, Table

_LAW_NAMES: Mapping[str, str] = {"nlogn": "n log n"}
"""The names of laws that differ from their names in result.json."""


def law_tables(result: Result, workloads: Mapping[str, Workload]) -> list[Table]:
    """Return a table for each headline metric with a law and each setting of the other parameters."""
    groups: dict[tuple[str, str, PointKey], list[Law]] = {}
    for law in result.laws:
        if is_headline(workloads, law.workload, law.metric) and result.is_asked_for(law.kernel):
            groups.setdefault((law.workload, law.metric, point_key(law.point)), []).append(law)
    return [_table(result, workloads, laws) for laws in groups.values()]


def _table(result: Result, workloads: Mapping[str, Workload], laws: Sequence[Law]) -> Table:
    first = laws[0]
    unit = scale(first.unit, result.clock, [law.per_unit or 0.0 for law in laws])
    keys = Block(("kernel",), tuple((Cell(law.kernel),) for law in laws), left=frozenset(("kernel",)))
    rows = tuple(
        (
            Cell("-" if law.per_unit is None else _with_interval(law.per_unit, law.per_unit_ci, unit)),
            Cell(_LAW_NAMES.get(law.model, law.model)),
            Cell(_exponent(law)),
        )
        for law in laws
    )
    shape = Block((f"{unit.unit} for one more", "law", "exponent"), rows, left=frozenset(("law",)))
    at = f" at {point_text(first.point)}" if first.point else ""
    name = metric_name(workloads, first.workload, first.metric)
    title = f"{first.workload}: growth of {name} with {first.param}{at}"
    compared = tuple((Cell(_ratio(law), law.verdict),) for law in laws)
    slopes = (Block(("slope / base",), compared),) if any(law.verdict for law in laws) else ()
    predictions = (_predictions(result, laws, value) for value in dict.fromkeys(_values(laws)))
    notes = (*_unknown(laws), *_reasons(laws), *_refusals(laws))
    return Table(title, keys, (shape, *slopes, *predictions), notes)


def _ratio(law: Law) -> str:
    """Return the change of the slope from that of base, with its interval and verdict."""
    if law.verdict is None:
        return "-"
    return f"{change_of(law.ratio, law.ratio_ci)}, {law.verdict}"


def _unknown(laws: Sequence[Law]) -> tuple[str, ...]:
    """Return why laws are unknown; kernels share a line."""
    names = ", ".join(law.kernel for law in laws if law.model == "unknown")
    return (f"law of {names} unknown: too few points, or too much noise, to show one",) if names else ()


def _reasons(laws: Sequence[Law]) -> tuple[str, ...]:
    """Return why slopes have no verdict of better, worse or same."""
    found = [law for law in laws if law.verdict == "inconclusive" and law.reason]
    return tuple(f"slope of {law.kernel} inconclusive: {law.reason}" for law in found)


def _values(laws: Sequence[Law]) -> list[float]:
    """Return the values of the parameter at which at least one law has a prediction."""
    return [found.at for law in laws for found in law.predictions if not found.refused]


def _predictions(result: Result, laws: Sequence[Law], value: float) -> Block:
    """Return the prediction of each law at one value, with its interval."""
    found = [next((p for p in law.predictions if p.at == value), None) for law in laws]
    unit = scale(laws[0].unit, result.clock, [p.value for p in found if p and p.value is not None])
    rows = tuple((Cell(_predicted(p, unit)),) for p in found)
    return Block((f"{unit.unit} at {_size(value)}",), rows)


def _predicted(found: Prediction | None, unit: Scale) -> str:
    if found is None or found.value is None or found.low is None or found.high is None:
        return "-"
    return f"{unit.text(found.value)} ({unit.text(found.low)} to {unit.text(found.high)})"


def _refusals(laws: Sequence[Law]) -> tuple[str, ...]:
    """Return why predictions are missing; kernels with the same reason share a line."""
    reasons: dict[tuple[float, str], list[str]] = {}
    for law in laws:
        for found in law.predictions:
            if found.refused:
                reasons.setdefault((found.at, found.refused), []).append(law.kernel)
    notes = []
    for (at, reason), names in reasons.items():
        kernels = "any kernel" if len(names) == len(laws) else ", ".join(names)
        notes.append(f"no prediction at {_size(at)} for {kernels}: {reason}")
    return tuple(notes)


def _size(value: float) -> str:
    return parameter(int(value)) if value == int(value) else number(value)


def _with_interval(value: float, ci: tuple[float, float] | None, unit: Scale) -> str:
    text = number(value / unit.divisor)
    if ci is None:
        return text
    return f"{text} [{number(ci[0] / unit.divisor)}, {number(ci[1] / unit.divisor)}]"


def _exponent(law: Law) -> str:
    if law.exponent is None or law.exponent_ci is None:
        return "-"
    return f"{law.exponent:.2f} [{law.exponent_ci[0]:.2f}, {law.exponent_ci[1]:.2f}]"
