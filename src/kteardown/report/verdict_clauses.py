"""What the verdicts of a variant say, in clauses that begin with a verb: ``makes freezing user space ...``.

Where both clocks give one metric the same verdict, one clause says it with the figures of both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from kteardown.model.clock import Clock
from kteardown.model.result import Comparison, MetricVerdict, Result, Verdict
from kteardown.model.workload import Better, Workload
from kteardown.report.comparison_groups import Group, PointKey, groups, is_headline, point_key
from kteardown.report.formatting import percent, with_remedy
from kteardown.report.metric_names import is_activity
from kteardown.report.metric_words import against, points_of, verdict_of, where

_TIMES = 1.4
"""From this factor on, a change is given as a factor too."""
_NAMED = 2
"""Of more gains or losses of a variant than this, the number is given."""
_FAR = 1.1
"""The largest change is given beside that over all points if its logarithm is so much larger."""
_LESS: Mapping[str, tuple[str, str]] = {"kb": ("less memory", "more memory")}
_LESS_OF_CLOCK: Mapping[Clock, tuple[str, str]] = {
    "instructions": ("fewer instructions", "more instructions"),
    "wall": ("less time", "more time"),
}
_COMPARATIVES: Mapping[Clock, tuple[str, str]] = {
    "instructions": ("cheaper", "costlier"),
    "wall": ("faster", "slower"),
}


@dataclass(frozen=True)
class Found:
    """One metric of one variant over all its points: what a clause says about it.

    ``exact``: the same metric on the instruction clock, if one clause is about both clocks; the rest is then
    that of the wall clock.
    """

    group: Group
    rows: Sequence[Comparison]
    name: str
    verdict: Verdict
    ratio: float | None
    metric: MetricVerdict | None
    headline: bool
    clock: Clock
    exact: Found | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """The metric, as the results of both clocks call it."""
        return self.group.workload, self.group.metric, self.group.statistic

    @property
    def worse(self) -> list[Comparison]:
        """The points that are worse."""
        return [c for c in self.rows if c.verdict == "worse"]

    @property
    def better(self) -> list[Comparison]:
        """The points that are better."""
        return [c for c in self.rows if c.verdict == "better"]

    def on_both(self, exact: Found | None) -> Found | None:
        """Return this, of the wall clock, with ``exact``; None if their verdicts are not the same."""
        if exact is None or exact.verdict != self.verdict:
            return None
        if self.verdict == "mixed" and _by_point(self) != _by_point(exact):
            return None
        return replace(self, exact=exact)


def found_of(result: Result, workloads: Mapping[str, Workload], variant: str) -> list[Found]:
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
        found.append(Found(group, rows, group.name, verdict, ratio, metric, headline, result.clock))
    if not any(f.headline for f in found):
        # Of a workload that this version does not know: all its metrics count.
        found = [replace(f, headline=True) for f in found]
    return sorted(found, key=lambda f: not f.headline)


def changes(found: Sequence[Found]) -> list[str]:
    """Return the gains, the losses, the largest first, and what is mixed."""
    gains = [f for f in found if f.verdict == "better"]
    losses = sorted((f for f in found if f.verdict == "worse"), key=lambda f: -_size(f.ratio))
    parts = []
    if gains:
        parts.append(_gain(gains[0]) + _also(gains[1:]))
    if losses:
        parts.append(("but " if gains else "") + _loss(losses[0]) + _also(losses[1:]))
    return parts + [f"is mixed on {f.name}: {_each(f)}" for f in found if f.verdict == "mixed"]


def exceptions(found: Sequence[Found]) -> list[str]:
    """Return, for each metric, the points that a verdict over all points hides."""
    return [text for f in found if f.verdict not in ("worse", "mixed") if (text := _exceptions(f))]


def no_changes(found: Sequence[Found], *, alone: bool) -> list[str]:
    """Return the metrics without a change; those that are the same only if none is better.

    ``alone``: there is nothing else to say of the variant.
    """
    gains = any(f.verdict == "better" for f in found)
    same = [] if gains else [f for f in found if f.verdict == "same"]
    unsure = [f for f in found if f.verdict == "inconclusive" and not f.better]
    parts = []
    if same:
        margin = max((f.metric.same_within or 0 for f in same if f.metric), default=0)
        within = f" (within {margin:.0%})" if margin else ""
        names = few([f.name for f in same], "metric")
        verb = "is" if len(same) == 1 else "are"
        parts.append(f"changes nothing: {names} {verb} the same{within}")
        if not alone:
            parts = [f"leaves {names} the same{within}"]
    if unsure:
        reasons = dict.fromkeys(_reasons(f) for f in unsure)
        remedies = next(iter(reasons)) if len(reasons) == 1 else ()
        names = few([f.name + _interval(f) for f in unsure], "metric")
        only = alone and not same and not remedies
        verb = "shows no significant difference on" if only else "is inconclusive on"
        parts.append(": ".join(filter(None, (f"{verb} {names}", "; ".join(remedies)))))
    return parts


def worst_beside(found: Sequence[Found]) -> Found | None:
    """Return the metric with the largest loss among those that are not headline metrics; None without one."""
    worse = [f for f in found if not f.headline and f.worse]
    return max(worse, key=lambda f: _largest(f.worse), default=None)


def beside_worse(found: Sequence[Found]) -> list[str]:
    """Return the largest loss among the metrics that are not headline metrics."""
    first = worst_beside(found)
    if first is None:
        return []
    largest = max(first.worse, key=_size_of)
    place = f" at {where([largest], first.rows)}" if len(first.rows) > 1 else ""
    count = sum(len(f.worse) for f in found if not f.headline)
    more = f", the largest of {count} such changes" if count > 1 else ""
    return [f"is worse beside the headline metrics: {first.name} {change(largest.ratio)}{place}{more}"]


def nothing_worse(found: Sequence[Found]) -> bool:
    """Return whether every headline metric is better or the same, and no point of any metric is worse."""
    headlines = [f for f in found if f.headline]
    sound = all(f.verdict in ("better", "same") and not _exceptions(f) for f in headlines)
    return sound and not beside_worse(found)


def beside_better(found: Sequence[Found]) -> list[str]:
    """Return the largest gain among the metrics that are not headline metrics."""
    gains = [f for f in found if not f.headline and len(f.better) * 2 > len(f.rows)]
    # The metric with the largest saving contains the others: the whole call, and not a part of it.
    times = [f for f in gains if _is_time(f)]
    if not gains:
        return []
    largest = max(times, key=_saved) if times else max(gains, key=lambda f: _largest(f.better))
    return [f"{largest.name} {_span(largest.better)}"]


def short(found: Found) -> str:
    """Return a metric with its change: ``freezing user space -61%``."""
    return f"{found.name} {change(found.ratio)}"


def change(ratio: float | None) -> str:
    """Return a change with its sign: ``-61%`` or ``+5.8%``."""
    if ratio is None:
        return "(no ratio)"
    return f"{'+' if ratio >= 1 else '-'}{_percent(ratio)}"


def few(texts: Sequence[str], noun: str) -> str:
    """Return the first of ``texts``, and how many more there are."""
    rest = len(texts) - _NAMED
    more = [f"{rest} more {noun}{'' if rest == 1 else 's'}"] if rest > 0 else []
    return listed([*texts[:_NAMED], *more])


def listed(texts: Sequence[str]) -> str:
    """Return ``a, b and c``."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _verdict_of_points(rows: Sequence[Comparison]) -> Verdict:
    """Return the verdict of a metric that has none but those of its points."""
    verdicts = {c.verdict for c in rows}
    if verdicts >= {"better", "worse"}:
        return "mixed"
    order: tuple[Verdict, ...] = ("worse", "better", "mixed", "inconclusive")
    return next((verdict for verdict in order if verdict in verdicts), "same")


def _by_point(found: Found) -> dict[PointKey, Verdict]:
    return {point_key(c.point): c.verdict for c in found.rows}


def _gain(found: Found) -> str:
    """Return a gain: ``makes freezing user space 2.6 times cheaper (61% fewer instructions, ...)``."""
    points = _points(found)
    if found.ratio is None:
        return f"is better on {found.name}{_inside(points)}"
    lower = _better(found) == "lower"
    factor = _factor(1 / found.ratio if lower and found.ratio else found.ratio)
    noun = _noun(found, less=lower)
    size = _percent(found.ratio)
    if factor and lower and is_activity(found.name) and _is_time(found):
        inside = _inside(f"{size} {noun}", _exactly(found, less=True), points)
        return f"makes {found.name} {factor} times {_COMPARATIVES[found.clock][0]}{inside}"
    verb = "cuts" if lower else "raises"
    inside = _inside(_times(factor, noun), _exactly(found, less=lower), points)
    return f"{verb} {found.name} by {size}{inside}"


def _loss(found: Found) -> str:
    """Return a loss: ``makes thawing all tasks worse: 1.6 times costlier (60% more instructions, ...)``."""
    points = _points(found)
    if found.ratio is None:
        return f"makes {found.name} worse{_inside(points)}"
    more = _better(found) == "lower"
    factor = _factor(found.ratio if more or not found.ratio else 1 / found.ratio)
    noun = _noun(found, less=not more)
    exact = _exactly(found, less=not more)
    if factor and more and is_activity(found.name) and _is_time(found):
        inside = _inside(f"{_percent(found.ratio)} {noun}", exact, points)
        return f"makes {found.name} worse: {factor} times {_COMPARATIVES[found.clock][1]}{inside}"
    noun = noun or (("more" if more else "less") if factor else "")
    inside = _inside(_times(factor, noun), exact, points)
    return f"makes {found.name} worse: {change(found.ratio)}{inside}"


def _times(factor: str, noun: str) -> str:
    return f"{factor} times {noun}" if factor and noun else noun


def _inside(*texts: str) -> str:
    shown = [text for text in texts if text]
    return f" ({', '.join(shown)})" if shown else ""


def _also(found: Sequence[Found]) -> str:
    return f", also {few([short(f) + _inside(_if_other(f)) for f in found], 'metric')}" if found else ""


def _exactly(found: Found, *, less: bool) -> str:
    """Return the change on the instruction clock, if both clocks are meant: ``68% fewer instructions``."""
    if found.exact is None or found.exact.ratio is None:
        return ""
    noun = _noun(found.exact, less=less) if _is_time(found) else ""
    return f"{_percent(found.exact.ratio)} {noun}" if noun else _if_other(found)


def _if_other(found: Found) -> str:
    """Return the change on the instruction clock, if both are meant and it is not that of the wall clock."""
    exact = "" if found.exact is None else change(found.exact.ratio)
    return f"{exact} on the instruction clock" if exact and exact != change(found.ratio) else ""


def _exceptions(found: Found) -> str:
    """Return the points that a verdict over all points hides: worse, or in the opposite direction."""
    if found.worse:
        worst = max(found.worse, key=_size_of)
        more = f" and {len(found.worse) - 1} more points" if len(found.worse) > 1 else ""
        return f"is worse at {where([worst], found.rows)}{more}: {found.name} {change(worst.ratio)}"
    if found.verdict == "inconclusive" and found.better:
        points = where(found.better, found.rows)
        return f"is better at {points} of {len(found.rows)} points of {found.name}"
    opposite = against(found.metric, found.rows) if found.metric and found.verdict == "better" else []
    if not opposite:
        return ""
    worst = max(opposite, key=_size_of)
    return (
        f"goes the other way, not significantly, at {where([worst], found.rows)}: "
        f"{found.name} {change(worst.ratio)}"
    )


def _each(found: Found) -> str:
    """Return the points of a mixed metric, the worse ones first."""
    parts = []
    sides: tuple[Verdict, ...] = ("worse", "better")
    for verdict in sides:
        mine = [c for c in found.rows if c.verdict == verdict]
        if not mine:
            continue
        size = change(max(mine, key=_size_of).ratio)
        if found.exact:
            exact = max((c for c in found.exact.rows if c.verdict == verdict), key=_size_of)
            size += "" if change(exact.ratio) == size else f", {change(exact.ratio)} on the instruction clock"
        points = f"{len(mine)} points (up to " if len(mine) > 1 else f"{where(mine, found.rows)} ("
        parts.append(f"{verdict} at {points}{size})")
    return ", ".join(parts) or "its points differ"


def _points(found: Found) -> str:
    """Return over which points a change is, and the largest one if it is far from the mean."""
    if found.metric is None:
        mine = [c for c in found.rows if c.verdict == found.verdict]
        return f"at {len(mine)} of {len(found.rows)} points" if len(found.rows) > 1 else ""
    if found.metric.planned <= 1:
        return ""
    text = f"over {points_of(found.metric)}"
    mine = [c for c in found.rows if c.verdict == found.verdict and c.ratio is not None]
    largest = max(mine, key=_size_of, default=None)
    near = largest is None or not found.ratio or _size_of(largest) < _FAR * abs(math.log(found.ratio))
    # Of both clocks it would be one clock's, and which one would have to be said.
    if near or largest is None or found.exact:
        return text
    return f"{text}, up to {_percent(largest.ratio)} at {where([largest], found.rows)}"


def _interval(found: Found) -> str:
    """Return the interval of a change, or the change if nothing gives it an interval."""
    if found.metric is None:
        return ""
    exact = _interval(found.exact).strip(" ()") if found.exact else ""
    ci, ratio = found.metric.ci, found.metric.ratio
    mine = f"interval {percent(ci[0])} to {percent(ci[1])}" if ci else change(ratio) if ratio else ""
    return _inside(mine, f"{exact} on the instruction clock" if exact and mine else "")


def _reasons(found: Found) -> tuple[str, ...]:
    """Return the reasons of no verdict that an option of the next run removes, each with the option."""
    both = [f for f in (found, found.exact) if f is not None]
    reasons = [(f.rows[0].reason, with_remedy(f.rows[0].reason, f.clock)) for f in both]
    return tuple(remedy for reason, remedy in reasons if remedy != reason)


def _better(found: Found) -> Better:
    return found.rows[0].better


def _unit(found: Found) -> str:
    return found.rows[0].unit


def _is_time(found: Found) -> bool:
    return _unit(found) in ("ns", "us")


def _noun(found: Found, *, less: bool) -> str:
    pair = _LESS_OF_CLOCK[found.clock] if _is_time(found) else _LESS.get(_unit(found))
    return "" if pair is None else pair[0 if less else 1]


def _factor(factor: float) -> str:
    """Return how many times better or worse; empty if it is too small for that."""
    return "" if factor < _TIMES else f"{factor:.1f}" if factor < 10 else f"{factor:,.0f}"


def _percent(ratio: float | None) -> str:
    """Return the size of a change: ``61%`` or ``5.8%``."""
    if ratio is None:
        return "an unknown amount"
    size = abs(ratio - 1)
    # A saving of nearly everything keeps its decimal; there is no whole of which a loss could be nearly all.
    return f"{size:.0%}" if 0.0995 <= size < 0.995 or ratio > 1.1 else f"{size:.1%}"


def _saved(found: Found) -> float:
    scale = 1e3 if _unit(found) == "us" else 1.0
    return max(scale * abs(c.base.compared - c.changed.compared) for c in found.better)


def _span(mine: Iterable[Comparison]) -> str:
    ratios = sorted(c.ratio for c in mine if c.ratio is not None)
    if not ratios:
        return "better"
    return " to ".join(dict.fromkeys((change(ratios[-1]), change(ratios[0]))))


def _size(ratio: float | None) -> float:
    """Return how large a change is, in either direction."""
    if ratio is None:
        return 0.0
    return abs(math.log(ratio)) if ratio > 0 else math.inf


def _size_of(c: Comparison) -> float:
    return _size(c.ratio)


def _largest(mine: Sequence[Comparison]) -> float:
    return max(map(_size_of, mine), default=0.0)
