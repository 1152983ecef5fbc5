"""What releases wait for: once for each object, or once for all of them.

The screen has how long the guest was idle during each release, and how long deferred work took from
the end of the release on. Neither costs a boot. Call chains come from trials in which each switch
of tasks is watched (``agent/waits/waits.c``): these cost instructions, and are only made for
releases that wait.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Final, Literal

import numpy as np

from kteardown.analysis.stretches import of_usable_trials
from kteardown.analysis.waits import event_of, location_of
from kteardown.model.events import EVENTS
from kteardown.model.script_records import Wait, WaitedStretch
from kteardown.rundir.counting import BootRecords
from kteardown_hunt.finds import MeasuredCase
from kteardown_hunt.folder import case_of
from kteardown_hunt.growth import NOTICED, Curve, judge
from kteardown_hunt.plan import Case, TrialPoint
from kteardown_hunt.result import WaitingFunction, WaitResult

WaitPart = Literal["release", "deferred"]
WAIT_PARTS: Final[tuple[WaitPart, ...]] = ("release", "deferred")
WATCHED_SIZES = 3
WATCH_PERIOD_NS = 1_000_000
"""A trial whose waits are watched is planned with a profile; nothing is sampled."""
_FLOOR_NS = 8_000_000
"""Two ticks of a kernel with 250 a second, to which a sleep can be rounded up."""
_SHARED_CPU = 2
"""Deferred work shares the CPU with the process that waits for its end, so it takes twice its
time."""
_MOSTLY = 0.5
_FUNCTIONS = 3
_LEAST_EACH = 0.25
"""A function in which fewer waits come with one more object is not named."""


@dataclass(frozen=True)
class WaitLaw:
    """How the time asleep grows: ``for each object``, ``for all at once``, ``none`` or ``unknown``.

    ``each_ns``: with one object more, at the largest sizes.
    """

    verdict: str
    sizes: tuple[int, ...] = ()
    asleep_ns: tuple[float, ...] = ()
    each_ns: float | None = None


def wait_law(measured: MeasuredCase, part: WaitPart) -> WaitLaw:
    """Return how the time asleep of one part grows with the number of objects."""
    by_size = _asleep(measured, part)
    sizes = tuple(sorted(by_size))
    asleep = tuple(by_size[size] for size in sizes)
    if len(sizes) < 2:
        return WaitLaw("unknown", sizes, asleep)
    each = (asleep[-1] - asleep[-2]) / (sizes[-1] - sizes[-2])
    if asleep[-1] - asleep[0] <= NOTICED * _FLOOR_NS:
        return WaitLaw("for all at once" if asleep[-1] > _FLOOR_NS else "none", sizes, asleep)
    growth = judge(Curve(sizes, np.array([asleep]), _FLOOR_NS))
    grows = growth.verdict in ("linear", "superlinear") or (growth.rising and each > 0)
    return WaitLaw("for each object" if grows else "unknown", sizes, asleep, each)


def _asleep(measured: MeasuredCase, part: WaitPart) -> dict[int, float]:
    """Return the time asleep by the number of objects, the median over seeds."""
    by_size: dict[int, list[float]] = defaultdict(list)
    if part == "release":
        for (_, size), idle_ns in measured.figures.get("idle_ns", {}).items():
            by_size[size].append(idle_ns)
    work = measured.figures.get("deferred_ns", {})
    elapsed = measured.figures.get("deferred_elapsed_ns", {})
    for at in elapsed.keys() & work.keys() if part == "deferred" else ():
        asleep = elapsed[at] - _SHARED_CPU * work[at]
        # What is mostly work did not wait: how the CPU was shared is not known that well.
        by_size[at[1]].append(asleep if asleep > _MOSTLY * elapsed[at] else 0.0)
    return {size: median(values) for size, values in by_size.items()}


def watched_points(law: WaitLaw) -> list[TrialPoint]:
    """Return the points at which the waits of a case are watched: its largest sizes."""
    return [TrialPoint(size, watch="waits") for size in law.sizes[-WATCHED_SIZES:]]


@dataclass
class _Function:
    count: Counter[int] = field(default_factory=Counter)
    ns: Counter[int] = field(default_factory=Counter)
    chains: Counter[tuple[str, ...]] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Watched:
    """In which functions tasks wait for each object, the longest first.

    A process waits for the release, and a kernel thread in a work item for what is deferred.
    """

    functions: Mapping[WaitPart, tuple[WaitingFunction, ...]] = field(default_factory=dict)
    asked_ns_each: float = 0.0
    """How long the owner slept for each object because it asked to: pauses of the kind."""


def waiting_functions(boots: Iterable[BootRecords]) -> dict[tuple[str, Case], Watched]:
    """Return what was watched, by kernel and case."""
    functions: dict[tuple[str, Case], dict[tuple[WaitPart, str], _Function]] = {}
    asked_ns: dict[tuple[str, Case], Counter[int]] = defaultdict(Counter)
    sizes: dict[tuple[str, Case], set[int]] = defaultdict(set)
    for (kernel, case, size), waits in _watched(boots):
        at = kernel, case
        sizes[at].add(size)
        for record in waits:
            location = location_of(record.stack)
            if location is not None and location.waits_for == "time":
                asked_ns[at][size] += record.ns
            if location is None or location.waits_for != "kernel":
                continue
            part: WaitPart = "release" if location.is_process else "deferred"
            into = functions.setdefault(at, {}).setdefault((part, location.function), _Function())
            into.count[size] += record.count
            into.ns[size] += record.ns
            into.chains[location.callers[:_FUNCTIONS]] += record.ns
            into.events[event_of(record.stack) or ""] += record.ns
    watched = {}
    for at, numbers in sizes.items():
        few, many = min(numbers), max(numbers)
        asked = (asked_ns[at][many] - asked_ns[at][few]) / (many - few or 1)
        watched[at] = Watched(_each(functions.get(at, {}), few, many), asked)
    return watched


def _watched(boots: Iterable[BootRecords]) -> list[tuple[tuple[str, Case, int], list[Wait]]]:
    """Return the waits of each trial, of the repetition that counts: the last one."""
    trials: dict[tuple[int, int], tuple[tuple[str, Case, int], list[Wait]]] = {}
    for boot, (kernel, _, key), record in of_usable_trials(boots):
        if isinstance(record, WaitedStretch):
            params = dict(key)
            place = kernel, case_of(params), int(params["objects"])
            trials[id(boot), record.trial] = place, []
        elif isinstance(record, Wait):
            trials[id(boot), record.trial][1].append(record)
    return list(trials.values())


def _each(
    functions: Mapping[tuple[WaitPart, str], _Function], few: int, many: int
) -> dict[WaitPart, tuple[WaitingFunction, ...]]:
    by_part: dict[WaitPart, list[WaitingFunction]] = defaultdict(list)
    for (part, name), waits in functions.items():
        more = many - few or 1
        function = WaitingFunction(
            name=name,
            callers=max(waits.chains, key=lambda chain: (waits.chains[chain], chain)),
            count_each=(waits.count[many] - waits.count[few]) / more,
            ns_each=(waits.ns[many] - waits.ns[few]) / more,
            event=_label(max(waits.events, key=lambda event: waits.events[event])),
        )
        if function.count_each >= _LEAST_EACH:
            by_part[part].append(function)
    return {
        part: tuple(sorted(chosen, key=lambda function: -function.ns_each)[:_FUNCTIONS])
        for part, chosen in by_part.items()
    }


def _label(event: str) -> str:
    return EVENTS[event].label if event else ""


def wait_results(
    screened: Mapping[Case, MeasuredCase],
    watched: Mapping[Case, Watched],
    elsewhere: Mapping[Case, Mapping[str, MeasuredCase]],
) -> tuple[WaitResult, ...]:
    """Return what waits for each object, the longest wait first.

    Time asleep in which no function waits for each object is none of these: an RCU callback, which
    is invoked later, is no wait of anybody, and a kind may pause between its releases.
    """
    results = []
    for case, measured in screened.items():
        for part in WAIT_PARTS:
            law = wait_law(measured, part)
            if law.verdict != "for each object" or law.each_ns is None:
                continue
            seen = watched.get(case, Watched())
            each_ns = law.each_ns - (seen.asked_ns_each if part == "release" else 0.0)
            functions = seen.functions.get(part, ())
            if not functions or each_ns < _MOSTLY * law.each_ns:
                continue
            others = {
                source: wait_law(other, part) for source, other in elsewhere.get(case, {}).items()
            }
            results.append(
                WaitResult(
                    **vars(case),
                    part=part,
                    sizes=law.sizes,
                    asleep_ns=law.asleep_ns,
                    each_ns=each_ns,
                    functions=functions,
                    elsewhere={
                        source: other.each_ns if other.each_ns is not None else 0.0
                        for source, other in others.items()
                        if other.sizes
                    },
                )
            )
    return tuple(sorted(results, key=lambda result: -result.each_ns))
