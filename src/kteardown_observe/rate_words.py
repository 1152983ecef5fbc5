"""The sentences about what happened while a machine was watched."""

from collections.abc import Iterator, Sequence

from kteardown.report.formatting import number, share
from kteardown.visible import on_one_line
from kteardown_observe.counts import CountOwner, StackWait, WatchedRates

_TITLES = {"exits": "tasks that exited", "cgroup_removals": "cgroups that were removed"}
_BY_NAME = ("exits",)
"""Events whose owners have names that say something."""
_FUNCTIONS = 5
_WAITS = 5


def rate_lines(rates: WatchedRates) -> Iterator[str]:
    """Yield what happened, a line each."""
    yield f"in {number(rates.seconds)} s:"
    for name, title in _TITLES.items():
        event = rates.events.get(name)
        if event is None:
            continue
        a_second = number(event.number / rates.seconds) if rates.seconds else "?"
        owners = _owners(event.largest) if name in _BY_NAME else ""
        yield f"  {title}: {event.number:,}, {a_second} a second{owners}"
    throttled = rates.throttled
    if throttled.periods:
        of_all = share(throttled.number / throttled.periods)
        yield (
            f"  periods in which a cgroup was throttled: {throttled.number:,} of "
            f"{throttled.periods:,}, {of_all}{_owners(throttled.largest)}"
        )
    yield from map(_wait, rates.waits[:_WAITS])
    if rates.samples and not rates.waits:
        yield f"  no task waited uninterruptibly in any of {rates.samples:,} samples"


def _wait(wait: StackWait) -> str:
    functions = " < ".join(wait.stack[:_FUNCTIONS]) or "a stack that may not be read"
    seconds = f"about {number(wait.seconds)} s in all"
    return f"  tasks waited {seconds}{_owners(wait.names)}: {on_one_line(functions)}"


def _owners(owners: Sequence[CountOwner]) -> str:
    texts = [f"{on_one_line(owner.name)} {owner.number:,}" for owner in owners[:3]]
    return f" ({', '.join(texts)})" if texts else ""
