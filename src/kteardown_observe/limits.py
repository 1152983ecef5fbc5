"""Which limits of the kernel a machine is close to."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from kteardown.model.workload import StrictModel
from kteardown_observe.counts import LimitUse, MachineCounts, ObjectCount

CLOSE = 0.8
"""From this share of a limit on, a machine is close to it."""


class KernelLimit(StrictModel):
    """What the kernel limits, and what fails beyond."""

    name: str
    title: str
    fails: str
    count: str = ""
    part: str = ""
    """A count that is a part of the number, and what these are."""
    note: str = ""
    """What the number leaves out or counts twice."""


@dataclass(frozen=True)
class UsedLimit:
    """How much of a limit a machine uses; ``part``: how many of it are the count that the limit
    names."""

    limit: KernelLimit
    use: LimitUse
    part: ObjectCount | None

    @property
    def share(self) -> float:
        """1 if it is reached."""
        return self.use.number / self.use.bound

    @property
    def is_close(self) -> bool:
        """Whether it is so far used that someone should know."""
        return self.share >= CLOSE


@dataclass(frozen=True)
class JudgedLimits:
    """``used``: the fullest first. ``unknown``: those that could not be read, with the reason. A
    limit that a machine does not have is in neither."""

    used: tuple[UsedLimit, ...]
    unknown: tuple[tuple[KernelLimit, str], ...]

    @property
    def close(self) -> Sequence[UsedLimit]:
        """Those that the machine is close to."""
        return [used for used in self.used if used.is_close]


@cache
def load_limits() -> tuple[KernelLimit, ...]:
    """Return every limit, in the order of its file."""
    text = files("kteardown_observe").joinpath("limits.toml").read_text(encoding="utf-8")
    return tuple(KernelLimit(name=name, **fields) for name, fields in tomllib.loads(text).items())


def find_limit(name: str) -> KernelLimit | None:
    """Return the limit ``name``; None if there is none."""
    return next((limit for limit in load_limits() if limit.name == name), None)


def judge_limits(counts: MachineCounts) -> JudgedLimits:
    """Return how much of each limit a machine uses.

    A limit is unknown if it could not be read, or if it is not close and its owners are not nearly
    all known.
    """
    uses = {use.name: use for use in counts.limits or ()}
    used = []
    unknown = []
    for limit in load_limits():
        use = uses.get(limit.name)
        reason = counts.why_missing.get(limit.name, "")
        if use is None:
            reason = reason or ("" if counts.limits is not None else "not read")
        elif use.is_nearly_complete or use.number >= CLOSE * use.bound:
            used.append(UsedLimit(limit, use, counts.counts.get(limit.count)))
            continue
        else:
            reason = reason or "not all were counted"
        if reason:
            unknown.append((limit, reason))
    used.sort(key=lambda each: -each.share)
    return JudgedLimits(tuple(used), tuple(unknown))


def limit_document(used: UsedLimit) -> dict[str, Any]:
    """Return a limit for programs."""
    return {
        "name": used.limit.name,
        "title": used.limit.title,
        "number": used.use.number,
        "bound": used.use.bound,
        "share": used.share,
        "is_close": used.is_close,
        "is_complete": used.use.complete,
        "owner": used.use.owner,
        "parts": {used.limit.part: used.part.number} if used.part else {},
        "fails": used.limit.fails,
        "note": used.limit.note,
    }
