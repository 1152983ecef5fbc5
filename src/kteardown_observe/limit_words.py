"""The sentences about limits of the kernel, without marks of any format."""

from collections.abc import Iterator

from kteardown.visible import on_one_line
from kteardown_observe.limits import JudgedLimits, UsedLimit

TITLE = "close to a limit"


def limits_text(limits: JudgedLimits) -> str:
    """Return how many limits were looked at, and how many a machine is close to."""
    looked_at = len(limits.used) + len(limits.unknown)
    close = len(limits.close)
    number = f"{close} {'is' if close == 1 else 'are'}" if close else "none is"
    unknown = f", and {len(limits.unknown)} could not be read" if limits.unknown else ""
    return f"looked at {looked_at} limits of the kernel: {number} close{unknown}"


def limit_lines(limits: JudgedLimits) -> Iterator[tuple[str, str]]:
    """Yield each limit that a machine is close to, and what then fails."""
    for used in limits.close:
        note = f"; {used.limit.note}" if used.limit.note else ""
        yield limit_text(used), f"if it is reached, {used.limit.fails}{note}"


def limit_text(used: UsedLimit) -> str:
    """Return a limit with its number, its bound and its fullest owner."""
    use = used.use
    least = "" if use.complete else "at least "
    owner = f" ({on_one_line(use.owner)})" if use.owner else ""
    text = f"{used.limit.title}: {least}{use.number:,} of {use.bound:,}, {percent(used)}{owner}"
    if used.part and used.part.number:
        least = "" if used.part.complete else "at least "
        text += f"; {least}{used.part.number:,} of them are {used.limit.part}"
    return text


def percent(used: UsedLimit) -> str:
    """Return the share that is used; a limit that is not reached is never at 100%."""
    return f"{100 * used.use.number // used.use.bound}%"
