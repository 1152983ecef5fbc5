"""The tables of growth laws: the cost of one more object, the law, its exponent, and predictions."""

from collections.abc import Iterator, Mapping, Sequence

from kteardown.model.result import Law, Prediction, Result
from kteardown.model.workload import Workload
from kteardown.report.comparison_groups import PointKey, is_headline, point_key
from kteardown.report.formatting import Scale, change_of, number, parameter, point_text, scale
from kteardown.report.metric_names import metric_name
from kteardown.report.table import Block, Table

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
    keys = Block.of(("kernel",), [(law.kernel,) for law in laws], left=("kernel",))
    rows = [(_slope(law, unit), _LAW_NAMES.get(law.model, law.model), _exponent(law)) for law in laws]
    shape = Block.of((f"{unit.unit} for one more", "law", "exponent"), rows, left=("law",))
    at = f" at {point_text(first.point)}" if first.point else ""
    name = metric_name(workloads, first.workload, first.metric)
    title = f"{first.workload}: growth of {name} with {first.param}{at}"
    compared = [((_ratio(law), law.verdict),) for law in laws]
    slopes = (Block.of(("slope / base",), compared),) if any(law.verdict for law in laws) else ()
    predicted = dict.fromkeys(p.at for law in laws for p in law.predictions if not p.refused)
    predictions = (_predictions(result, laws, value) for value in predicted)
    return Table(title, keys, (shape, *slopes, *predictions), tuple(_notes(laws)))


def _ratio(law: Law) -> str:
    """Return the change of the slope from that of base, with its interval and verdict."""
    if law.verdict is None:
        return "-"
    return f"{change_of(law.ratio, law.ratio_ci)}, {law.verdict}"


def _notes(laws: Sequence[Law]) -> Iterator[str]:
    """Yield why laws are unknown, why slopes have no verdict, and why predictions are missing."""
    if names := ", ".join(law.kernel for law in laws if law.model == "unknown"):
        yield f"law of {names} unknown: too few points, or too much noise, to show one"
    for law in laws:
        if law.verdict == "inconclusive" and law.reason:
            yield f"slope of {law.kernel} inconclusive: {law.reason}"
    refused: dict[tuple[float, str], list[str]] = {}
    for law in laws:
        for found in law.predictions:
            if found.refused:
                refused.setdefault((found.at, found.refused), []).append(law.kernel)
    for (at, reason), kernels in refused.items():
        which = "any kernel" if len(kernels) == len(laws) else ", ".join(kernels)
        yield f"no prediction at {_size(at)} for {which}: {reason}"


def _predictions(result: Result, laws: Sequence[Law], value: float) -> Block:
    """Return the prediction of each law at one value, with its interval."""
    found = [next((p for p in law.predictions if p.at == value), None) for law in laws]
    unit = scale(laws[0].unit, result.clock, [p.value for p in found if p and p.value is not None])
    return Block.of((f"{unit.unit} at {_size(value)}",), [(_predicted(p, unit),) for p in found])


def _predicted(found: Prediction | None, unit: Scale) -> str:
    if found is None or found.value is None or found.low is None or found.high is None:
        return "-"
    return f"{unit.text(found.value)} ({unit.text(found.low)} to {unit.text(found.high)})"


def _size(value: float) -> str:
    return parameter(int(value)) if value == int(value) else number(value)


def _slope(law: Law, unit: Scale) -> str:
    if law.per_unit is None:
        return "-"
    ends = ", ".join(number(end / unit.divisor) for end in law.per_unit_ci or ())
    return number(law.per_unit / unit.divisor) + (f" [{ends}]" if ends else "")


def _exponent(law: Law) -> str:
    if law.exponent is None or law.exponent_ci is None:
        return "-"
    return f"{law.exponent:.2f} [{law.exponent_ci[0]:.2f}, {law.exponent_ci[1]:.2f}]"
