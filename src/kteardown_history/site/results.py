"""A result as the page that compares two of them reads it: only what it shows, in short rows."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kteardown.judge.metrics import metric_name
from kteardown.model.clock import value_unit
from kteardown.model.judged import Summary, Valued
from kteardown.model.kernel_facts import KernelFacts
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result
from kteardown.model.workload import Workload
from kteardown.report.formatting import point_text

Rows = dict[str, Any]
_HASH_DIGITS = 12
_DIGITS = 6


def compact(
    name: str, page: str, began: str, result: Result, workloads: Mapping[str, Workload]
) -> Rows:
    """Return a result for the page that compares: every value is by metric, statistic and point.

    ``page`` is the file name of its report, ``began`` its date. A metric is named by its place in
    ``metrics``, and each table has the names of its columns.
    """
    metrics = _Metrics(result, workloads)
    return {
        "name": name,
        "page": page,
        "began": began,
        "experiment": result.experiment,
        "clock": result.clock,
        "sentence": result.sentence,
        "kernels": {key: _kernel(facts) for key, facts in result.kernels.items()},
        "values": _table(
            ("metric", "statistic", "point", "kernel", "value"), _values(result, metrics)
        ),
        "changes": _table(
            ("metric", "statistic", "point", "kernel", "ratio", "low", "high", "verdict"),
            _changes(result, metrics),
        ),
        "laws": _table(
            ("metric", "parameter", "point", "kernel", "law", "one_more", "low", "high"),
            _laws(result, metrics),
        ),
        # Last: filled by the tables.
        "metrics": metrics.listed,
    }


class _Metrics:
    """The metrics that the rows name by their number."""

    def __init__(self, result: Result, workloads: Mapping[str, Workload]) -> None:
        self._clock = result.clock
        self._names = {(row.workload, row.metric): row.name for row in result.metrics}
        self._workloads = workloads
        self._numbers: dict[tuple[str, str], int] = {}
        self.listed: list[Rows] = []

    def number(self, row: Valued) -> int:
        key = row.workload, row.metric
        if key not in self._numbers:
            self._numbers[key] = len(self.listed)
            name = self._names.get(key) or metric_name(self._workloads, *key)
            unit = value_unit(row.unit, self._clock)
            about = {"workload": row.workload, "metric": row.metric, "name": name, "unit": unit}
            self.listed.append(about)
        return self._numbers[key]


def _kernel(facts: KernelFacts) -> dict[str, str]:
    return {
        "release": facts.release,
        "source": facts.source,
        "series": facts.series,
        "arch": facts.arch,
        "compiler": facts.compiler,
        "configuration": facts.config_hash[:_HASH_DIGITS],
        "image": facts.image_hash[:_HASH_DIGITS],
    }


def _table(columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> Rows:
    return {"columns": columns, "rows": [[_short(value) for value in row] for row in rows]}


def _short(value: Any) -> Any:
    """Return a number with as many digits as the page can show."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.{_DIGITS}g}")


def _values(result: Result, metrics: _Metrics) -> Iterator[tuple[Any, ...]]:
    """Yield the value of each kernel at each point once."""
    seen = set[tuple[Any, ...]]()
    for row, statistic, kernel, point, summary in _summaries(result):
        key = metrics.number(row), statistic, point_text(point), kernel
        if key not in seen:
            seen.add(key)
            yield (*key, summary.compared)


def _summaries(
    result: Result,
) -> Iterator[tuple[Valued, str, str, Mapping[str, ParamValue], Summary]]:
    for row in result.asked_for:
        yield row, row.statistic, "base", row.point, row.base
        yield row, row.statistic, row.variant, row.point, row.changed
    for level in result.levels:
        yield level, "median", level.kernel, level.point, level.summary


def _changes(result: Result, metrics: _Metrics) -> Iterator[tuple[Any, ...]]:
    for row in result.asked_for:
        ends = row.ci or (None, None)
        place = metrics.number(row), row.statistic, point_text(row.point), row.variant
        yield (*place, row.ratio, *ends, row.verdict)


def _laws(result: Result, metrics: _Metrics) -> Iterator[tuple[Any, ...]]:
    for law in result.laws:
        if law.kernel in result.kernels and result.is_asked_for(law.kernel):
            ends = law.per_unit_ci or (None, None)
            place = metrics.number(law), law.param, point_text(law.point), law.kernel
            yield (*place, law.model, law.per_unit, *ends)
