"""``result.json``: the interface for scripts and dashboards. Equal results give equal bytes.

It has what a reader needs to understand it without the workloads: its sentence, and its metrics.
"""

import json
from collections.abc import Mapping

from kteardown.judge.metrics import is_headline, metric_name
from kteardown.model.clock import value_unit
from kteardown.model.result import BothClocks, MetricFacts, Result
from kteardown.model.workload import Workload
from kteardown.report.diff import parse
from kteardown.report.material import BothMaterial, Measured
from kteardown.report.metrics import help_of
from kteardown.report.publication import Publication
from kteardown.report.sentence import sentence


def render(publication: Publication) -> str:
    """Return the facts of the command, or else the result of its run."""
    if publication.facts:
        return json.dumps(publication.facts, indent=1) + "\n"
    return of_run(publication.run)


def of_run(material: Measured) -> str:
    """Return the JSON of a run with its words; that of a run on both clocks has the results of each."""
    if not isinstance(material, BothMaterial):
        return dumps(in_words(material.result, material.workloads))
    both, workloads = material.both, material.workloads
    results = {clock: in_words(result, workloads) for clock, result in both.results.items()}
    return dumps(both.model_copy(update={"results": results, "sentence": sentence(both, workloads)}))


def dumps(result: Result | BothClocks) -> str:
    """Return the result as JSON with a newline at the end; keys in the order of the model, never NaN."""
    fields = result.model_dump(mode="json", by_alias=True)
    return json.dumps(fields, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def loads(text: str | bytes) -> Result:
    """Return the result from JSON. Raises InputError that says what is wrong with it."""
    return parse(text, "`kteardown analyse RUN` makes it again from the run's records.")


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
