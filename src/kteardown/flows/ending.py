"""The error with which a command ends that has measured: what becomes of the answer of a run."""

from kteardown.errors import BrokenError, GateError, KteardownError, NotBuiltError
from kteardown.judge.answer import FailOn, Problem
from kteardown.report.formatting import change, point_text, with_remedy
from kteardown.report.material import Measured
from kteardown.report.metrics import metric_sentence
from kteardown.report.sections.fault_lines import fault_sentence, uncompared_sentences


def gate(material: Measured, fail_on: FailOn | None) -> None:
    """Raise the error with which a run ends that does not pass ``fail_on``.

    Raises BrokenError if a variant is broken, NotBuiltError if nothing of one is in its kernel,
    GateError.
    """
    check_broken(material)
    check_built(material)
    problem = material.answer.problem(fail_on) if fail_on is not None else None
    if problem is not None:
        raise _error(material, problem)


def check_broken(material: Measured) -> None:
    """Raise BrokenError if a variant is broken."""
    faults = [
        fault for variant in material.answer.variants for fault in variant.with_status("broken")
    ]
    if faults:
        clock, first = faults[0]
        run = f"{material.name}/{clock}" if len(material.clocks) > 1 else material.name
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise BrokenError(
            f"{fault_sentence(first)}{more}",
            hint=f"see its console with `kteardown show {run} --console {first.boots[0]}`.",
        )


def check_built(material: Measured) -> None:
    """Raise NotBuiltError if nothing of a variant is in its kernel."""
    if absent := [variant.name for variant in material.answer.variants if not variant.is_built]:
        raise NotBuiltError.of(", ".join(absent))


def _error(material: Measured, problem: Problem) -> KteardownError:
    """Return the error of a problem that only a gate minds."""
    run = material.name
    boots = f"see the boots with `kteardown show {run}`"
    if problem.kind == "suspected" and problem.fault is not None:
        return GateError(fault_sentence(problem.fault), hint=f"boot it more often, or {boots}.")
    if problem.kind == "unfinished":
        return GateError(
            "the run is not finished, and a part of a run cannot pass",
            hint=f"finish it with `kteardown run --resume {run}`.",
        )
    if problem.kind == "not compared":
        lost = [text for clock in material.clocks for text in uncompared_sentences(clock.result)]
        return GateError(
            "; ".join(lost), hint=f"{boots}; a point that was not compared cannot pass."
        )
    assert problem.finding is not None
    word = "worse" if problem.kind == "fail" else "inconclusive"
    text = metric_sentence(problem.finding)
    if points := problem.finding.turned("worse"):
        place = f" at {point_text(points[0].point)}" if points[0].point else ""
        text += f"; the first point that is worse{place} ({change(points[0])})"
    elif problem.finding.whole is None:
        first = next(point for point in problem.finding.points if point.verdict == "inconclusive")
        place = f" at {point_text(first.point)}" if first.point else ""
        text += (
            f"; the first point that is inconclusive{place}: "
            f"{with_remedy(first.reason, problem.finding.clock)}"
        )
    return GateError(
        f"a headline metric is {word}: {text}",
        hint=(
            f"see all of them with `kteardown report {run}`; --profile shows where the time is "
            "spent."
        ),
    )
