"""``result.json``: what is saved of an analysis. Equal results give equal bytes.

It has what a reader needs to understand it without the workloads: its sentence, and its metrics.
"""

import json
from collections.abc import Mapping
from typing import Literal, TypeVar

from pydantic import BaseModel, ValidationError

from kteardown.errors import InputError
from kteardown.judge.metrics import is_headline, metric_name
from kteardown.model.clock import value_unit
from kteardown.model.result import MetricFacts, Result
from kteardown.model.workload import Workload
from kteardown.report.metrics import help_of
from kteardown.report.sentence import sentence


def dumps(result: Result) -> str:
    """Return the result as JSON with a newline at the end; keys in the order of the model, never
    NaN."""
    fields = result.model_dump(mode="json", by_alias=True)
    return json.dumps(fields, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def loads(text: str | bytes) -> Result:
    """Return the result of a result.json. Raises InputError that says what is wrong with it."""
    hint = "`kteardown analyse RUN` makes it again from the run's records."
    return check_schema(parse(Result, text, hint=hint, extra="forbid"))


def result_of(text: str | bytes, name: str) -> Result:
    """Return the result of a result.json of any version, of which unknown fields are ignored.

    ``name`` is that of the file. Raises InputError.
    """
    return check_schema(parse(Result, text, name), name)


_Model = TypeVar("_Model", bound=BaseModel)


def parse(
    model: type[_Model],
    text: str | bytes,
    name: str = "",
    *,
    what: str = "a result.json",
    hint: str = "give a run, or the file that `kteardown run --json FILE` writes.",
    extra: Literal["ignore", "forbid"] = "ignore",
) -> _Model:
    """Return what a file has. Raises InputError with the key that is wrong, and with ``hint``."""
    try:
        return model.model_validate_json(text, extra=extra)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        reason = f"not {what}: {key + ': ' if key else ''}{first['msg']}"
        raise InputError(f"{name} is {reason}" if name else reason, hint=hint) from error


def check_schema(result: Result, name: str = "result.json") -> Result:
    """Return ``result``. Raises InputError if it is of a later schema."""
    if result.schema_ != 1:
        raise InputError(
            f"{name} has schema {result.schema_}; this kteardown reads schema 1",
            hint="use the kteardown that wrote it, or a newer one.",
        )
    return result


_VALUED = ("comparisons", "metric_verdicts", "laws", "distributions", "ablations")
"""The parts of a result that have values of metrics."""


def in_words(result: Result, workloads: Mapping[str, Workload]) -> Result:
    """Return the result with its sentence, the descriptions of its metrics, and the unit of each
    value."""
    valued = {
        name: tuple(
            row.model_copy(update={"value_unit": value_unit(row.unit, result.clock)})
            for row in getattr(result, name)
        )
        for name in _VALUED
    }
    words = {
        "sentence": sentence(result, workloads),
        "metrics": metrics_in_words(result, workloads),
    }
    return result.model_copy(update={**words, **valued})


def metrics_in_words(result: Result, workloads: Mapping[str, Workload]) -> tuple[MetricFacts, ...]:
    """Return every compared metric with its name, what it is, and the unit that the clock gives."""
    first = {(c.workload, c.metric): c for c in reversed(result.comparisons)}
    specs = {
        (name, key): spec
        for name, workload in workloads.items()
        for key, spec in workload.metrics.items()
    }
    return tuple(
        MetricFacts(
            workload=workload,
            metric=metric,
            name=metric_name(workloads, workload, metric),
            help=help_of(specs[workload, metric]) if (workload, metric) in specs else "",
            unit=value_unit(c.unit, result.clock),
            better=c.better,
            headline=is_headline(workloads, workload, metric),
        )
        for (workload, metric), c in reversed(first.items())
    )
