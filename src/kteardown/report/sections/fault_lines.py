"""What failed, in sentences: broken variants, suspected ones, faults of base, points without a comparison.

These are the first lines of every report.
"""

from collections import Counter
from collections.abc import Mapping

from kteardown.model.point import key
from kteardown.model.result import Fault, FaultStatus, Result, Uncompared, Verdict, boot_failed
from kteardown.report.formatting import WORDS, counted, point_text, probability
from kteardown.report.table import Cell

_TONES: Mapping[FaultStatus, Verdict] = {
    "broken": "broken",
    "suspected": "broken",
    "base too": "inconclusive",
    "base": "inconclusive",
}
_BOOTS_FAILED: Mapping[str, str] = {boot_failed(end): text for end, text in WORDS["boots_failed"].items()}
"""The details of trials that are missing because their boot failed, in words."""
_MANY = 3
"""Up to this many points are named individually; of more, the number is given."""
_LONGEST = 200


def fault_lines(result: Result) -> list[Cell]:
    """Return a sentence for each fault, then one for each variant with points that were not compared."""
    lines = [fault_title(fault) for fault in reported_faults(result)]
    lines += [
        Cell(f"a part of an ablation, which is no variant: {fault_sentence(fault)}", "inconclusive")
        for fault in result.faults
        if not result.is_asked_for(fault.kernel)
    ]
    return lines + [Cell(text, "inconclusive") for text in uncompared_sentences(result)]


def fault_sentence(fault: Fault) -> str:
    """Return the status of a fault, the boots and points, and the line of the console, in one sentence."""
    bad, base = f"{len(fault.boots)} of {counted(fault.of, 'boot')}", f"{fault.base_boots} of {fault.base_of}"
    # In the order of their values: faults have them in the order of the trials, which is random.
    points = sorted(fault.points, key=lambda place: (place.workload, key(place.point)))
    workloads = " and ".join(dict.fromkeys(place.workload for place in points))
    named = [point_text(place.point) for place in points]
    where = f" at {' and '.join(named)} of {workloads}" if all(named) else f" in {workloads}"
    if not points:
        where = ", outside of a trial"
    elif len(points) > _MANY:
        where = f" at {len(points)} points of {workloads}"
    what = f"{WORDS['faults'][fault.kind]}, in {bad}{where}"
    test = f"; p={probability(fault.p)}" if fault.p is not None else ""
    message = fault.message if len(fault.message) <= _LONGEST else f"{fault.message[:_LONGEST]}..."
    why = f": {message}" if message else ""
    match fault.status:
        case "broken":
            return f"BROKEN: {fault.kernel}: {what} (base in {base}{test}){why}"
        case "suspected":
            return f"suspected to be broken: {fault.kernel}: {what} (base in {base}{test}; boot more){why}"
        case "base too":
            return f"{fault.kernel}: {what}, and so does base in {base}{why}"
    return f"base itself fails: {what}{why}"


def uncompared_sentences(result: Result) -> list[str]:
    """Return, for each variant, how many points of the plan could not be compared, and why."""
    by_variant: dict[str, list[Uncompared]] = {}
    for point in result.uncompared:
        by_variant.setdefault(point.variant, []).append(point)
    sentences = []
    for variant, points in by_variant.items():
        compared = {
            (c.workload, *sorted(c.point.items())) for c in result.comparisons if c.variant == variant
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
        sentences.append(f"{variant}: {len(points)} of {total} points could not be compared: {text}")
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


def broken_message(result: Result) -> str:
    """Return the error of a run with a broken variant; empty if none is."""
    broken = [fault for variant in result.requested for fault in result.broken(variant)]
    more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
    return f"{fault_sentence(broken[0])}{more}" if broken else ""
