"""The headline: the answer in the words of a person, one sentence for each variant.

    With freezer-skip-exited, freezing user space takes 61% fewer instructions on average over 6
    points; nothing got measurably worse.

What got worse is said first, then what got better, in the words of the metrics, by how much and
where; then what is inconclusive. Metrics that are no headline metrics are "other metrics".
``judge.answer`` has decided everything.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kteardown.judge.answer import DIRECTIONS, Direction, MetricAnswer, VariantAnswer, judge
from kteardown.model.clock import CLOCKS, Clock
from kteardown.model.faults import Fault, FaultStatus
from kteardown.model.judged import Verdict
from kteardown.model.record import BASE
from kteardown.model.result import ByClock, Result
from kteardown.model.workload import Workload
from kteardown.report.formatting import (
    counted,
    percent_of,
    point_text,
    saved_percent,
    size_of,
    with_remedy,
)
from kteardown.report.measured import measured_lines
from kteardown.report.metrics import is_activity
from kteardown.report.revisions import revisions_in
from kteardown.visible import on_one_line

_LONGEST_NAME = 40
_NAMED = 2
"""So many metrics, faults and points are named; of more, the number is given."""
_FAULTS = {"oom": "out of memory", "agent-error": "agent error", "invariant": "failed invariant"}
_LEVELS = re.compile(r"\b(cost|latency|percentile|median)\b")
"""What is in the names of times that are lower or higher, and not shorter or longer."""
_TIMES = 1.995
"""A larger ratio is said as "2 times"."""
_LONGEST_PLACE = 50
"""Points are named in a sentence if that takes no more characters."""


class VariantLine(NamedTuple):
    """What is said of one kernel, and the verdict that its colour shows."""

    tone: Verdict
    text: str


def opposite(names: Sequence[str]) -> str:
    """Return that metrics are higher at some of their points and lower at others."""
    verb = "changes" if len(names) == 1 else "change"
    return f"{_list(names)} {verb} in opposite directions at different points"


def sentence(measured: ByClock, workloads: Mapping[str, Workload]) -> str:
    """Return the lines of a result as one text."""
    return "\n".join(line.text for line in lines(measured, workloads))


def lines(measured: ByClock, workloads: Mapping[str, Workload]) -> list[VariantLine]:
    """Return a line for each variant, and one for base if it fails: what alarms most is first."""
    results = list(measured.results.values())
    answer = judge(measured, workloads)
    variant_lines = [_of_variant(variant, results, workloads) for variant in answer.variants]
    if base := _faults(answer.base, "base", several=len(results) > 1):
        variant_lines.insert(0, VariantLine("broken", f"{BASE} is broken: {base}."))
    if not answer.variants:
        variant_lines += _of_base(results, workloads)
    return variant_lines


def _of_base(results: Sequence[Result], workloads: Mapping[str, Workload]) -> list[VariantLine]:
    """Return what base does by itself, if it is compared with nothing."""
    texts = [
        f"{text} ({CLOCKS[result.clock]})" if len(results) > 1 else text
        for result in results
        for text in measured_lines(result, workloads)
    ]
    if not texts:
        return [VariantLine("inconclusive", f"{BASE}: there is nothing to compare it with")]
    left = sum(result.boots_left for result in results)
    if any(result.unfinished for result in results):
        texts.insert(0, f"So far{f', with {left} boots left' if left else ''}:")
    return [VariantLine("same", text) for text in texts]


def _of_variant(
    variant: VariantAnswer, results: Sequence[Result], workloads: Mapping[str, Workload]
) -> VariantLine:
    name = _cut(variant.name)
    several = len(results) > 1
    left = sum(result.boots_left for result in results)
    so_far = (
        f"So far{f', with {left} boots left' if left else ''}: " if variant.is_unfinished else ""
    )
    if not variant.is_built:
        return VariantLine(
            variant.tone, f"{name}: the kernel that was built has none of its changes"
        )
    if broken := _faults(variant, "broken", several=several):
        return VariantLine(variant.tone, f"{so_far}{name} is broken: {broken}.")
    suspected = _faults(variant, "suspected", several=several)
    clauses = [f"{name} may be broken: {suspected}"] if suspected else []
    if variant.findings:
        clauses += _changes(variant, name, several=several)
    elif not suspected and not variant.lost:
        sound = "there is no fault, and no metric is compared"
        clauses.append(f"{name}: {sound if variant.is_sound else 'not compared with base'}")
    if variant.lost:
        lost = _lost(variant)
        clauses.append(lost if clauses else f"{name}: {lost}")
    clauses += _endings(variant, results, workloads)
    text = "; ".join(clauses)
    return VariantLine(variant.tone, f"{so_far}{text if so_far else _capital(text, name)}.")


def _changes(variant: VariantAnswer, name: str, *, several: bool) -> list[str]:
    """Return what got worse, what got better, and what is inconclusive."""
    turned = {direction: _metrics_that_turned(variant, direction) for direction in DIRECTIONS}
    clauses: list[str] = []
    for direction, metrics in turned.items():
        headlines = [metric for metric in metrics if metric[0].headline]
        others = len(metrics) - len(headlines) if direction == "better" else 0
        if headlines:
            clauses.append(_turned(headlines, direction, others, several=several))
    if others_worse := [metric for metric in turned["worse"] if not metric[0].headline]:
        clauses.append(f"other metrics: {_turned(others_worse, 'worse', 0, several=several)}")
    if not clauses and turned["better"]:
        clauses.append(f"other metrics: {_turned(turned['better'], 'better', 0, several=several)}")
    if clauses:
        clauses[0] = f"with {name}, {clauses[0]}"
        clauses += [
            f"nothing got measurably {direction}"
            for direction, metrics in turned.items()
            if not metrics
        ][:1]
    if unconfirmed := [finding for finding in variant.findings if finding.unconfirmed]:
        whose = "is better only by a figure of its own, which is not seen from outside"
        clauses.append(f"{'' if clauses else f'with {name}, '}{_list(_names(unconfirmed))} {whose}")
    unsure = [
        finding
        for finding in variant.headlines
        if finding.outcome == "unsure"
        and not finding.unconfirmed
        and not finding.is_turned("better")
    ]
    # Where a metric is mixed though no single point turned, its points still differ from each
    # other.
    mixed = [finding for finding in unsure if finding.verdict == "mixed"]
    unsure = [finding for finding in unsure if finding.verdict != "mixed"]
    if not clauses:
        return _unchanged(variant, name, mixed, unsure)
    if mixed:
        clauses.append(opposite(_names(mixed)))
    if unsure:
        clauses.append(f"inconclusive: {_list(_names(unsure))}")
    return clauses


def _unchanged(
    variant: VariantAnswer,
    name: str,
    mixed: Sequence[MetricAnswer],
    unsure: Sequence[MetricAnswer],
) -> list[str]:
    """Return what is said if nothing got better or worse."""
    clauses = [f"with {name}, {opposite(_names(mixed))}"] if mixed else []
    if same := [finding for finding in variant.headlines if finding.verdict == "same"]:
        margins = [finding.evidence.same_within or 0 for finding in same if finding.evidence]
        how = f" by more than {100 * max(margins):g}%" if any(margins) else ""
        if all(finding.is_equal for finding in same):
            how = ": every figure is equal to the digit"
        clauses.append(f"{name} does not change {_list(_names(same))}{how}")
    if unsure:
        names = _list(_names(unsure))
        first = (
            f"inconclusive: {names}" if clauses else f"it is unclear whether {name} changes {names}"
        )
        clauses.append(first + _unseen(unsure))
    return clauses or [f"{name} changes nothing that is measured"]


def _unseen(findings: Sequence[MetricAnswer]) -> str:
    """Return which changes of some metrics were probably not seen; empty if that is not known."""
    mde = max((finding.evidence.mde or 0 for finding in findings if finding.evidence), default=0)
    if not mde:
        return ""
    return (
        f" (changes below {percent_of(mde) if mde < 1 else f'a factor of {1 + mde:,.0f}'} may go "
        "unseen)"
    )


def _metrics_that_turned(variant: VariantAnswer, direction: Direction) -> list[list[MetricAnswer]]:
    """Return the metrics that turned, each with its findings by clock: headlines and large ones
    first."""
    metrics: dict[tuple[str, str], list[MetricAnswer]] = {}
    for finding in variant.findings:
        if finding.is_turned(direction):
            metrics.setdefault((finding.group.workload, finding.group.key), []).append(finding)

    def order(metric: Sequence[MetricAnswer]) -> tuple[bool, float]:
        return not metric[0].headline, -max(map(_size, metric))

    return sorted(metrics.values(), key=order)


def _turned(
    metrics: Sequence[Sequence[MetricAnswer]], direction: Direction, others: int, *, several: bool
) -> str:
    """Return what the metrics did: the first of them with their changes, and how many more there
    are.

    ``others``: how many more metrics did so that are no headline metrics.
    """
    clauses: list[str] = []
    for metric in metrics[:_NAMED]:
        texts: list[str] = []
        for finding in metric:
            verb, change = change_words(finding, direction)
            clock = f" on the {_clock(finding.clock)}" if several else ""
            texts.append(
                f"{change}{clock}" if texts else f"{finding.group.name} {verb} {change}{clock}"
            )
        clauses.append(" and ".join(texts))
    if more := len(metrics) - len(clauses) + others:
        clauses.append(f"{counted(more, 'more metric')} got {direction}")
    return " and ".join(filter(None, [", ".join(clauses[:-1]), *clauses[-1:]]))


def change_words(finding: MetricAnswer, direction: Direction) -> tuple[str, str]:
    """Return the verb for a metric, and by how much it changed and where: ``takes``, ``61% less
    time``."""
    name = finding.group.name
    unit = finding.group.unit
    is_time = unit in ("ns", "us")
    is_gerund = is_activity(name)
    up = (direction == "worse") == (finding.group.better == "lower")
    size = _span(finding, direction)
    if size is None:
        return "got", f"{direction}{_where(finding, direction)}"
    if is_time and is_gerund:
        what = "instructions" if finding.clock == "instructions" else "time"
        less = "fewer" if what == "instructions" else "less"
        times = f"{size} as many instructions" if what == "instructions" else f"{size} as long"
        text = times if size.endswith("times") else f"{size} {'more' if up else less} {what}"
        return "takes", text + _where(finding, direction)
    words = ("larger", "smaller") if unit == "kb" else ("higher", "lower")
    if is_time and not _LEVELS.search(name):
        words = ("longer", "shorter")
    positive = {"larger": "large", "higher": "high", "longer": "long"}[words[0]]
    text = (
        f"{size} as {positive}"
        if size.endswith("times")
        else f"{size} {words[0] if up else words[1]}"
    )
    return "is" if name.lower().startswith("the ") else "got", text + _where(finding, direction)


def _span(finding: MetricAnswer, direction: Direction) -> str | None:
    """Return the size of a change: of the whole if that turned, else the smallest and largest of
    points."""
    whole = finding.whole
    ratios = [point.ratio for point in finding.turned(direction) if point.ratio is not None]
    if whole is not None and whole.verdict == direction:
        ratios = [whole.ratio] if whole.ratio is not None else []
    if not ratios:
        return None
    first = min(ratios, key=size_of)
    last = max(ratios, key=size_of)
    if first >= _TIMES:
        ends = dict.fromkeys(f"{ratio:,.3g}" for ratio in (first, last))
        return f"{' to '.join(ends)} times"
    ends = dict.fromkeys(
        saved_percent(ratio) if ratio < 1 else percent_of(ratio - 1) for ratio in (first, last)
    )
    return " to ".join(ends)


def _where(finding: MetricAnswer, direction: Direction) -> str:
    """Return the points at which a metric turned; empty if it has only one."""
    turned = finding.turned(direction)
    points = len(finding.points)
    if points == 1:
        return ""
    if finding.verdict == direction and finding.whole is not None:
        return f" on average over {points} points"
    named = " and ".join(point_text(point.point) for point in turned)
    if len(turned) in (0, points):
        return f" at all {points} points"
    if len(turned) > _NAMED or len(named) > _LONGEST_PLACE:
        return f" at {len(turned)} of {points} points"
    return f" at {named}"


def _size(finding: MetricAnswer) -> float:
    ratios = [point.ratio for point in finding.points if point.ratio is not None]
    return max(map(size_of, ratios), default=0.0)


def _faults(kernel: VariantAnswer, status: FaultStatus, *, several: bool) -> str:
    """Return the faults of a kernel, those in the same words once; empty without one."""
    texts: dict[str, None] = {}
    for clock, fault in kernel.with_status(status):
        texts[_fault(fault, kernel.name) + (f" on the {_clock(clock)}" if several else "")] = None
    return _list(list(texts), "more fault")


def _fault(fault: Fault, kernel: str) -> str:
    text = (
        f"{_FAULTS.get(fault.kind, fault.kind)} in {len(fault.boots)} of "
        f"{counted(fault.of, 'boot')}"
    )
    return text if kernel == BASE else f"{text} (base in {fault.base_boots} of {fault.base_of})"


def _lost(variant: VariantAnswer) -> str:
    lost = {(point.workload, *sorted(point.point.items())) for _, point in variant.lost}
    compared = {
        (finding.group.workload, *sorted(point.point.items()))
        for finding in variant.findings
        for point in finding.points
    }
    verb = "was" if len(lost) == 1 else "were"
    return f"{len(lost)} of {counted(len(lost | compared), 'point')} {verb} not compared"


def _endings(
    variant: VariantAnswer, results: Sequence[Result], workloads: Mapping[str, Workload]
) -> list[str]:
    """Return what makes the next run decide, and what a revision keeps of the one before, without
    figures.

    Each is there only if one text is right for all points and clocks.
    """
    reasons = {
        (point.reason, finding.clock)
        for finding in variant.findings
        for point in finding.points
        if point.verdict == "inconclusive"
    }
    options = {with_remedy(text, clock).removeprefix(f"{text}, ") for text, clock in reasons}
    about = f"{variant.name} "
    texts = [
        text
        for result in results
        for text in revisions_in(result, workloads)
        if text.startswith(about)
    ]
    kept = {re.sub(r" \([^()]*\)", "", text).removeprefix(about) for text in texts}
    endings = (options - {text for text, _ in reasons}, kept)
    return [texts.pop() for texts in endings if len(texts) == 1]


def _names(findings: Iterable[MetricAnswer]) -> list[str]:
    return list(dict.fromkeys(finding.group.name for finding in findings))


def _list(texts: Sequence[str], more: str = "more metric") -> str:
    """Return the first texts, and how many more there are: ``a and b``, ``a, b and 3 more
    metrics``."""
    named = list(texts if len(texts) <= _NAMED + 1 else texts[:_NAMED])
    if len(texts) > len(named):
        named.append(counted(len(texts) - len(named), more))
    return " and ".join(filter(None, [", ".join(named[:-1]), *named[-1:]]))


def _clock(clock: Clock) -> str:
    return CLOCKS[clock].removeprefix("the ")


def _cut(kernel: str) -> str:
    name = on_one_line(kernel)
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."


def _capital(text: str, name: str) -> str:
    """Return a sentence with a capital, unless it begins with a variant, which keeps its name."""
    return text if text.startswith((f"{name} ", f"{name}:")) else f"{text[:1].upper()}{text[1:]}"
