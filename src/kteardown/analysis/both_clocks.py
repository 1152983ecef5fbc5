"""Read the results of one experiment on both clocks side by side. Pure.

An instruction count is exact and shows path length alone; the wall clock shows time, with noise.
Each point therefore has both changes and one reading of the two. METHODOLOGY.md says when a clock
that finds no change is evidence, and when the reading is ``undecided``.
"""

import math
from collections.abc import Mapping
from statistics import fmean, stdev

from kteardown.model.both_clocks import BothClocks, ClockRate, ClockReading, OneClock, Reading
from kteardown.model.clock import CLOCKS
from kteardown.model.judged import Comparison, Judged, tidy
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result

COUNTED = ("count", "kb")
"""Units of metrics that count objects or memory: their figures do not depend on how time is
measured."""
LEAST_MEDIANS = 4
"""A rate is fitted over at least as many medians."""
_CHANGED = ("better", "worse")

_Key = tuple[str, str, str, str, tuple[tuple[str, ParamValue], ...]]


def both_clocks(instructions: Result, wall: Result) -> BothClocks:
    """Return every comparison of requested variants as both clocks see it."""
    exact, timed = (
        {
            (c.workload, c.metric, c.statistic, c.variant, tuple(c.point.items())): c
            for c in result.asked_for
        }
        for result in (instructions, wall)
    )
    # Of metrics with several points; the verdict of one point is its comparison's.
    whole, whole_timed = (
        {
            (m.workload, m.metric, m.statistic, m.variant): m
            for m in result.metric_verdicts
            if m.planned > 1
        }
        for result in (instructions, wall)
    )
    ours = instructions.kernels
    theirs = wall.kernels
    differ = [
        name for name in ours if name in theirs and ours[name].image_hash != theirs[name].image_hash
    ]
    return BothClocks(
        metrics=tuple(
            _reading(whole.get(key), whole_timed.get(key))
            for key in dict.fromkeys((*whole, *whole_timed))
        ),
        readings=tuple(
            _reading(exact.get(key), timed.get(key)) for key in dict.fromkeys((*exact, *timed))
        ),
        rates=_rates(exact, timed),
        notes=(f"the clocks measured different images of {', '.join(differ)}",) if differ else (),
        results={"instructions": instructions, "wall": wall},
    )


def reading_of(
    exact: OneClock | None, wall: OneClock | None, *, counted: bool = False
) -> tuple[Reading, str]:
    """Return the reading of what both clocks say, and its reason in a few words.

    ``counted``: the figures count objects or memory, and do not depend on how time is measured.
    """
    if exact is None or wall is None:
        return "undecided", f"{CLOCKS['wall' if exact else 'instructions']} has no such comparison"
    if exact.verdict == wall.verdict and exact.verdict in (*_CHANGED, "same"):
        return "agree", "a count, which does not depend on the clock" if counted else ""
    if exact.verdict in _CHANGED and wall.verdict in _CHANGED:
        return (
            "disagree",
            f"{exact.verdict} on the instruction clock and {wall.verdict} on the wall clock",
        )
    if exact.verdict in _CHANGED and (why := _no_change(wall, exact)):
        return "exact only", f"the wall clock {why}"
    if wall.verdict in _CHANGED and (why := _no_change(exact, wall)):
        return "wall only", f"the instruction clock {why}"
    reasons = []
    for clock, side, other in (
        (CLOCKS["instructions"], exact, wall),
        (CLOCKS["wall"], wall, exact),
    ):
        if side.verdict not in (*_CHANGED, "same"):
            small = other.verdict in _CHANGED and side.mde is not None and not _sees(side, other)
            more = "; the change is smaller than it can detect" if small else ""
            reasons.append(f"{clock} is {side.verdict}: {side.reason}{more}")
    return "undecided", "; ".join(reasons)


def _no_change(still: OneClock, changed: OneClock) -> str:
    """Return how ``still`` shows that it does not have the change of ``changed``; empty if it does
    not."""
    if still.verdict not in ("same", "inconclusive"):
        return ""
    if still.verdict == "same":
        return f"says the same ({still.reason})" if still.reason else "says the same"
    if still.ci is None or changed.ratio is None or not still.ci[0] <= 1 <= still.ci[1]:
        return ""
    half = math.sqrt(max(changed.ratio, 0.0))
    excluded = not still.ci[0] <= half <= still.ci[1] and _sees(still, changed)
    return "finds no change, and excludes half of this one" if excluded else ""


def _sees(side: OneClock, changed: OneClock) -> bool:
    """Return whether the change of ``changed`` is at least the smallest one that ``side`` can
    detect."""
    if side.mde is None or not changed.ratio or changed.ratio <= 0:
        return False
    return abs(math.log(changed.ratio)) >= math.log1p(side.mde)


def _reading(exact: Judged | None, wall: Judged | None) -> ClockReading:
    either = next(c for c in (exact, wall) if c is not None)
    ours = None if exact is None else OneClock.of(exact, "instructions")
    theirs = None if wall is None else OneClock.of(wall, "wall")
    reading, reason = reading_of(ours, theirs, counted=either.unit in COUNTED)
    names = ("workload", "variant", "metric", "statistic", "unit", "better")
    return ClockReading(
        **{name: getattr(either, name) for name in names},
        point=either.point if isinstance(either, Comparison) else {},
        instructions=ours,
        wall=theirs,
        reading=reading,
        reason=reason,
    )


def _rates(
    exact: Mapping[_Key, Comparison], wall: Mapping[_Key, Comparison]
) -> tuple[ClockRate, ...]:
    """Return a rate for each metric of times whose medians were measured on both clocks."""
    medians: dict[tuple[str, str], dict[tuple[object, ...], float]] = {}
    for key, counted in exact.items():
        timed = wall.get(key)
        if timed is None or counted.unit != "ns" or counted.statistic != "median":
            continue
        of_metric = medians.setdefault((counted.workload, counted.metric), {})
        for kernel, count, time_ns in (
            ("base", counted.base.median, timed.base.median),
            (counted.variant, counted.changed.median, timed.changed.median),
        ):
            if count > 0 and time_ns > 0:
                of_metric[kernel, *counted.point.items()] = time_ns / count
    rates = []
    for (workload, metric), ratios in medians.items():
        if len(ratios) >= LEAST_MEDIANS:
            logs = [math.log(ratio) for ratio in ratios.values()]
            figures = {"rate": math.exp(fmean(logs)), "residual": math.expm1(stdev(logs))}
            figures |= {"low": min(ratios.values()), "high": max(ratios.values())}
            rounded = {name: tidy(value) or 0.0 for name, value in figures.items()}
            rates.append(
                ClockRate(workload=workload, metric=metric, medians=len(ratios), **rounded)
            )
    return tuple(rates)
