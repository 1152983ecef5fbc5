"""What a kernel by itself does, in a reporter's words: how each figure grows, and what waits.

    exit time: 36 ms for one more N, linear; 36.02 s at N=1,000.
    In the 36.02 s at N=1,000, processes wait for 35.84 s (99.5%) in synchronize_rcu_tasks_trace(),
    called by uprobe_unregister_sync(): 1,000 waits of 35.84 ms each, 1 for one more N.

The figures are those of base, and only of a run that compares it with nothing.
"""

from collections.abc import Iterator, Mapping, Sequence

from kteardown.judge.metrics import is_headline, metric_name
from kteardown.model.laws import Law
from kteardown.model.levels import Level
from kteardown.model.point import Key, key, size_of
from kteardown.model.record import BASE
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result
from kteardown.model.stack_profile import Profile
from kteardown.model.waits import WaitPlace, WaitProfile
from kteardown.model.workload import Workload
from kteardown.report.formatting import parameter, point_text
from kteardown.script.units import digits, readable
from kteardown.visible import on_one_line

_LAW_NAMES: Mapping[str, str] = {
    "nlogn": "a little faster than linear (n log n)",
    "power": "by a power",
}
_FOR_A_LAW = 5
"""With fewer sizes it is only known that a figure grows (``analysis.growth.fit``)."""
_MOST_PLACES = 3
_MOST_FUNCTIONS = 3
WAITS = 0.05
"""A smaller share of the stretch is not said."""
_IN_USER_SPACE = "in user space"
_PER_OBJECT = 0.01
"""Fewer waits for one object more are none."""
_NO_GROWTH = (
    "No figure depends on {}: the script may not do what it is meant to do (the functions below "
    "are what it executed most), or the kernel does it in constant time."
)
_BUSY = 0.05
"""Of a smaller share of the stretch, nothing is said of the functions that use the CPU."""


def measured_lines(result: Result, workloads: Mapping[str, Workload]) -> list[str]:
    """Return a sentence for each figure of base, then for what waits, then for what uses the
    CPU."""
    shown = _shown(result, workloads)
    param = _without_growth([law for _, law in shown])
    # Of a script that may be wrong, what it executes says most.
    least_share = 0 if param else _BUSY
    lines = [
        *(
            growth_line(family, law, metric_name(workloads, family[0].workload, family[0].metric))
            for family, law in shown
        ),
        *([_NO_GROWTH.format(param)] if param else []),
        *(
            line
            for profile in result.waits
            if profile.kernel == BASE
            for line in wait_lines(profile)
        ),
        *(line for profile in result.profiles for line in _function_lines(profile, least_share)),
    ]
    # The guest has named the functions.
    return [on_one_line(line) for line in lines]


def _shown(
    result: Result, workloads: Mapping[str, Workload]
) -> list[tuple[list[Level], Law | None]]:
    """Return each figure of base, with the smallest size first, and its law."""
    laws = {(law.workload, law.metric, key(law.point)): law for law in result.laws}
    families: dict[tuple[str, str, Key], list[Level]] = {}
    for level in result.levels:
        param = _param(workloads, level.workload)
        rest = {name: value for name, value in level.point.items() if name != param}
        families.setdefault((level.workload, level.metric, key(rest)), []).append(level)
    return [
        (
            sorted(
                family, key=lambda level: size_of(level.point, _param(workloads, level.workload))
            ),
            laws.get(place),
        )
        for place, family in families.items()
        if is_headline(workloads, place[0], place[1]) or place[1] == "cpu_us"
    ]


def _param(workloads: Mapping[str, Workload], workload: str) -> str:
    return workloads[workload].law if workload in workloads else ""


def _without_growth(laws: Sequence[Law | None]) -> str:
    """Return the parameter on which no figure depends; empty if one does, or if no law is known."""
    known = [law for law in laws if law is not None]
    return known[0].param if known and all(law.model == "constant" for law in known) else ""


def growth_line(levels: Sequence[Level], law: Law | None, name: str) -> str:
    """Return what one more object adds to a figure, how it grows, and its value at the largest
    size.

    ``levels`` are those of one setting of the other parameters, with the smallest size first.
    """
    largest = levels[-1]
    unit = largest.unit
    value = f"{readable(largest.summary.median, unit)}{_at(largest.point)}"
    rest = {n: v for n, v in largest.point.items() if law is None or n != law.param}
    subject = f"{name}{_at(rest) if law is not None else ''}"
    if law is None or law.per_unit is None:
        return f"{subject}: {_at_sizes(levels)}."
    if law.model == "unknown":
        few = law.points < _FOR_A_LAW
        why = f"{law.points} sizes are too few for a law" if few else "no law fits these"
        return f"{subject}: {_at_sizes(levels)}; {why}."
    if law.model == "constant":
        low = min(level.summary.median for level in levels)
        return f"{subject}: {readable(low, unit)}, whatever {law.param} is."
    more = readable(law.per_unit, unit)
    shape = _LAW_NAMES.get(law.model, law.model)
    if law.points < _FOR_A_LAW:
        shape = f"on average ({law.points} sizes are too few for a law)"
    growth = f"{more} for one more {law.param}, {shape}{_exponent(law)}"
    return f"{subject}: {growth}; {value}{_further(law, unit)}."


def _at_sizes(levels: Sequence[Level]) -> str:
    return ", ".join(f"{readable(of.summary.median, of.unit)}{_at(of.point)}" for of in levels)


def _exponent(law: Law) -> str:
    if law.exponent is None or law.exponent_ci is None:
        return ""
    low, high = law.exponent_ci
    return f" (exponent {law.exponent:.2f} [{low:.2f}, {high:.2f}])"


def _further(law: Law, unit: str) -> str:
    for prediction in law.predictions:
        if prediction.value is not None:
            at = parameter(int(prediction.at))
            return f", and {readable(prediction.value, unit)} at {law.param}={at} by this law"
    return ""


def _at(point: Mapping[str, ParamValue]) -> str:
    return f" at {point_text(dict(point))}" if point else ""


def wait_lines(profile: WaitProfile) -> Iterator[str]:
    """Yield where processes wait for most of the time, and then where kernel threads do.

    The wait for another process says nothing: that one waits itself, or uses the CPU. Processes
    that sleep because they want to are named if nothing else is.
    """
    long = [place for place in profile.places if place.is_process and place.share >= WAITS]
    processes = [place for place in long if place.waits_for == "kernel"]
    processes = processes or [place for place in long if place.waits_for == "time"]
    threads = [place for place in profile.places if not place.is_process]
    for place in (*processes[:_MOST_PLACES], *threads[:1]):
        if place.share >= WAITS:
            yield _wait_line(profile, place)


def _wait_line(profile: WaitProfile, place: WaitPlace) -> str:
    who = "processes wait" if place.is_process else "work items of the kernel wait"
    by = f", called by {_called(place.callers)}" if place.callers else ""
    often = counted_waits(place)
    if profile.param and (place.count_per_object or 0) >= _PER_OBJECT and not profile.lost:
        often += f", {digits(place.count_per_object or 0)} for one more {profile.param}"
    lost = " (some switches of tasks were lost)" if profile.lost else ""
    return (
        f"In the {readable(profile.stretch_ns, 'ns')}{_at(profile.point)}, {who} for "
        f"{readable(place.ns, 'ns')} ({share_of_time(place)}) in {place.function}(){by}: "
        f"{often}{lost}."
    )


def counted_waits(place: WaitPlace) -> str:
    """Return how often tasks waited at a place, and how long: ``400 waits of 11.97 ms each``."""
    each = readable(place.ns / place.count, "ns") if place.count else "0 ns"
    return f"{digits(place.count)} waits of {each} each" if place.count > 1 else f"1 wait of {each}"


def share_of_time(place: WaitPlace) -> str:
    """Return the part of a stretch in which tasks waited at a place; of several at once, how many
    on average."""
    return f"{place.share:.1%}" if place.share <= 1 else f"{place.share:.1f} at once"


def _called(callers: Sequence[str]) -> str:
    return " <- ".join(f"{caller}()" for caller in callers)


def _function_lines(profile: Profile, least_share: float) -> Iterator[str]:
    """Yield which functions use the CPU at the largest size, those that grow faster than their
    objects first."""
    stretches = [stretch for stretch in profile.stretches if stretch.kernel == BASE]
    if not stretches or stretches[-1].busy_ns < least_share * stretches[-1].stretch_ns:
        return
    costs = [
        (function.function, cost)
        for function in profile.functions
        for cost in function.costs
        if cost.kernel == BASE
    ]
    costs.sort(key=lambda item: (not item[1].grows, -item[1].self_share))
    texts = []
    for function, cost in costs[:_MOST_FUNCTIONS]:
        grows = f" (grows with exponent {cost.exponent:.1f})" if cost.grows else ""
        name = _IN_USER_SPACE if function == "[user]" else f"in {function}()"
        texts.append(f"{cost.self_share:.0%} {name}{grows}")
    if texts:
        busy = readable(stretches[-1].busy_ns, "ns")
        yield f"The CPUs are busy for {busy}{_at(stretches[-1].point)}: {', '.join(texts)}."
