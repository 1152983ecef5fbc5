"""``result.json``: what is saved of an analysis. Equal results give equal bytes.

It has what a reader needs to understand it without the workloads: its sentence, and its metrics.
"""

import json
from collections.abc import Mapping
from typing import Literal

from pydantic import ValidationError

from kteardown.errors import InputError
from kteardown.judge.metrics import is_headline, metric_name
from kteardown.model.clock import value_unit
from kteardown.model.result import MetricFacts, Result
from kteardown.model.workload import Workload
from kteardown.report.metrics import help_of
from kteardown.report.sentence import sentence


def dumps(result: Result) -> str:
    """Return the result as JSON with a newline at the end; keys in the order of the model, never NaN."""
    fields = result.model_dump(mode="json", by_alias=True)
    return json.dumps(fields, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def loads(text: str | bytes) -> Result:
    """Return the result from JSON. Raises InputError that says what is wrong with it."""
    return _parse(text, "`kteardown analyse RUN` makes it again from the run's records.")


def read(text: str | bytes, name: str) -> Result:
    """Parse a result.json. Raises InputError with the name of the file and what is wrong."""
    return _parse(
        text, "give a run, or the file that `kteardown run --json FILE` writes.", name, extra="ignore"
    )


def _parse(
    text: str | bytes, hint: str, name: str = "", *, extra: Literal["ignore", "forbid"] = "forbid"
) -> Result:
    """Parse a result.json. Raises InputError with what is wrong, and with ``hint``."""
    try:
        found = Result.model_validate_json(text, extra=extra)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        reason = f"not a result.json: {key + ': ' if key else ''}{first['msg']}"
        raise InputError(f"{name} is {reason}" if name else reason, hint=hint) from error
    if found.schema_ != 1:
        raise InputError(
            f"{name or 'result.json'} has schema {found.schema_}; this kteardown reads schema 1",
            hint="use the kteardown that wrote it, or a newer one.",
        )
    return found


_VALUED = ("comparisons", "metric_verdicts", "laws", "distributions", "ablations")
"""The parts of a result that have values of metrics."""


def in_words(result: Result, workloads: Mapping[str, Workload]) -> Result:
    """Return the result with its sentence, the descriptions of its metrics, and the unit of each value."""
    valued = {
        name: tuple(
            row.model_copy(update={"value_unit": value_unit(row.unit, result.clock)})
            for row in getattr(result, name)
        )
        for name in _VALUED
    }
    words = {"sentence": sentence(result, workloads), "metrics": metrics_in_words(result, workloads)}
    return result.model_copy(update={**words, **valued})


def metrics_in_words(result: Result, workloads: Mapping[str, Workload]) -> tuple[MetricFacts, ...]:
    """Return every compared metric with its name, what it is, and the unit that the clock gives."""
    first = {(c.workload, c.metric): c for c in reversed(result.comparisons)}
    known = {(name, key): spec for name, one in workloads.items() for key, spec in one.metrics.items()}
    return tuple(
        MetricFacts(
            workload=workload,
            metric=metric,
            name=metric_name(workloads, workload, metric),
            help=help_of(known[workload, metric]) if (workload, metric) in known else "",
            unit=value_unit(c.unit, result.clock),
            better=c.better,
            headline=is_headline(workloads, workload, metric),
        )
        for (workload, metric), c in reversed(first.items())
    )
