"""The result in one sentence, with which every report begins.

It is made from the verdicts alone. What is broken or worse is always named; a gain is named only if a verdict
is ``better``, and never of a broken variant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kteardown.errors import NotBuiltError
from kteardown.model.record import BASE
from kteardown.model.result import FaultStatus, Result, Verdict
from kteardown.model.workload import Workload
from kteardown.report.formatting import with_remedy
from kteardown.report.revision import revisions_in
from kteardown.report.sections.fault_lines import fault_words
from kteardown.report.verdict_clauses import (
    Found,
    beside_better,
    beside_worse,
    changes,
    exceptions,
    few,
    found_of,
    listed,
    no_changes,
    nothing_worse,
    short,
)

ALARMING: tuple[Verdict, ...] = ("broken", "worse", "mixed", "better", "inconclusive", "same")
"""The most alarming verdict first."""
FULL = 2
"""Up to this many variants have a part of the sentence each; more are counted by what they are."""
BASE_ALONE = "Only base was run: there is nothing to compare it with"
UNHURT = "nothing got worse"
_LONGEST_REASON = 100
_LOST = "not compared"
_SORTS = (
    "broken",
    "not in the kernel",
    "worse",
    "better and worse",
    "better",
    "the same",
    "inconclusive",
    _LOST,
)
_WITH_CHANGE = ("worse", "better and worse", "better")


def sentence(result: Result, workloads: Mapping[str, Workload]) -> str:
    """Return the sentence, which ends with a full stop."""
    requested = requested_of(result)
    base = [f"base itself fails: {few(found, 'fault')}" for found in [faults(result, BASE, "base")] if found]
    absent = not_built_texts(result.not_built)
    if not requested and not absent:
        return "; ".join([BASE_ALONE, *base]) + "."
    texts = (
        [_of_variant(result, workloads, variant) for variant in requested]
        if len(requested) <= FULL
        else _of_many(result, workloads, requested)
    )
    left = f"; boots left: {result.boots_left}" if result.boots_left else ""
    so_far = f"So far (the run is not finished{left}): " if result.unfinished else ""
    return so_far + "; ".join([*absent, *texts, *revisions_in(result, workloads), *base]) + "."


def tone_of(result: Result) -> Verdict:
    """Return the verdict that the colour of the sentence shows: the most alarming one."""
    verdicts = {m.verdict for m in result.metric_verdicts} | {c.verdict for c in result.asked_for}
    if any(f.status in ("broken", "suspected") and result.is_asked_for(f.kernel) for f in result.faults):
        return "broken"
    if (result.uncompared or result.not_built) and "worse" not in verdicts:
        return "inconclusive"
    return next((verdict for verdict in ALARMING if verdict in verdicts), "inconclusive")


def requested_of(result: Result) -> tuple[str, ...]:
    """Return the variants that a sentence is about and of which something is in the kernel."""
    found = result.requested or tuple(dict.fromkeys(c.variant for c in result.asked_for))
    return tuple(variant for variant in found if variant not in result.not_built)


def not_built_texts(absent: Sequence[str]) -> list[str]:
    """Return what is said first: that nothing of these variants is in a kernel, if there are any."""
    text = NotBuiltError.of(listed(absent)).message if absent else ""
    return [text[:1].upper() + text[1:]] if text else []


def faults(result: Result, kernel: str, status: FaultStatus) -> list[str]:
    """Return the faults of a kernel, those in the same words once."""
    mine = [f for f in result.faults if f.kernel == kernel and f.status == status]
    return list(dict.fromkeys(map(fault_words, mine)))


def not_compared(
    result: Result, workloads: Mapping[str, Workload], variant: str, found: Sequence[Found]
) -> str:
    """Return at how many points a variant could not be compared, and why: ``at 1 of 5 points (...)``."""
    mine = [u for u in result.uncompared if u.variant == variant and _has_metrics(workloads, u.workload)]
    if not mine:
        return ""
    places = {(f.group.workload, *sorted(c.point.items())) for f in found for c in f.rows}
    total = len(mine) + len(places)
    points = (
        f"{len(mine)} of {total} points" if places else f"any of {total} points" if total > 1 else "its point"
    )
    reasons = dict.fromkeys(_shortened(u.reason.removeprefix(f"{variant}: ")) for u in mine)
    return f"at {points} ({few(list(reasons), 'reason')})"


def nothing(result: Result) -> str:
    """Return what is known of a variant of which nothing was compared and nothing failed."""
    boots = sum(result.boots.values())
    if boots and result.boots.get("ok") == boots and not result.voids:
        return f"fails in none of its boots ({boots} of all kernels); no metric of its workloads is compared"
    return "could not be compared with base"


def sort_of(result: Result, found: Sequence[Found], variant: str) -> str:
    """Return what a variant is, in a list of many: ``broken``, ``better and worse`` ..."""
    if result.broken(variant):
        return "broken"
    if variant in result.not_built:
        return "not in the kernel"
    verdicts = {f.verdict for f in found if f.headline} | {c.verdict for f in found for c in f.worse}
    if "mixed" in verdicts or verdicts >= {"better", "worse"}:
        return "better and worse"
    order = (("worse", "worse"), ("better", "better"), ("inconclusive", "inconclusive"), ("same", "the same"))
    return next((sort for verdict, sort in order if verdict in verdicts), _LOST)


def counted(sorts: Mapping[str, str], found: Mapping[str, Sequence[Found]]) -> str:
    """Return how many variants there are of each sort, with their names and first changes."""
    texts = []
    for sort in _SORTS:
        mine = [variant for variant, own in sorts.items() if own == sort]
        names = [f"{v}{_brief(found[v])}" if sort in _WITH_CHANGE else v for v in mine]
        why = _remedy([f for v in mine for f in found[v] if f.headline]) if sort == "inconclusive" else ""
        if mine:
            texts.append(f"{len(mine)} {sort} ({', '.join(names)}{why})")
    return ", ".join(texts)


def beside_counted(results: Sequence[Result], sorts: Mapping[str, str]) -> list[str]:
    """Return which of many variants may be broken, and which could not be compared at all points."""
    unsure = [v for v in sorts if any(faults(result, v, "suspected") for result in results)]
    uncompared = {u.variant for result in results for u in result.uncompared}
    lost = [v for v, sort in sorts.items() if sort not in ("broken", _LOST) and v in uncompared]
    return [
        *([f"{listed(unsure)} may be broken"] if unsure else []),
        *([f"not all points could be compared of {listed(lost)}"] if lost else []),
    ]


def _of_variant(result: Result, workloads: Mapping[str, Workload], variant: str) -> str:
    broken = faults(result, variant, "broken")
    if broken:
        return f"{variant} is broken: {few(broken, 'fault')}"
    found = found_of(result, workloads, variant)
    headlines = [f for f in found if f.headline]
    suspected = faults(result, variant, "suspected")
    missing = not_compared(result, workloads, variant, found)
    changed = [*changes(headlines), *exceptions(headlines)]
    worse = beside_worse(found)
    gains = any(f.verdict == "better" for f in headlines)
    unhurt = gains and not suspected and not missing and nothing_worse(found)
    parts = [
        *([f"may be broken: {few(suspected, 'fault')}"] if suspected else []),
        *changed,
        *no_changes(headlines, alone=not changed),
        *([f"could not be compared {missing}"] if missing else []),
        *([UNHURT] if unhurt else []),
        *(worse or beside_better(found)),
    ]
    return f"{variant} {'; '.join(parts) or nothing(result)}"


def _of_many(result: Result, workloads: Mapping[str, Workload], requested: Sequence[str]) -> list[str]:
    """Return how many variants there are of each sort, with their names."""
    found = {variant: found_of(result, workloads, variant) for variant in requested}
    sorts = {variant: sort_of(result, found[variant], variant) for variant in requested}
    return [f"Of {len(requested)} variants: {counted(sorts, found)}", *beside_counted([result], sorts)]


def _brief(found: Sequence[Found]) -> str:
    """Return the first gain and the first loss of a variant, for a list of many."""
    first = [next((short(f) for f in found if f.verdict == wanted), "") for wanted in ("better", "worse")]
    texts = [text for text in first if text]
    return f": {', '.join(texts)}" if texts else ""


def _remedy(found: Sequence[Found]) -> str:
    """Return what to add to the command, if all that is inconclusive lacks the same."""
    reasons = {(f.rows[0].reason, f.clock) for f in found if f.verdict == "inconclusive"}
    if len(reasons) != 1:
        return ""
    reason, clock = next(iter(reasons))
    remedy = with_remedy(reason, clock)
    return f": {remedy}" if remedy != reason else ""


def _has_metrics(workloads: Mapping[str, Workload], name: str) -> bool:
    """Return whether the workload has metrics that are compared: one that only checks has none."""
    known = workloads.get(name)
    return known is None or any(spec.compare for spec in known.metrics.values())


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}..."
