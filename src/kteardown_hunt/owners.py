"""How several processes scale that release at once, and the cache lines for which they wait.

One CPU has no contention: a release whose instructions are linear can still take a lock of the
whole machine. So boots on the contention clock (docs/contention.md) measure the release by one
process and by P processes, each on a CPU of its own and with as many objects of its own. The ratio
of the two times is 1 if they do not hinder each other, and P if they release one after another.
More than P is a convoy: each object costs more than if the processes had taken turns.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Self

import numpy as np

from kteardown.analysis.transfers import TRANSFER
from kteardown.model.record import TrialStart
from kteardown.model.record_fields import ParamValue
from kteardown.model.sharing import Sharing
from kteardown.rundir.counting import BootRecords, trials
from kteardown_hunt.folder import case_of
from kteardown_hunt.growth import STEEP, half_width
from kteardown_hunt.plan import Case
from kteardown_hunt.result import ContendedData, OwnersResult

CONFIDENCE = 0.975
"""Of each one-sided bound of the times of several processes: the interval has 95%."""
_SHOWN = 3
_LEAST_SHARE = 0.05
_Data = tuple[str, tuple[str, ...]]


@dataclass
class Release:
    """What one release counted: all objects of all its processes together."""

    elapsed_ticks: float = 0.0
    asleep_ticks: float = 0.0
    """What the CPUs of its processes slept meanwhile, together."""
    moves: float = 0.0
    locked: float = 0.0
    waited_ticks: dict[_Data, float] = field(default_factory=lambda: defaultdict(float))

    def without(self, other: Self) -> "Release":
        """Return what this one counted more than another with fewer objects, or less."""
        waited: dict[_Data, float] = defaultdict(float, self.waited_ticks)
        for data, ticks in other.waited_ticks.items():
            waited[data] -= ticks
        return Release(
            self.elapsed_ticks - other.elapsed_ticks,
            self.asleep_ticks - other.asleep_ticks,
            self.moves - other.moves,
            self.locked - other.locked,
            waited,
        )


Counted = dict[tuple[Case, int], dict[tuple[int, int], dict[int, Release]]]
"""By case and number of processes, then by seed and cost of a moved line, then by objects of
each process."""


def counted_releases(boots: Iterable[BootRecords]) -> Counted:
    """Return what was counted in each usable trial of ``boots``."""
    counted: Counted = {}
    for boot in boots:
        by_index = {trial.index: trial for trial in trials(boot.records) if trial.usable}
        params: dict[int, Mapping[str, ParamValue]] = {}
        for record in boot.records:
            if isinstance(record, TrialStart):
                params[record.trial] = record.params
            elif isinstance(record, Sharing) and record.trial in by_index:
                point = params[record.trial]
                key = case_of(point), int(point["owners"])
                at = boot.start.seed, int(point[TRANSFER])
                samples = by_index[record.trial].samples
                release = _release(record, samples, int(point["owners"]))
                of_boot = counted.setdefault(key, {}).setdefault(at, {})
                of_boot[int(point["objects"])] = release
    return counted


def _release(record: Sharing, samples: Mapping[str, Sequence[float]], owners: int) -> Release:
    release = Release(
        record.elapsed_ticks,
        max(0.0, owners * record.elapsed_ticks - record.busy_ticks),
        samples["line_moves_count"][0],
        samples["locked_count"][0],
    )
    for data in record.data:
        release.waited_ticks[data.name, () if data.name else data.movers] += data.waited_ticks
    return release


def scalings(counted: Counted, alone: Mapping[Case, str]) -> tuple[OwnersResult, ...]:
    """Return how each case scales to each number of processes; the slowest first.

    ``alone``: by case, the verdict on the release by one process on the instruction clock.
    """
    results = [
        result.model_copy(update={"alone": alone.get(case, "")})
        for (case, owners), together in sorted(counted.items(), key=lambda item: item[0])
        if owners > 1 and (result := scaling(case, owners, counted.get((case, 1), {}), together))
    ]
    return tuple(sorted(results, key=lambda result: result.ratio / result.owners, reverse=True))


def scaling(
    case: Case,
    owners: int,
    alone: Mapping[tuple[int, int], Mapping[int, Release]],
    together: Mapping[tuple[int, int], Mapping[int, Release]],
) -> OwnersResult | None:
    """Return the scaling, from releases by seed and cost of a moved line; None without any.

    All figures are the difference between the two numbers of objects, so that what a release pays
    once has no part in them. The ratio is the geometric mean over seeds and costs. Its interval
    contains, for each cost, that of Student's t over the logarithms of the seeds: so a verdict
    holds with each cost. With one seed the interval has no width.
    """
    by_cost: dict[int, list[float]] = defaultdict(list)
    added: list[Release] = []
    objects: set[tuple[int, int]] = set()
    for (seed, cost), release in sorted(together.items()):
        more = _added(release)
        more_alone = _added(alone.get((seed, cost), {}))
        if more is None or more_alone is None:
            continue
        by_cost[cost].append(math.log(more.elapsed_ticks / more_alone.elapsed_ticks))
        added.append(more)
        objects.add((min(release), max(release)))
    if not added:
        return None
    low, high = _interval(by_cost.values())
    fewest, most = max(objects, key=lambda sizes: sizes[1])
    released = owners * (most - fewest)
    return OwnersResult(
        **vars(case),
        owners=owners,
        objects=most,
        boots=len(added),
        ratio=math.exp(fmean(log for logs in by_cost.values() for log in logs)),
        ci=(low, high),
        verdict=_verdict(owners, low, high),
        moves_each=fmean(release.moves for release in added) / released,
        locked_each=fmean(release.locked for release in added) / released,
        data=_contended(added),
        asleep_share=_share(sum(release.asleep_ticks for release in added), added),
    )


def _added(releases: Mapping[int, Release]) -> Release | None:
    """Return what the larger number of objects adds; None if that takes no time."""
    if len(releases) < 2:
        return None
    more = releases[max(releases)].without(releases[min(releases)])
    return more if more.elapsed_ticks > 0 else None


def _interval(by_cost: Iterable[Sequence[float]]) -> tuple[float, float]:
    bounds = []
    for logs in by_cost:
        middle = fmean(logs)
        width = float(half_width(np.array(logs), CONFIDENCE))
        bounds += [middle - width, middle + width]
    return math.exp(min(bounds)), math.exp(max(bounds))


def _verdict(owners: int, low: float, high: float) -> str:
    """Return the verdict: closer to one than to ``owners`` is parallel."""
    between = (1 + owners) / 2
    if low > STEEP * owners:
        return "convoy"
    return "parallel" if high < between else "serial" if low > between else "unknown"


def _contended(added: Sequence[Release]) -> tuple[ContendedData, ...]:
    """Return the data for which the CPUs wait longest."""
    sums: dict[_Data, float] = defaultdict(float)
    for release in added:
        for data, ticks in release.waited_ticks.items():
            sums[data] += ticks
    order = sorted(sums, key=lambda data: (-sums[data], data))[:_SHOWN]
    shares = {(name, movers): _share(sums[name, movers], added) for name, movers in order}
    return tuple(
        ContendedData(name=name, movers=movers, share=share)
        for (name, movers), share in shares.items()
        if share >= _LEAST_SHARE
    )


def _share(ticks: float, added: Sequence[Release]) -> float:
    """Return the share of all the time for which CPUs wait: for lines, and asleep."""
    waited = sum(max(0.0, more) for release in added for more in release.waited_ticks.values())
    asleep = sum(max(0.0, release.asleep_ticks) for release in added)
    return max(0.0, ticks) / (waited + asleep) if waited + asleep > 0 else 0.0
