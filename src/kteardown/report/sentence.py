"""The result in one sentence, with which every report begins.

It is made from the verdicts alone. What is broken or worse is always named; a gain is named only if a verdict
is ``better``, and never of a broken variant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from kteardown.model.both_clocks import CLOCK_NAMES, BothClocks
from kteardown.model.experiment import Clock
from kteardown.model.record import BASE
from kteardown.model.result import Comparison, FaultStatus, MetricVerdict, Result, Verdict
from kteardown.model.workload import Better, Workload
from kteardown.report.comparison_groups import Group, groups, is_headline
from kteardown.report.formatting import percent, with_remedy
from kteardown.report.metric_names import is_activity
from kteardown.report.metric_words import against, points_of, verdict_of, where
from kteardown.report.sections.fault_lines import fault_words

ALARMING: tuple[Verdict, ...] = ("broken", "worse", "mixed", "better", "inconclusive", "same")
"""The most alarming verdict first."""
_TIMES = 1.5
"""From this factor on, a gain is given as a factor too."""
_FULL = 2
"""Up to this many variants have a part of the sentence each; more are counted by what they are."""
_NAMED = 2
"""Of more gains or losses of a variant than this, the number is given."""
_FAR = 1.1
"""The largest change is given beside that over all points if its logarithm is so much larger."""
_LONGEST_REASON = 100
_LESS: Mapping[str, tuple[str, str]] = {"kb": ("less memory", "more memory")}
_LESS_OF_CLOCK: Mapping[Clock, tuple[str, str]] = {
    "instructions": ("fewer instructions", "more instructions"),
    "wall": ("less time", "more time"),
}
_COMPARATIVE: Mapping[Clock, str] = {"instructions": "cheaper", "wall": "faster"}


@dataclass(frozen=True)
class Found:
    """One metric of one variant over all its points: what the sentence says about it."""

    group: Group
    rows: Sequence[Comparison]
    name: str
    verdict: Verdict
    ratio: float | None
    metric: MetricVerdict | None
    headline: bool

    @property
    def worse(self) -> list[Comparison]:
        """The points that are worse."""
        return [c for c in self.rows if c.verdict == "worse"]

    @property
    def better(self) -> list[Comparison]:
        """The points that are better."""
        return [c for c in self.rows if c.verdict == "better"]


def sentence(result: Result, workloads: Mapping[str, Workload]) -> str:
    """Return the sentence, which ends with a full stop."""
    requested = result.requested or tuple(dict.fromkeys(c.variant for c in result.asked_for))
    base = [
        f"base itself fails: {_few(found, 'fault')}" for found in [_faults(result, BASE, "base")] if found
    ]
    if not requested:
        return _closed("; ".join(["Only base was run: there is nothing to compare it with", *base]))
    texts = (
        [_of_variant(result, workloads, variant) for variant in requested]
        if len(requested) <= _FULL
        else _of_many(result, workloads, requested)
    )
    left = f"; boots left: {result.boots_left}" if result.boots_left else ""
    so_far = f"So far (the run is not finished{left}): " if result.unfinished else ""
    return _closed(so_far + "; ".join([*texts, *base]))


def in_brief(result: Result, workloads: Mapping[str, Workload]) -> str:
    """Return the result in a few words: ``better: freezing user space -61%``, or ``1 broken, 2 better``."""
    requested = result.requested or tuple(dict.fromkeys(c.variant for c in result.asked_for))
    found = {variant: _found(result, workloads, variant) for variant in requested}
    sorts = [_sort(result, found[variant], variant) for variant in requested]
    if any(_faults(result, variant, "suspected") for variant in requested):
        return "may be broken"
    if len(requested) == 1:
        brief = _brief(found[requested[0]]) if sorts[0] in _WITH_CHANGE else ""
        return f"{sorts[0]}{brief}"
    counts = ", ".join(f"{sorts.count(sort)} {sort}" for sort in _SORTS if sort in sorts)
    return counts or "nothing to compare"


def sentence_of_both(both: BothClocks, workloads: Mapping[str, Workload]) -> str:
    """Return the sentence of a run on both clocks: where they disagree, that comes first."""
    each = [
        f"{CLOCK_NAMES[clock].removeprefix('the ')}: {sentence(result, workloads).rstrip('.')}"
        for clock, result in both.results.items()
    ]
    opposite = [
        r for r in both.readings if r.reading == "disagree" and is_headline(workloads, r.workload, r.metric)
    ]
    text = "; ".join([*(["the clocks disagree"] if opposite else []), *each])
    return _closed(text[:1].upper() + text[1:])


def tone_of(result: Result) -> Verdict:
    """Return the verdict that the colour of the sentence shows: the most alarming one."""
    verdicts = {m.verdict for m in result.metric_verdicts} | {c.verdict for c in result.asked_for}
    if any(f.status in ("broken", "suspected") and result.is_asked_for(f.kernel) for f in result.faults):
        return "broken"
    if result.uncompared and "worse" not in verdicts:
        return "inconclusive"
    return next((verdict for verdict in ALARMING if verdict in verdicts), "inconclusive")


def _closed(text: str) -> str:
    return f"{text}."


def _of_variant(result: Result, workloads: Mapping[str, Workload], variant: str) -> str:
    broken = _faults(result, variant, "broken")
    if broken:
        return f"{variant} is broken: {_few(broken, 'fault')}"
    found = _found(result, workloads, variant)
    suspected = _faults(result, variant, "suspected")
    missing = _not_compared(result, workloads, variant, found)
    parts = [
        *([f"may be broken: {_few(suspected, 'fault')}"] if suspected else []),
        *_verdicts([f for f in found if f.headline], result.clock),
        *missing,
        *_beside(found, sound=not suspected and not missing),
    ]
    return f"{variant} {'; '.join(parts) or _nothing(result)}"


def _of_many(result: Result, workloads: Mapping[str, Workload], requested: Sequence[str]) -> list[str]:
    """Return how many variants there are of each sort, with their names."""
    sorts: dict[str, list[str]] = {}
    for variant in requested:
        sorts.setdefault(_sort(result, _found(result, workloads, variant), variant), []).append(variant)
    brief = {v: f"{v}{_brief(_found(result, workloads, v))}" for v in requested}
    texts = [
        f"{len(mine)} {sort} ({', '.join(brief[v] if sort in _WITH_CHANGE else v for v in mine)})"
        for sort in _SORTS
        if (mine := sorts.get(sort))
    ]
    named = (*sorts.get("broken", ()), *sorts.get(_LOST, ()))
    lost = [v for v in requested if v not in named and any(u.variant == v for u in result.uncompared)]
    missing = [f"not all points could be compared of {_listed(lost)}"] if lost else []
    unsure = [v for v in requested if _faults(result, v, "suspected")]
    suspected = [f"{_listed(unsure)} may be broken"] if unsure else []
    return [f"Of {len(requested)} variants: {', '.join(texts)}", *suspected, *missing]


def _brief(found: Sequence[Found]) -> str:
    """Return the first gain and the first loss of a variant, for a list of many."""
    first = [next((_short(f) for f in found if f.verdict == wanted), "") for wanted in ("better", "worse")]
    texts = [text for text in first if text]
    return f": {', '.join(texts)}" if texts else ""


_LOST = "not compared"
_SORTS = (
    "broken",
    "worse",
    "better and worse",
    "better",
    "the same",
    "inconclusive",
    _LOST,
)
_WITH_CHANGE = ("worse", "better and worse", "better")


def _sort(result: Result, found: Sequence[Found], variant: str) -> str:
    if result.broken(variant):
        return "broken"
    verdicts = {f.verdict for f in found if f.headline} | {c.verdict for f in found for c in f.worse}
    if "mixed" in verdicts or verdicts >= {"better", "worse"}:
        return "better and worse"
    order = (("worse", "worse"), ("better", "better"), ("inconclusive", "inconclusive"), ("same", "the same"))
    return next((sort for verdict, sort in order if verdict in verdicts), _LOST)


def _found(result: Result, workloads: Mapping[str, Workload], variant: str) -> list[Found]:
    """Return every metric of the variant that was compared, the headline metrics first."""
    found = []
    for group in groups(result, workloads):
        rows = group.of(variant)
        if not rows:
            continue
        metric = verdict_of(result, group, variant)
        verdict = _verdict_of_points(rows) if metric is None else metric.verdict
        mine = [c.ratio for c in rows if c.verdict == verdict and c.ratio is not None]
        ratio = (median(mine) if mine else None) if metric is None else metric.ratio
        headline = is_headline(workloads, group.workload, group.metric)
        found.append(Found(group, rows, group.name, verdict, ratio, metric, headline))
    if not any(f.headline for f in found):
        # Of a workload that this version does not know: all its metrics count.
        found = [Found(f.group, f.rows, f.name, f.verdict, f.ratio, f.metric, True) for f in found]
    return sorted(found, key=lambda f: not f.headline)


def _verdict_of_points(rows: Sequence[Comparison]) -> Verdict:
    """Return the verdict of a metric that has none but those of its points."""
    verdicts = {c.verdict for c in rows}
    if verdicts >= {"better", "worse"}:
        return "mixed"
    order: tuple[Verdict, ...] = ("worse", "better", "mixed", "inconclusive")
    return next((verdict for verdict in order if verdict in verdicts), "same")


def _verdicts(found: Sequence[Found], clock: Clock) -> list[str]:
    """Return the gains, the losses, and what is neither, of the headline metrics."""
    gains = [f for f in found if f.verdict == "better"]
    losses = [f for f in found if f.verdict == "worse"]
    mixed = [f for f in found if f.verdict == "mixed"]
    parts = []
    if gains:
        also = f", also {_few([_short(f) for f in gains[1:]], 'metric')}" if gains[1:] else ""
        parts.append(_gain(gains[0], clock) + also)
    if losses:
        verb = "but worse: " if gains else "makes worse: "
        parts.append(verb + _few([_loss(f, clock) for f in losses], "metric"))
    parts += [f"is mixed on {f.name}: {_each(f)}" for f in mixed]
    parts += [text for f in found if f.verdict not in ("worse", "mixed") if (text := _exceptions(f))]
    return parts + _neither(found, alone=not parts)


def _neither(found: Sequence[Found], *, alone: bool) -> list[str]:
    """Return the headline metrics without a change; those that are the same only if none is better.

    ``alone``: there is nothing else to say.
    """
    gains = any(f.verdict == "better" for f in found)
    same = [] if gains else [f for f in found if f.verdict == "same"]
    unsure = [f for f in found if f.verdict == "inconclusive" and not f.better]
    parts = []
    if same:
        margin = next((f.metric.same_within for f in same if f.metric and f.metric.same_within), None)
        within = f" (within {margin:.0%})" if margin else ""
        names = (
            f"{_few([f.name for f in same], 'metric')} {'is' if len(same) == 1 else 'are'} the same{within}"
        )
        parts.append(f"changes nothing: {names}" if alone else names)
    if unsure:
        names = _few([f.name + _interval(f) for f in unsure], "metric")
        only = alone and not same
        parts.append(f"{'shows no significant difference on' if only else 'inconclusive on'} {names}")
        reason = unsure[0].rows[0].reason
        if with_remedy(reason) != reason and all(f.rows[0].reason == reason for f in unsure):
            parts[-1] += f": {with_remedy(reason)}"
    return parts


def _beside(found: Sequence[Found], *, sound: bool) -> list[str]:
    """Return what the metrics show that are not headline metrics, or that nothing at all got worse.

    ``sound``: the variant has no fault, and all its points were compared.
    """
    headlines, others = [f for f in found if f.headline], [f for f in found if not f.headline]
    worse = [f for f in others if f.worse]
    if worse:
        first = max(worse, key=lambda f: _most(f.worse))
        largest = max(first.worse, key=_size)
        place = f" at {where([largest], first.rows)}" if len(first.rows) > 1 else ""
        count = sum(len(f.worse) for f in worse)
        more = f", {count} comparisons in all" if count > 1 else ""
        return [f"beside the headline metrics worse: {first.name} {_change(largest.ratio)}{place}{more}"]
    parts = []
    unhurt = all(f.verdict in ("better", "same") and not _exceptions(f) for f in headlines)
    if sound and unhurt and any(f.verdict == "better" for f in headlines):
        parts.append("nothing got worse")
    gains = [f for f in others if len(f.better) * 2 > len(f.rows)]
    # The metric with the largest saving contains the others: the whole call, and not a part of it.
    times = [f for f in gains if _unit(f) in ("ns", "us")]
    if times or gains:
        largest_gain = max(times, key=_saved) if times else max(gains, key=lambda f: _most(f.better))
        parts.append(f"{largest_gain.name} {_span(largest_gain.better)}")
    return parts


def _saved(found: Found) -> float:
    scale = 1e3 if _unit(found) == "us" else 1.0
    return max(scale * abs(c.base.compared - c.changed.compared) for c in found.better)


def _gain(found: Found, clock: Clock) -> str:
    """Return a gain: ``makes freezing user space 2.6 times cheaper (61% fewer instructions, ...)``."""
    points = _points(found)
    if found.ratio is None:
        return f"is better on {found.name}{f' ({points})' if points else ''}"
    lower = _better(found) == "lower"
    factor = _factor(found.ratio, lower=lower)
    noun = _noun(found, clock, less=lower)
    size = _percent(found.ratio)
    if factor and lower and is_activity(found.name) and _unit(found) in ("ns", "us"):
        inside = ", ".join(filter(None, (f"{size} {noun}", points)))
        return f"makes {found.name} {factor} times {_COMPARATIVE[clock]} ({inside})"
    inside = ", ".join(filter(None, (f"{factor} times {noun}".strip() if factor and noun else noun, points)))
    verb = "cuts" if lower else "raises"
    return f"{verb} {found.name} by {size}{f' ({inside})' if inside else ''}"


def _loss(found: Found, clock: Clock) -> str:
    """Return a loss: ``thawing all tasks +12% (more instructions, over all 6 points)``."""
    noun = _noun(found, clock, less=_better(found) != "lower")
    inside = ", ".join(filter(None, (noun, _points(found))))
    return f"{_short(found)}{f' ({inside})' if inside else ''}"


def _exceptions(found: Found) -> str:
    """Return the points that a verdict over all points hides: worse, or in the opposite direction."""
    if found.worse:
        worst = max(found.worse, key=_size)
        more = f" and {len(found.worse) - 1} more points" if len(found.worse) > 1 else ""
        return f"worse at {where([worst], found.rows)}{more}: {found.name} {_change(worst.ratio)}"
    if found.verdict == "inconclusive" and found.better:
        return f"better at {where(found.better, found.rows)} of {len(found.rows)} points of {found.name}"
    opposite = against(found.metric, found.rows) if found.metric and found.verdict == "better" else []
    if not opposite:
        return ""
    worst = max(opposite, key=_size)
    return (
        f"the other way, not significant, at {where([worst], found.rows)}: "
        f"{found.name} {_change(worst.ratio)}"
    )


def _each(found: Found) -> str:
    """Return the points of a mixed metric."""
    parts = []
    for verdict, mine in (("better", found.better), ("worse", found.worse)):
        if mine:
            largest = max(mine, key=_size)
            points = f"{len(mine)} points (up to " if len(mine) > 1 else f"{where(mine, found.rows)} ("
            parts.append(f"{verdict} at {points}{_change(largest.ratio)})")
    return ", ".join(parts) or "its points differ"


def _not_compared(
    result: Result, workloads: Mapping[str, Workload], variant: str, found: Sequence[Found]
) -> list[str]:
    mine = [u for u in result.uncompared if u.variant == variant and _has_metrics(workloads, u.workload)]
    if not mine:
        return []
    places = {(f.group.workload, *sorted(c.point.items())) for f in found for c in f.rows}
    total = len(mine) + len(places)
    points = (
        f"{len(mine)} of {total} points" if places else f"any of {total} points" if total > 1 else "its point"
    )
    reasons = dict.fromkeys(_shortened(u.reason.removeprefix(f"{variant}: ")) for u in mine)
    return [f"could not be compared at {points} ({_few(list(reasons), 'reason')})"]


def _has_metrics(workloads: Mapping[str, Workload], name: str) -> bool:
    """Return whether the workload has metrics that are compared: one that only checks has none."""
    known = workloads.get(name)
    return known is None or any(spec.compare for spec in known.metrics.values())


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}..."


def _nothing(result: Result) -> str:
    """Return what is known of a variant of which nothing was compared and nothing failed."""
    boots = sum(result.boots.values())
    if boots and result.boots.get("ok") == boots and not result.voids:
        return f"fails in none of its boots ({boots} of all kernels); no metric of its workloads is compared"
    return "could not be compared with base"


def _faults(result: Result, kernel: str, status: FaultStatus) -> list[str]:
    """Return the faults of a kernel, those in the same words once."""
    mine = [f for f in result.faults if f.kernel == kernel and f.status == status]
    return list(dict.fromkeys(map(fault_words, mine)))


def _points(found: Found) -> str:
    """Return over which points a change is, and the largest one if it is far from the mean."""
    if found.metric is None:
        mine = [c for c in found.rows if c.verdict == found.verdict]
        return f"at {len(mine)} of {len(found.rows)} points" if len(found.rows) > 1 else ""
    if found.metric.planned <= 1:
        return ""
    mine = [c for c in found.rows if c.verdict == found.verdict and c.ratio is not None]
    largest = max(mine, key=_size, default=None)
    text = f"over {points_of(found.metric)}"
    if largest is None or not found.ratio or _size(largest) < _FAR * abs(math.log(found.ratio)):
        return text
    return f"{text}, up to {_percent(largest.ratio)} at {where([largest], found.rows)}"


def _short(found: Found) -> str:
    return f"{found.name} {_change(found.ratio)}"


def _interval(found: Found) -> str:
    ci = found.metric.ci if found.metric else None
    return f" ({percent(ci[0])} to {percent(ci[1])})" if ci else ""


def _better(found: Found) -> Better:
    return found.rows[0].better


def _unit(found: Found) -> str:
    return found.rows[0].unit


def _noun(found: Found, clock: Clock, *, less: bool) -> str:
    pair = _LESS_OF_CLOCK[clock] if _unit(found) in ("ns", "us") else _LESS.get(_unit(found))
    return "" if pair is None else pair[0 if less else 1]


def _factor(ratio: float, *, lower: bool) -> str:
    """Return how many times better; empty if it is too small for that."""
    if ratio <= 0:
        return ""
    factor = 1 / ratio if lower else ratio
    return "" if factor < _TIMES else f"{factor:.1f}" if factor < 10 else f"{factor:,.0f}"


def _percent(ratio: float | None) -> str:
    """Return the size of a change: ``61%`` or ``5.8%``."""
    if ratio is None:
        return "an unknown amount"
    size = abs(ratio - 1)
    return f"{size:.0%}" if 0.0995 <= size < 0.995 or size >= 1 else f"{size:.1%}"


def _change(ratio: float | None) -> str:
    """Return a change with its sign: ``-61%`` or ``+5.8%``."""
    if ratio is None:
        return "(no ratio)"
    return f"{'+' if ratio >= 1 else '-'}{_percent(ratio)}"


def _span(mine: Sequence[Comparison]) -> str:
    ratios = sorted(c.ratio for c in mine if c.ratio is not None)
    if not ratios:
        return "better"
    ends = list(dict.fromkeys((_change(ratios[-1]), _change(ratios[0]))))
    return " to ".join(ends)


def _size(c: Comparison) -> float:
    """Return how large a change is, in either direction."""
    if c.ratio is None:
        return 0.0
    return abs(math.log(c.ratio)) if c.ratio > 0 else math.inf


def _most(mine: Sequence[Comparison]) -> float:
    return max(map(_size, mine), default=0.0)


def _few(texts: Sequence[str], noun: str) -> str:
    """Return the first of ``texts``, and how many more there are."""
    rest = len(texts) - _NAMED
    more = [f"{rest} more {noun}{'' if rest == 1 else 's'}"] if rest > 0 else []
    return _listed([*texts[:_NAMED], *more])


def _listed(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
