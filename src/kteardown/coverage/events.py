"""What a measured stretch does to other tasks and CPUs, from counts of entries of functions.

A patch that calls ``call_rcu()`` instead of ``synchronize_rcu()`` shows here at once. The figures
of base are compared with those of a variant, at one size or for one object more.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from kteardown.coverage.attribute import DebugInfo, Entered
from kteardown.model.events import EVENTS, ONCE, EventFigure, EventKind

Counted = Mapping[str, int]
"""By the name of an event, how often it happened."""
NAMES = frozenset(name for kind in EVENTS.values() for name in (*kind.functions, *kind.less))
"""The functions whose entries are counted."""
_FEWEST = 2
"""A single event more or less may be the work of the kernel itself, such as a new clock source. At
the smaller size one is enough."""
_FEWEST_PER_OBJECT = 0.01


def happened(counts: Mapping[int, int], info: DebugInfo) -> dict[str, int]:
    """Return the events in which instructions were executed so often (``counts_of``)."""
    return events_of(info.entered(counts, NAMES))


def events_of(entered: Iterable[Entered]) -> dict[str, int]:
    """Return how often each event happened that did happen."""
    entries = list(entered)
    counts = {name: _count(kind, entries) for name, kind in EVENTS.items()}
    return {name: count for name, count in counts.items() if count > 0}


def _count(kind: EventKind, entries: Sequence[Entered]) -> int:
    counted = sum(
        entry.times
        for entry in entries
        if entry.name in kind.functions and entry.callers.isdisjoint(kind.not_from)
    )
    return counted - sum(entry.times for entry in entries if entry.name in kind.less)


def compare_events(
    sides: Sequence[Sequence[Counted]], param: str, objects: int, *, afterwards: bool = False
) -> list[EventFigure]:
    """Return the figures of all events that happen on base or the variant.

    ``sides``: of base at the smaller size and at the larger one, then of the variant, each by seed.
    ``objects``: how many more of ``param`` the larger size has; 0 if there is one size, which is
    then given twice.
    """
    figures = []
    for event in EVENTS:
        small, large, small_changed, large_changed = (
            [seed.get(event, 0) for seed in side] for side in sides
        )
        if any((*small, *large, *small_changed, *large_changed)):
            figure = (small, large), (small_changed, large_changed)
            figures.append(_figure(event, *figure, param, objects, afterwards=afterwards))
    return figures


_Sizes = tuple[Sequence[int], Sequence[int]]
"""The counts at the smaller and at the larger size, by seed."""


def _figure(
    event: str, base: _Sizes, changed: _Sizes, param: str, objects: int, *, afterwards: bool
) -> EventFigure:
    kind = EVENTS[event]
    more = [[large - small for small, large in zip(*side, strict=True)] for side in (base, changed)]
    # What the kernel happens to do in one of the stretches is no effect of the change.
    gaps = [_gap(*pair) for pair in zip(base, changed, strict=True)]
    differs = gaps[0] * gaps[1] > 0 and abs(gaps[1]) >= _FEWEST
    grows = abs(_gap(more[0], more[1])) >= max(_FEWEST, _FEWEST_PER_OBJECT * objects)
    once = all(median(side) >= ONCE * objects for side in more)
    if objects and ((differs and grows) or once):
        values = [tuple(n / objects for n in side) for side in more]
    else:
        values = [tuple(map(float, side[1])) for side in (base, changed)]
        param = ""
    return EventFigure(
        event=event,
        label=kind.label,
        unit=kind.unit,
        objects=param,
        afterwards=afterwards,
        base=values[0],
        changed=values[1],
        differs=differs,
    )


def _gap(base: Sequence[int], changed: Sequence[int]) -> int:
    """Return how far the seeds of the variant are from those of base; 0 if the seeds of one kernel
    are as far from each other.

    One seed shows no spread, so that of random events is assumed (Poisson).
    """
    more, fewer = min(changed) - max(base), min(base) - max(changed)
    spread = float(max(max(side) - min(side) for side in (base, changed)))
    if len(base) == 1:
        spread = math.sqrt(max(*base, *changed, 0))
    gap = max(more, fewer)
    return (more if more > fewer else -fewer) if gap > spread else 0
