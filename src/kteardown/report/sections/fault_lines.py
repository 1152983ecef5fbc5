"""What failed, in sentences: broken variants, suspected ones, faults of base, points without a
comparison, and figures that a kernel or a script made itself and that are not seen from outside.

These are the first lines of every report.
"""

from collections import Counter
from collections.abc import Mapping

from kteardown.judge.metrics import metric_label
from kteardown.model.faults import Fault, FaultStatus, boot_failed
from kteardown.model.judged import Verdict
from kteardown.model.point import key
from kteardown.model.result import Result, Uncompared
from kteardown.report.charts import written
from kteardown.report.formatting import WORDS, counted, point_text
from kteardown.report.table import Cell

_TONES: Mapping[FaultStatus, Verdict] = {
    "broken": "broken",
    "suspected": "broken",
    "base too": "inconclusive",
    "base": "inconclusive",
}
_BOOTS_FAILED: Mapping[str, str] = {
    boot_failed(end): text for end, text in WORDS["boots_failed"].items()
}
"""The details of trials that are missing because their boot failed, in words."""
_LONGEST = 200


def fault_lines(result: Result) -> list[Cell]:
    """Return a sentence for each fault, for each variant with points that were not compared, and
    for each metric whose saving is not confirmed.
    """
    lines = [fault_title(fault) for fault in reported_faults(result)]
    lines += [
        Cell(f"a part of an ablation, which is no variant: {fault_sentence(fault)}", "inconclusive")
        for fault in result.faults
        if not result.is_asked_for(fault.kernel)
    ]
    more = (*uncompared_sentences(result), *unconfirmed_sentences(result))
    return lines + [Cell(text, "inconclusive") for text in more]


def unconfirmed_sentences(result: Result) -> list[str]:
    """Return each metric that is better by figures of the kernel or the script alone, with the
    reason."""
    wholes = {
        (m.variant, metric_label(m.metric, m.statistic)): m.reason
        for m in result.metric_verdicts
        if m.outside == "contradicts"
    }
    points: dict[tuple[str, str], list[str]] = {}
    for c in result.asked_for:
        name = (c.variant, metric_label(c.metric, c.statistic))
        if c.outside == "contradicts" and name not in wholes:
            points.setdefault(name, []).append(c.reason)
    return [
        *(f"{variant}, {metric}: {reason}" for (variant, metric), reason in wholes.items()),
        *(
            f"{variant}, {metric} at {counted(len(reasons), 'point')}: {reasons[0]}"
            for (variant, metric), reasons in points.items()
        ),
    ]


def fault_sentence(fault: Fault) -> str:
    """Return the status of a fault, the boots and points, and the line of the console, in one
    sentence."""
    # In the order of their values: faults have them in the order of the trials, which is random.
    points = sorted(fault.points, key=lambda place: (place.workload, key(place.point)))
    workloads = " and ".join(dict.fromkeys(place.workload for place in points))
    named = [point_text(place.point) for place in points]
    message = fault.message if len(fault.message) <= _LONGEST else f"{fault.message[:_LONGEST]}..."
    return written("fault", fault, workloads, named, message)[0]


def uncompared_sentences(result: Result) -> list[str]:
    """Return, for each variant, how many points of the plan could not be compared, and why."""
    by_variant: dict[str, list[Uncompared]] = {}
    for point in result.uncompared:
        by_variant.setdefault(point.variant, []).append(point)
    sentences = []
    for variant, points in by_variant.items():
        compared = {
            (c.workload, *sorted(c.point.items()))
            for c in result.comparisons
            if c.variant == variant
        }
        total = len(points) + len(compared)
        reasons: Counter[str] = Counter()
        for point in points:
            # The kernel is named where it is not the variant itself.
            kernel, _, detail = point.reason.partition(": ")
            words = detail_in_words(detail)
            named = f"{kernel}: {words}" if detail else point.reason
            reasons[words if kernel == point.variant else named] += 1
        text = ", ".join(f"{reason} ({count})" for reason, count in reasons.most_common())
        sentences.append(
            f"{variant}: {len(points)} of {total} points could not be compared: {text}"
        )
    return sentences


def detail_in_words(detail: str) -> str:
    """Return why a trial is missing: how its boot ended in words, any other detail unchanged."""
    return _BOOTS_FAILED.get(detail, detail)


def reported_faults(result: Result) -> list[Fault]:
    """Return the faults of requested kernels and of base."""
    return [fault for fault in result.faults if result.is_asked_for(fault.kernel)]


def fault_title(fault: Fault) -> Cell:
    """Return the sentence of a fault with its tone."""
    return Cell(fault_sentence(fault), _TONES[fault.status])


def fault_source(fault: Fault) -> str:
    """Return the boot of a fault, and the file of its whole console."""
    return f"boot {fault.boots[0]} (console/{fault.boots[0]:04d}-*.log in the run directory)"
