"""What a script waits for: in which functions its processes sleep, how often and for how long.

The agent sends each stack in which a task gave up its CPU, with the number and the time of its
waits. A wait has one place: the innermost function that says what it is for. Processes that wait
for another process are apart, since the other one says more, and so are those that sleep because
they want to. Of kernel threads only those count
that are in a work item: the others wait for work.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from kteardown.analysis.stretches import frames_of, of_usable_trials
from kteardown.model.events import EVENTS
from kteardown.model.experiment import Experiment
from kteardown.model.judged import tidy
from kteardown.model.point import Key, size_of
from kteardown.model.script_records import Wait, WaitedStretch
from kteardown.model.waits import WaitedEvent, WaitFor, WaitPlace, WaitProfile
from kteardown.model.workload import Workload
from kteardown.paths import shipped_table
from kteardown.rundir.counting import BootRecords

_CALLERS = 3
_LEAST_SHARE = 0.001
_TABLE = shipped_table("analysis/waits")
_SCHEDULER = re.compile("|".join(_TABLE["scheduler"]))
_FOR_PROCESS = re.compile("|".join(_TABLE["for_process"]))
_FOR_TIME = re.compile("|".join(_TABLE["for_time"]))
_KERNEL_THREAD = re.compile("|".join(_TABLE["kernel_thread"]))
_WORKS = re.compile("|".join(_TABLE["works"]))
_ENDED = re.compile("|".join(_TABLE["ended"]))
_ENTRY = re.compile("|".join(_TABLE["entry"]))
_ELSEWHERE = re.compile("|".join(_TABLE["elsewhere"]))
_EVENT_OF = {function: name for name, kind in EVENTS.items() for function in kind.waits_in}


def _has(frames: Sequence[str], pattern: re.Pattern[str]) -> bool:
    return any(pattern.fullmatch(frame) for frame in frames)


@dataclass(frozen=True)
class WaitLocation:
    """Where a task waits; ``callers`` are all of its callers, the nearest first."""

    function: str
    callers: tuple[str, ...]
    is_process: bool
    waits_for: WaitFor


def location_of(stack: str) -> WaitLocation | None:
    """Return where a task waits; None if it has ended, or is a kernel thread that waits for
    work."""
    # A function and the part of it that the compiler has split off are one.
    frames = [frame for frame, _ in groupby(frames_of(stack))]
    is_process = not _has(frames, _KERNEL_THREAD)
    if _has(frames, _ENDED) or not (is_process or _has(frames, _WORKS)):
        return None
    inner_first = frames[::-1]
    depth = next(
        (n for n, frame in enumerate(inner_first) if not _SCHEDULER.fullmatch(frame)),
        len(frames) - 1,
    )
    callers = [frame for frame in inner_first[depth + 1 :] if not _ENTRY.fullmatch(frame)]
    return WaitLocation(
        inner_first[depth], tuple(callers), is_process, _waits_for(frames, is_process)
    )


def _waits_for(frames: Sequence[str], is_process: bool) -> WaitFor:
    if is_process and _has(frames, _FOR_PROCESS):
        return "process"
    return "time" if is_process and _has(frames, _FOR_TIME) else "kernel"


def event_of(stack: str) -> str | None:
    """Return for which event a task waits; None if for something else, or as ``location_of``.

    It waits for a lock that is held until a grace period ends, and not for the grace period.
    """
    if location_of(stack) is None:
        return None
    for frame in reversed(frames_of(stack)):
        if frame in _EVENT_OF:
            return _EVENT_OF[frame]
        if _ELSEWHERE.fullmatch(frame) or not _SCHEDULER.fullmatch(frame):
            return None
    return None


@dataclass
class _Waits:
    """The waits of one kernel at one point, of all stretches."""

    kernel: str
    workload: str
    key: Key
    stretches: list[WaitedStretch] = field(default_factory=list)
    stacks: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, record: Wait) -> None:
        self.stacks[record.stack]["count"] += record.count
        self.stacks[record.stack]["ns"] += record.ns


def _collect(boots: Iterable[BootRecords]) -> list[_Waits]:
    waits: dict[tuple[str, str, Key], _Waits] = {}
    for _, place, record in of_usable_trials(boots):
        if isinstance(record, WaitedStretch):
            waits.setdefault(place, _Waits(*place)).stretches.append(record)
        elif isinstance(record, Wait):
            waits.setdefault(place, _Waits(*place)).add(record)
    return [at_point for at_point in waits.values() if at_point.stretches]


@dataclass
class _PlaceTime:
    """The waits at one place; ``chains`` has their time by the callers through which they came."""

    count: int = 0
    ns: int = 0
    chains: Counter[tuple[str, ...]] = field(default_factory=Counter)


def _by_place(waits: _Waits) -> dict[WaitLocation, _PlaceTime]:
    """Return all waits by their places, each with its nearest caller alone."""
    places: dict[WaitLocation, _PlaceTime] = defaultdict(_PlaceTime)
    for stack, numbers in waits.stacks.items():
        place = location_of(stack)
        if place is not None:
            time = places[replace(place, callers=place.callers[:1])]
            time.count += numbers["count"]
            time.ns += numbers["ns"]
            time.chains[place.callers[:_CALLERS]] += numbers["ns"]
    return places


def _by_event(waits: _Waits) -> dict[str, Counter[str]]:
    events: dict[str, Counter[str]] = defaultdict(Counter)
    for stack, numbers in waits.stacks.items():
        event = event_of(stack)
        if event is not None:
            events[event].update(numbers)
    return events


def _events(smallest: _Waits, largest: _Waits, more: int) -> tuple[WaitedEvent, ...]:
    """Return the events that tasks wait for at the largest size, by the order of the table."""
    fewer = _by_event(smallest)
    events = _by_event(largest)
    number = len(largest.stretches)
    waited = []
    for name in (name for name in EVENTS if name in events):
        count = events[name]["count"] / number
        before = fewer[name]["count"] / len(smallest.stretches)
        waited.append(
            WaitedEvent(
                event=name,
                label=EVENTS[name].label,
                count=_tidy(count),
                ns=_tidy(events[name]["ns"] / number),
                count_per_object=_tidy((count - before) / more) if more > 0 else None,
            )
        )
    return tuple(waited)


def wait_profiles(
    boots: Iterable[BootRecords], experiment: Experiment, workloads: Mapping[str, Workload]
) -> tuple[WaitProfile, ...]:
    """Return what each workload waits for on each kernel, at the largest of its sizes.

    ``boots`` are those that were sampled.
    """
    families: dict[tuple[str, str, Key], list[_Waits]] = {}
    for waits in _collect(boots):
        if waits.workload in workloads:
            law = workloads[waits.workload].law
            rest = tuple(pair for pair in waits.key if pair[0] != law)
            families.setdefault((waits.kernel, waits.workload, rest), []).append(waits)
    swept = {s.workload: {*experiment.machine.swept, *s.params} for s in experiment.workloads}
    return tuple(
        _profile(family, workloads[workload].law, swept.get(workload, set()))
        for (_, workload, _), family in families.items()
    )


def _profile(family: list[_Waits], law: str, shown: set[str]) -> WaitProfile:
    by_size = sorted(family, key=lambda waits: size_of(dict(waits.key), law))
    smallest = by_size[0]
    largest = by_size[-1]
    small_n, large_n = (size_of(dict(waits.key), law) for waits in (smallest, largest))
    number = len(largest.stretches)
    stretch_ns = sum(stretch.stretch_ns for stretch in largest.stretches) / number
    at_smallest = _by_place(smallest)
    more = large_n - small_n
    places = []
    for place, time in _by_place(largest).items():
        count = time.count / number
        fewer = at_smallest.get(place, _PlaceTime()).count / len(smallest.stretches)
        share = time.ns / number / stretch_ns if stretch_ns else 0.0
        places.append(
            WaitPlace(
                function=place.function,
                callers=max(time.chains, key=lambda chain: (time.chains[chain], chain)),
                is_process=place.is_process,
                waits_for=place.waits_for,
                count=_tidy(count),
                ns=_tidy(time.ns / number),
                share=_tidy(share),
                count_per_object=_tidy((count - fewer) / more) if more > 0 else None,
            )
        )
    places.sort(key=lambda place: (-place.ns, place.function))
    return WaitProfile(
        workload=largest.workload,
        kernel=largest.kernel,
        param=law,
        point={name: value for name, value in largest.key if name in {*shown, law}},
        stretches=number,
        stretch_ns=_tidy(stretch_ns),
        lost=sum(stretch.lost for stretch in largest.stretches),
        places=tuple(place for place in places if place.share >= _LEAST_SHARE),
        events=_events(smallest, largest, more),
    )


def _tidy(value: float) -> float:
    return tidy(value) or 0.0
