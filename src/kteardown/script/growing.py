"""Which counters of the kernel grow with the size of a script, how a figure grows between two
sizes, and whether figures have a trend."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kteardown.model.script_records import Delta
from kteardown.script.extract import delta_unit

_SHOWN = 6
_OF_MEMORY = 3

_FIRST = {"meminfo": 0, "cgroup.stat": 1}
_LEAST = 16
_SHARE = 0.5
_PARTS = {"SReclaimable": "Slab", "SUnreclaim": "Slab", "KReclaimable": "Slab"}
"""Fields of meminfo that are a part of another one."""
_NOT_MEMORY = re.compile(
    r"(?:Active|Inactive)(?:\(|$)|Committed_AS|CommitLimit|DirectMap|Mem(?:Free|Available)"
)
"""Fields of meminfo that say where memory is on a list, or what was promised, or what is left."""
_EVERY_PROCESS = re.compile(
    r"pg(?:alloc|free|fault|reuse|activate|inodesteal|skip|_)|numa_|nr_|drop_|unevictable_"
)
"""Fields of vmstat that every process changes, or that repeat meminfo in pages."""
_SKIPPED = ("stat", "cpu.stat")
"""Files that count CPU time, processes and interrupts: the metrics of time have that."""


def growing(
    small: Sequence[Delta],
    large: Sequence[Delta],
    small_n: int,
    large_n: int,
    again: Sequence[Delta] | None = None,
) -> list[tuple[str, str, float]]:
    """Return the counters whose increase grows with N: file, field, and by how much for each one of
    N.

    A counter grows if its increases at ``small_n`` and ``large_n`` differ by at least 16, which is
    more than a few pages of a shell, and by at least half of what it would be if all of the
    increase at ``large_n`` were proportional to N; objects of a slab also if half of them are there
    at ``small_n``. Counters that fall are left out: they are what another's growth leaves. With
    ``again``, the increases in another boot at ``small_n``, it grows only by more than twice the
    difference of these two boots.

    Of fields of a file that have the same increases, such as a sum and its only part that grew, one
    is kept; of meminfo, in which parts follow their sums, the last one. At most 6: the largest 3 of
    meminfo, which has all memory, then those of cgroup.stat, then others by size. None if N does
    not grow.
    """
    if not 0 <= small_n < large_n:
        return []
    before = {(delta.file, delta.name): delta.after - delta.before for delta in small}
    after = {(delta.file, delta.name): delta.after - delta.before for delta in large}
    repeated = (
        before
        if again is None
        else {(delta.file, delta.name): delta.after - delta.before for delta in again}
    )
    name_by_change: dict[tuple[str, int, int], tuple[str, str]] = {}
    for (file, name), change in after.items():
        first = before.get((file, name), 0)
        increase = change - first
        # Objects are made one by one: those of each N are there at the smaller size, too.
        if file == "slabinfo" and first < _SHARE * change * small_n / large_n:
            continue
        if increase <= 2 * abs(repeated.get((file, name), 0) - first):
            continue
        if (
            increase >= _LEAST
            and increase >= _SHARE * change * (large_n - small_n) / large_n
            and _is_own(file, name)
        ):
            same = file, change - increase, change
            if file == "meminfo":
                name_by_change[same] = file, name
            name_by_change.setdefault(same, (file, name))
    grown = {
        key: (high - low) / (large_n - small_n) for (_, low, high), key in name_by_change.items()
    }
    for name, total in _PARTS.items():
        if ("meminfo", total) in grown:
            grown.pop(("meminfo", name), None)
    ordered = sorted(grown, key=lambda key: (_FIRST.get(key[0], len(_FIRST)), -grown[key], key))
    memory = [key for key in ordered if key[0] == "meminfo"]
    chosen = [*memory[:_OF_MEMORY], *ordered[len(memory) :]]
    return [(*key, grown[key]) for key in chosen[:_SHOWN]]


def _is_own(file: str, name: str) -> bool:
    """Whether a counter says something that no other one and no metric of time does."""
    if file in _SKIPPED:
        return False
    if file == "memory.stat" and delta_unit(file, name)[0] == "B":
        return False  # A part of what meminfo has.
    ignored = {"meminfo": _NOT_MEMORY, "vmstat": _EVERY_PROCESS, "memory.stat": _EVERY_PROCESS}.get(
        file
    )
    return not (ignored and ignored.match(name))


_GROWTH_NAMES = (
    (-0.05, "falls"),
    (0.05, "nearly constant"),
    (0.9, "slower than linear, or linear beside a constant part"),
    (1.1, "linear"),
    (1.8, "faster than linear"),
    (2.2, "quadratic"),
    (math.inf, "faster than quadratic"),
)
"""How a figure grows, by the largest exponent for which it is called that."""


@dataclass(frozen=True)
class SizeGrowth:
    """How a figure grows between two sizes.

    Two sizes cannot separate a constant part: a law is fitted only to the sizes of a comparison.
    """

    small_n: int
    large_n: int
    small: float
    large: float

    @property
    def for_one_more(self) -> float:
        """What one more object adds on average."""
        return (self.large - self.small) / (self.large_n - self.small_n)

    @property
    def exponent(self) -> float | None:
        """The power of the size with which the figure grows; None if one of them is not
        positive."""
        if min(self.small_n, self.small, self.large) <= 0:
            return None
        return math.log(self.large / self.small) / math.log(self.large_n / self.small_n)

    @property
    def name(self) -> str:
        """``linear``, ``quadratic`` and so on; empty if there is no exponent."""
        exponent = self.exponent
        if exponent is None:
            return ""
        return next(name for most, name in _GROWTH_NAMES if exponent <= most)

    @property
    def at_least(self) -> str:
        """How the figure grows if ``large`` is a lower limit: ``at least quadratically``; empty if
        that may be slower than its objects."""
        exponent = self.exponent or 0.0
        powers = (
            (3, "at least with the third power"),
            (2, "at least quadratically"),
            (1, "at least linearly"),
        )
        return next((words for power, words in powers if exponent >= power), "")


_TREND_VALUES = 6
_TREND_LEVEL = 0.005


def trend(measured: Sequence[float]) -> bool:
    """Return whether the values of one boot rise or fall with their order (Mann-Kendall test, level
    0.005).

    Then they may be points of a law, and not repetitions. False for fewer than 6 values: of those,
    not even a strict order is evidence at this level.
    """
    if len(measured) < _TREND_VALUES:
        return False
    from scipy import stats  # It loads for a second, and every run imports this module.

    test = stats.kendalltau(range(len(measured)), measured)
    return bool(test.pvalue < _TREND_LEVEL)
