"""What verbs make of the result of a run: its report, and the exit code (``--fail-on``, broken variants)."""

from collections.abc import Callable, Mapping

from kteardown.analysis.failing import fails
from kteardown.cli import options
from kteardown.errors import BrokenError, GateError, NotBuiltError
from kteardown.model.result import Result
from kteardown.model.workload import Workload
from kteardown.report import saved
from kteardown.report.formats import cover, html, json, junit, markdown
from kteardown.report.formatting import change, point_text, with_remedy
from kteardown.report.material import Material, Measured, material_of, side_by_side
from kteardown.report.metrics import headline_rows, metric_name, metric_sentence
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
    """Raise GateError if a headline metric fails ``fail_on`` (``analysis.failing``).

    A run that is not finished and a
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
    rows_of_all = list(headline_rows(result, workloads))
    failed = [
        (group, rows, metric) for group, _, rows, metric in rows_of_all if fails(metric, rows, fail_on.value)
    ]
    for group, rows, metric in failed:
        if metric is not None and metric.verdict in (fail_on.value, "mixed"):
            raise GateError(
                f"a headline metric is {metric.verdict}: {metric_sentence(group, rows, metric)}",
                hint=f"see all of them with `kteardown report {run}`; --profile shows where the time is "
                "spent.",
            )
    points = [row for _, rows, _ in failed for row in rows if row.verdict == fail_on.value]
    if points:
        first = points[0]
        name = metric_name(workloads, first.workload, first.metric, first.statistic)
        place = f" at {point_text(first.point)}" if first.point else ""
        reason = f": {with_remedy(first.reason)}" if first.reason else f" ({change(first)})"
        judged = sum(len(rows) for _, _, rows, _ in rows_of_all)
        raise GateError(
            f"{len(points)} of {judged} headline comparisons are {fail_on.value}, "
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
