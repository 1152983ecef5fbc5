"""What a new revision of a series keeps of the gains of an earlier one."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from kteardown.judge.metrics import metric_name, name_of, with_statistic
from kteardown.model.judged import Comparison, Judged, MetricVerdict
from kteardown.model.result import Result
from kteardown.model.workload import Workload
from kteardown.report.formatting import percent


def recorded_name(result: Result, of: Judged) -> str:
    """Return the recorded name of a metric; its key in words, in results without names."""
    recorded = (
        f.name for f in result.metrics if (f.workload, f.metric) == (of.workload, of.metric)
    )
    return with_statistic(next(recorded, "") or name_of(of.metric, None), of.statistic)


def key(row: Comparison, variant: str) -> tuple[object, ...]:
    """Return what it is a comparison of, with its variant called ``variant``."""
    return (row.workload, row.metric, row.statistic, variant, *sorted(row.point.items()))


_ALL = 0.95
"""A gain of at least this share of the earlier one, or whose interval overlaps it, is all of it."""
_VERSION = re.compile(r"(?:^|[-_ ])v(\d+)(?=$|[-_ @])")
"""The revision in the name of a variant."""


class _Pair(NamedTuple):
    """A headline metric of two variants, and its name."""

    mine: MetricVerdict
    new: MetricVerdict
    name: str

    @property
    def part(self) -> float | None:
        """Return the new gain as a part of the earlier one, both as logarithms; None without both
        ratios."""
        if not self.mine.ratio or not self.new.ratio or self.mine.ratio == 1:
            return None
        return math.log(self.new.ratio) / math.log(self.mine.ratio)

    @property
    def is_whole(self) -> bool:
        """Return whether all of the earlier gain is kept, or no more can be said."""
        earlier = self.mine.ci
        later = self.new.ci
        overlap = earlier and later and earlier[0] <= later[1] and later[0] <= earlier[1]
        return bool(overlap) or self.part is None or self.part >= _ALL


def revision(earlier: str, later: str, a: Result, b: Result) -> str:
    """Return in a sentence what variant ``later`` of b keeps, loses and adds, compared with
    ``earlier`` of a."""
    pairs = _in_both(earlier, later, a, b, partial(recorded_name, a))
    broken = bool(a.broken(earlier)), bool(b.broken(later))
    if pairs and a.clock != b.clock and not any(broken):
        return (
            f"{later} and {earlier} were measured on different clocks, so their changes cannot be "
            "compared"
        )
    base = [side.kernels["base"].source if "base" in side.kernels else None for side in (a, b)]
    where = (
        f" (base is {base[0]} for {earlier} and {base[1]} for {later})"
        if base[0] != base[1]
        else ""
    )
    return _broken(earlier, later, *broken) or _kept(earlier, later, pairs, where if pairs else "")


def _in_both(
    earlier: str, later: str, a: Result, b: Result, name: Callable[[MetricVerdict], str]
) -> list[_Pair]:
    """Return the headline metrics that variant ``earlier`` of a and ``later`` of b have."""
    ours, theirs = (
        {
            (m.workload, m.metric, m.statistic): m
            for m in side.metric_verdicts
            if m.variant == variant
        }
        for side, variant in ((a, earlier), (b, later))
    )
    return [_Pair(m, theirs[key], name(m)) for key, m in ours.items() if key in theirs]


def revisions_in(result: Result, workloads: Mapping[str, Workload]) -> list[str]:
    """Return what each revision of a series in one run keeps of the one before, a sentence each.

    Two variants are revisions of each other if their names differ in the revision alone: ``fix-v1``
    and ``fix-v2``, as a run calls two mailboxes of one series.
    """
    families: dict[str, list[tuple[int, str]]] = {}
    for name in result.requested:
        if result.kernels[name].series:
            # A name without a revision is the first one.
            version = _VERSION.search(name)
            stem = _VERSION.sub("", name, count=1).strip("-_ ")
            families.setdefault(stem, []).append((int(version[1]) if version else 1, name))
    sentences = []
    for (_, earlier), (_, later) in (
        pair for mine in families.values() for pair in pairwise(sorted(mine))
    ):
        pairs = _in_both(
            earlier,
            later,
            result,
            result,
            lambda m: metric_name(workloads, m.workload, m.metric, m.statistic),
        )
        broken = bool(result.broken(earlier)), bool(result.broken(later))
        sentences.append(_broken(earlier, later, *broken) or _kept(earlier, later, pairs))
    return sentences


def _broken(earlier: str, later: str, first: bool, second: bool) -> str:
    if first and second:
        return f"{later} is broken, as {earlier} is"
    words = (
        f"{later} is broken, and {earlier} is not"
        if second
        else f"{later} is not broken, and {earlier} is"
    )
    return words if first or second else ""


def _kept(earlier: str, later: str, pairs: Sequence[_Pair], where: str = "") -> str:
    if not pairs:
        return f"{later} and {earlier} have no headline metric in common"
    parts = _gains(earlier, pairs)
    for pair in pairs:
        if pair.mine.verdict == "worse" and pair.new.verdict == "worse":
            parts.append(f"still has the loss ({_now(pair)})")
        elif pair.mine.verdict == "worse" and pair.new.verdict != "better":
            parts.append(f"loses its {_change(pair.mine)} on {pair.name} (now {pair.new.verdict})")
    # The gains and losses that the earlier variant did not have.
    for mine, new, name in pairs:
        if new.verdict == "better" and mine.verdict != "better":
            parts.append(f"gains {_change(new)} on {name} (it was {mine.verdict})")
        elif new.verdict in ("worse", "mixed", "broken") and mine.verdict != new.verdict:
            parts.append(f"is {new.verdict} on {name} ({_change(new)}; it was {mine.verdict})")
    if not parts:
        return f"{later} changes no headline metric, and neither does {earlier}{where}"
    *first, last = parts
    return f"{later} {', '.join(first)}{' and ' if first else ''}{last}{where}"


def _gains(earlier: str, pairs: Sequence[_Pair]) -> list[str]:
    """Return what is kept of the gains."""
    gains = [pair for pair in pairs if pair.mine.verdict == "better"]
    kept = [pair for pair in gains if pair.new.verdict == "better" and pair.is_whole]
    parts = []
    if kept:
        several = "s" if len(kept) > 1 else ""
        what = "all of " if len(kept) == len(gains) else ""
        parts.append(f"keeps {what}{earlier}'s gain{several} ({', '.join(map(_now, kept))})")
    for pair in (pair for pair in gains if pair not in kept):
        if pair.new.verdict == "better":
            share = "a part" if pair.part is None else f"{pair.part:.0%}"
            parts.append(f"keeps {share} of {earlier}'s gain on {_now(pair)}")
        else:
            what = f"{earlier}'s gain of {_change(pair.mine)} on {pair.name}"
            parts.append(f"loses {what} (now {pair.new.verdict})")
    return parts


def _now(pair: _Pair) -> str:
    """Return both changes: ``freezing user space -61.0% after -60.8%``."""
    mine, new, name = pair
    was = "" if _change(mine) == _change(new) else f" after {_change(mine)}"
    return f"{name} {_change(new)}{was}"


def _change(metric: MetricVerdict) -> str:
    return "a change without a ratio" if metric.ratio is None else percent(metric.ratio)
