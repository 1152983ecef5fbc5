"""What verbs make of the result of a run: its report, and the exit code (``--fail-on``, broken variants)."""

from collections.abc import Callable, Mapping, Sequence

from kteardown.cli import options
from kteardown.errors import BrokenError, GateError, NotBuiltError
from kteardown.model.result import Comparison, MetricVerdict, Result
from kteardown.model.workload import Workload
from kteardown.report import saved
from kteardown.report.formats import cover, html, json, junit, markdown
from kteardown.report.formatting import change, point_text, with_remedy
from kteardown.report.material import Material, Measured, material_of, side_by_side
from kteardown.report.metrics import (
    headlines,
    is_headline,
    metric_name,
    metric_sentence,
    variants,
    verdict_of,
)
from kteardown.report.sections.fault_lines import broken_message, fault_sentence, uncompared_sentences
from kteardown.rundir.find import RunFolder
from kteardown.rundir.snapshot import load
from kteardown.visible import visible

TEXTS: Mapping[str, Callable[[Measured], str]] = {
    "markdown": markdown.report,
    "json": json.render,
    "html": html.html_report,
    "cover": cover.render,
    "comment": markdown.comment,
    "junit": junit.render,
}
"""The text formats by name: each returns the whole file."""


def material_of_folder(found: RunFolder, *, samples: bool = False) -> Measured:
    """Return the material of a run, with its ``samples`` if the format needs them.

    Nothing is written. Raises InputError, GuestError.
    """
    materials = []
    for run in found.runs:
        snapshot = load(run)
        result = saved.result_of(run)
        one = Material(run.name, result, snapshot.workloads, snapshot.published)
        materials.append(material_of(snapshot, result) if samples else one)
    return side_by_side(found.name, *materials) if found.both_clocks else materials[0]


def written(material: Measured, form: str) -> str:
    """Return the report in one of the text formats, without control characters, which no format needs."""
    return visible(TEXTS[form](material))


def gate(run: str, result: Result, workloads: Mapping[str, Workload], fail_on: options.FailOn | None) -> None:
    """Raise GateError if a headline metric, or for worse one of its points, has the verdict of ``fail_on``.

    A mixed metric is worse if one of its points goes in that direction. A run that is not finished and a
    point that could not be compared fail every gate. Raises BrokenError if a variant is broken,
    NotBuiltError if nothing of one is in its kernel.
    """
    if fail_on is None:
        return
    check_broken(run, result)
    check_built(result)
    suspected = [f for f in result.faults if f.status == "suspected" and result.is_asked_for(f.kernel)]
    if suspected:
        raise GateError(
            fault_sentence(suspected[0]),
            hint=f"boot it more often, or see the boots with `kteardown show {run}`.",
        )
    if result.unfinished:
        raise GateError(
            "the run is not finished, and a part of a run cannot pass",
            hint=f"finish it with `kteardown run --resume {run}`.",
        )
    if result.uncompared:
        raise GateError(
            f"{'; '.join(uncompared_sentences(result))}",
            hint=f"see the boots with `kteardown show {run}`; a point that was not compared cannot pass.",
        )
    for group in headlines(result, workloads):
        for variant in variants(result):
            rows, metric = group.of(variant), verdict_of(result, group, variant)
            if metric is not None and rows and _matches(metric, rows, fail_on):
                raise GateError(
                    f"a headline metric is {metric.verdict}: {metric_sentence(group, rows, metric)}",
                    hint=f"see all of them with `kteardown report {run}`; --profile shows where the time is "
                    "spent.",
                )
    if fail_on is options.FailOn.inconclusive and result.metric_verdicts:
        return
    judged = [c for c in result.asked_for if is_headline(workloads, c.workload, c.metric)]
    failed = [c for c in judged if c.verdict == fail_on.value]
    if failed:
        first = failed[0]
        name = metric_name(workloads, first.workload, first.metric, first.statistic)
        place = f" at {point_text(first.point)}" if first.point else ""
        reason = f": {with_remedy(first.reason)}" if first.reason else f" ({change(first)})"
        raise GateError(
            f"{len(failed)} of {len(judged)} headline comparisons are {fail_on.value}, "
            f"the first: {first.variant}, {name}{place}{reason}",
            hint=f"see all of them with `kteardown report {run}`; --profile shows where the time is spent.",
        )


def check_broken(run: str, result: Result) -> None:
    message = broken_message(result)
    if message:
        boot = next(fault.boots[0] for variant in result.requested for fault in result.broken(variant))
        raise BrokenError(message, hint=f"see its console with `kteardown show {run} --console {boot}`.")


def check_built(result: Result) -> None:
    if result.not_built:
        raise NotBuiltError.of(", ".join(result.not_built))


def _matches(metric: MetricVerdict, rows: Sequence[Comparison], fail_on: options.FailOn) -> bool:
    if metric.verdict != "mixed" or fail_on is not options.FailOn.worse:
        return metric.verdict == fail_on.value
    # Of a point that is not the same, the whole interval may be in the worse direction.
    intervals = [(c.better, c.ci) for c in rows if c.ci is not None and c.verdict != "same"]
    beyond = (ci[0] > 1 if better == "lower" else ci[1] < 1 for better, ci in intervals)
    return any(c.verdict == "worse" for c in rows) or any(beyond)
