"""Savings that a kernel, or a script, reports of itself: whether they are seen from outside.

A kernel that is judged can move the start of its own clock. So a figure that it made itself is a
claim: where it is better, the saving has to appear in the call that contains it, which the agent
times. Where that is too noisy to show it, the changed functions have to execute fewer instructions,
which QEMU counts from outside. The savings are in ns (on the instruction clock, instructions) of
one repetition. At least half of a claimed saving has to appear; METHODOLOGY.md has the rules.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kteardown.analysis.dataset import Data
from kteardown.analysis.pairs import Pair
from kteardown.model.clock import Clock
from kteardown.model.judged import Comparison, Outside
from kteardown.model.point import Key
from kteardown.model.result import ChangeCost, Result
from kteardown.model.workload import Metric, Workload

LEAST = 0.5
"""The share of a claimed saving that has to appear outside."""
_OF_PROCESSORS = "cpu_us"
"""The metric of a script that is a sum over processors."""
_ALONE = "alone"
"""Metrics that no call contains."""


class Saving(NamedTuple):
    """What a kernel saves, with the ends of its interval."""

    low: float
    middle: float
    high: float


def outside(claimed: float, whole: Saving | None, *, waits: bool = False) -> Outside:
    """Return what the whole says of a claimed saving; None: its saving is not known.

    ``waits``: the whole may wait for something else meanwhile, so that it does not show every
    saving.
    """
    if whole is None or claimed <= 0:
        return "unresolved"
    if whole.low > 0 and whole.middle >= LEAST * claimed:
        return "agrees"
    return "contradicts" if whole.high < LEAST * claimed and not waits else "unresolved"


def by_count(claimed: float, ratio: float, cost: ChangeCost, clock: Clock) -> Outside:
    """Return what the count of the changed functions says of a saving, claimed at the point of the
    count.

    ``ratio`` is the claimed changed / base: instructions are compared with real time as shares.
    """
    if cost.base is None or cost.changed is None or claimed <= 0:
        return "unresolved"
    saved = cost.base - cost.changed
    least = LEAST * (claimed if clock == "instructions" else (1 - ratio) * cost.base)
    return "counted" if saved > 0 and saved >= least else "contradicts"


@dataclass(frozen=True)
class OwnSaving:
    """A saving that a kernel or a script reports of itself at one point, and that of the whole
    there."""

    pair: Pair
    claimed: float
    whole: Pair | None

    @property
    def shown(self) -> Saving | None:
        """The saving of the whole; None if it has no interval."""
        if self.whole is None:
            return None
        before = self.whole.base.quantile(self.whole.figure.quantile)
        estimate = self.whole.estimate
        if estimate.identical:
            return Saving(0.0, 0.0, 0.0)
        if estimate.ci is None or estimate.ratio is None:
            return None
        low, high = estimate.ci
        return Saving(before * (1 - high), before * (1 - estimate.ratio), before * (1 - low))


@dataclass(frozen=True)
class SeenOutside:
    """What is seen from outside of a claim, and in words if that contradicts it; empty
    otherwise."""

    outside: Outside
    why: str = ""


class OwnSavings:
    """The savings that kernels or scripts report of themselves, of all metrics, with what is seen
    outside.

    A point that cannot be decided alone has the finding of all points of its metric together.
    """

    def __init__(self, pairs: Sequence[Pair], data: Data) -> None:
        self._data = data
        by_place = {_place(pair, pair.figure.metric): pair for pair in pairs}
        self._claims: dict[tuple[str, str, str, str], list[OwnSaving]] = {}
        for pair in pairs:
            spec = pair.figure.spec
            if spec.reporter == "agent":
                continue
            whole = by_place.get(_place(pair, spec.whole))
            self._claims.setdefault(_family(pair), []).append(
                OwnSaving(pair, _saved(pair, whole), whole)
            )

    def at(self, pair: Pair) -> SeenOutside | None:
        """Return the finding at one point; None if the agent made the figure."""
        family = self._claims.get(_family(pair))
        if family is None:
            return None
        (saving,) = (claim for claim in family if claim.pair is pair)
        return self._finding(family, [(1, saving)])

    def over(self, pairs: Sequence[Pair]) -> SeenOutside | None:
        """Return the finding of a metric over all its points; None if the agent made the figure."""
        family = self._claims.get(_family(pairs[0]))
        return None if family is None else self._finding(family, [(1, claim) for claim in family])

    def growth(self, pairs: Sequence[Pair], param: str, rest: Key) -> SeenOutside | None:
        """Return the finding of a growth law: of the saving at its largest point less that at its
        smallest.

        ``rest`` are the parameters beside ``param``. None if the agent made the figure.
        """
        family = self._claims.get(_family(pairs[0]))
        if family is None:
            return None
        line = [claim for claim in family if set(rest) <= set(claim.pair.figure.point.full)]
        line.sort(key=lambda claim: claim.pair.figure.point.params[param])
        return self._finding(family, [(-1, line[0]), (1, line[-1])])

    def _finding(
        self, family: Sequence[OwnSaving], parts: Sequence[tuple[int, OwnSaving]]
    ) -> SeenOutside:
        first = family[0].pair
        waits = self._data.workloads[first.figure.point.workload].script is not None
        # A point that is too noisy by itself has the finding of all points.
        for terms in (parts, [(1, claim) for claim in family]):
            claimed, whole = _added(terms)
            answer = outside(claimed, whole, waits=waits)
            if answer == "contradicts" and whole is not None:
                return SeenOutside(answer, _not_shown(first, whole, terms))
            if answer != "unresolved":
                return SeenOutside(answer)
        return self._counted(family)

    def _counted(self, family: Sequence[OwnSaving]) -> SeenOutside:
        first = family[0].pair
        cost = self._data.costs.get((first.variant, first.figure.point.workload))
        at_point = [
            claim
            for claim in family
            if cost is not None and claim.pair.figure.point.shown == cost.point
        ]
        if cost is None or not at_point or not first.figure.spec.whole:
            return SeenOutside("unresolved")
        answer = by_count(
            at_point[0].claimed, at_point[0].pair.estimate.ratio or 1.0, cost, self._data.clock
        )
        return SeenOutside(
            answer, f"{_own(first)}; {_executed(cost)}" if answer == "contradicts" else ""
        )


def saying(reason: str, ratio: float | None) -> str:
    """Return the reason of a withdrawn verdict with the change that was claimed."""
    figure, _, rest = reason.partition(";")
    return reason if ratio is None else f"{figure} says {_percent(ratio)};{rest}"


def _executed(cost: ChangeCost) -> str:
    """Return what the changed functions execute of both kernels, in words; empty if it was not
    counted."""
    if cost.base is None or cost.changed is None:
        return ""
    before, after = (f"{count:,.0f}" for count in (cost.base, cost.changed))
    rest = "as before" if before == after else f"instead of {before}"
    return f"the changed functions and what they call execute {after} instructions, {rest}"


def _percent(ratio: float) -> str:
    change = (ratio - 1) * 100
    return f"{change:+.0f}%" if 10 <= abs(change) < 99 else f"{change:+.1f}%"


def _family(pair: Pair) -> tuple[str, str, str, str]:
    figure = pair.figure
    return figure.point.workload, figure.metric, figure.statistic, pair.variant


def _place(pair: Pair, metric: str) -> tuple[str, Key, str, str, str]:
    figure = pair.figure
    return figure.point.workload, figure.point.full, metric, figure.statistic, pair.variant


def _saved(pair: Pair, whole: Pair | None) -> float:
    """Return the saving in ns; of a share, the saved part of the whole. 0 if there is none to
    compare."""
    quantile = pair.figure.quantile
    unit = pair.figure.spec.unit
    before, after = (side.quantile(quantile) for side in (pair.base, pair.changed))
    if whole is None:
        return 0.0
    if unit == "share":
        sides = (whole.base.quantile(quantile), whole.changed.quantile(quantile))
        return before * sides[0] - after * sides[1]
    saved = (before - after) * (1000 if unit == "us" else 1)
    # The times of several processors add up: of those the whole can save the same share.
    share = (before - after) / before * whole.base.quantile(quantile) if before > 0 else saved
    return min(saved, share) if pair.figure.metric == _OF_PROCESSORS else saved


def _added(parts: Iterable[tuple[int, OwnSaving]]) -> tuple[float, Saving | None]:
    """Return the sum of claims, each added (1) or subtracted (-1), and of their wholes; None
    without any."""
    claimed = low = middle = high = 0.0
    any_shown = False
    for sign, claim in parts:
        shown = claim.shown
        if shown is None:
            continue
        any_shown = True
        claimed += sign * claim.claimed
        middle += sign * shown.middle
        low += shown.low if sign > 0 else -shown.high
        high += shown.high if sign > 0 else -shown.low
    return claimed, Saving(low, middle, high) if any_shown else None


def _not_shown(first: Pair, whole: Saving, parts: Iterable[tuple[int, OwnSaving]]) -> str:
    """Return in words that the call that contains the claims does not have their saving."""
    spec = first.figure.spec
    quantile = first.figure.quantile
    before = sum(
        claim.whole.base.quantile(quantile) for _, claim in parts if claim.whole is not None
    )
    change = _percent(1 - whole.middle / before) if before else ""
    still = whole.low <= 0 <= whole.high or change in ("", "+0.0%", "-0.0%")
    changed = "did not change" if still else f"changed by {change}"
    return f"{_own(first)}; the call that contains it ({spec.whole}) {changed}"


def _own(pair: Pair) -> str:
    return f"the {pair.figure.spec.reporter}'s own figure"


def notes(
    result: Result, workloads: Mapping[str, Workload], costs: Mapping[tuple[str, str], ChangeCost]
) -> list[str]:
    """Return what rests on figures that kernels or scripts made themselves, of what is called
    better.

    ``costs``: what the changed functions execute, by variant and workload.
    """
    by_kind: dict[tuple[str, str, str], dict[str, Metric]] = {}
    for c in (*result.asked_for, *result.metric_verdicts):
        spec = workloads[c.workload].metrics.get(c.metric)
        if spec is not None and c.verdict == "better" and c.outside in ("unresolved", "counted"):
            kind = c.outside if spec.whole else _ALONE
            by_kind.setdefault((c.variant, c.workload, kind), {})[c.metric] = spec
    return [
        f"{variant}: {', '.join(specs)}: better by {_reporters(specs.values())} own figures; "
        f"{_rest(kind, specs.values(), costs.get((variant, workload)))}"
        for (variant, workload, kind), specs in by_kind.items()
    ]


def to_count(result: Result, workloads: Mapping[str, Workload]) -> list[Comparison]:
    """Return for each variant and workload with a saving that its whole cannot show the largest
    such one.

    What the changed functions execute is to be counted at its point.
    """
    judged = (*result.asked_for, *result.metric_verdicts)
    undecided = {(j.variant, j.workload, j.metric) for j in judged if j.outside == "unresolved"}
    undecided |= {
        (law.kernel, law.workload, law.metric) for law in result.laws if law.outside == "unresolved"
    }
    largest_savings: dict[tuple[str, str], Comparison] = {}
    for c in result.asked_for:
        name = (c.variant, c.workload, c.metric)
        if (
            name in undecided
            and c.statistic == "median"
            and workloads[c.workload].metrics[c.metric].whole
        ):
            largest = largest_savings.setdefault(name[:2], c)
            if _size(largest) < _size(c):
                largest_savings[name[:2]] = c
    return list(largest_savings.values())


def _size(c: Comparison) -> float:
    return (c.base.median - c.changed.median) * (1000 if c.unit == "us" else 1)


def _reporters(specs: Iterable[Metric]) -> str:
    return " and ".join(dict.fromkeys(f"the {spec.reporter}'s" for spec in specs))


def _rest(kind: str, specs: Iterable[Metric], cost: ChangeCost | None) -> str:
    """Return what is known from outside of metrics whose whole, if they have one, cannot show the
    saving."""
    if kind == _ALONE:
        return "nothing outside of it checks them"
    wholes = " and ".join(dict.fromkeys(spec.whole for spec in specs))
    cannot = f"{wholes}, which contains them, is too noisy to show that"
    if cost is None or cost.base is None:
        reason = f": {cost.reason}" if cost else ""
        return f"{cannot}, and what the changed functions execute was not counted{reason}"
    return f"{cannot}; {_executed(cost)}"
