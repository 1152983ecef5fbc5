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
from itertools import chain
from statistics import fmean
from typing import Any, Self

import numpy as np

from kteardown.analysis.transfers import TRANSFER
from kteardown.model.record import TrialStart
from kteardown.model.record_fields import ParamValue
from kteardown.model.sharing import Sharing
from kteardown.rundir.counting import BootRecords, trials
from kteardown_hunt.finds import failure_of
from kteardown_hunt.folder import case_of
from kteardown_hunt.growth import STEEP, half_width
from kteardown_hunt.plan import Case
from kteardown_hunt.result import ContendedData, OwnersFailure, OwnersResult

CONFIDENCE = 0.975
"""Of each one-sided bound of the times of several processes: the interval has 95%."""
_SHOWN = 3
_LEAST_SHARE = 0.05
_Data = tuple[str, tuple[str, ...]]


@dataclass
class Waited:
    """What CPUs waited for data with one name, and in how many cache lines it is."""

    ticks: float = 0.0
    lines: float = 0.0


@dataclass
class Release:
    """What one release counted: all objects of all its processes together."""

    elapsed_ticks: float = 0.0
    asleep_ticks: float = 0.0
    """What the CPUs of its processes slept meanwhile, together; also at the end, while others still
    release."""
    moves: float = 0.0
    locked: float = 0.0
    waited: dict[_Data, Waited] = field(default_factory=lambda: defaultdict(Waited))


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
    # Each process is bound to one of the first CPUs.
    busy_ticks = sum(record.busy_ticks[:owners])
    release = Release(
        record.elapsed_ticks,
        max(0.0, owners * record.elapsed_ticks - busy_ticks),
        samples["line_moves_count"][0],
        samples["locked_count"][0],
    )
    for data in record.data:
        waited = release.waited[data.name, () if data.name else data.movers]
        waited.ticks += data.waited_ticks
        waited.lines += data.lines
    return release


def scalings(
    counted: Counted, alone: Mapping[Case, str], costs: Sequence[int], least_seeds: int
) -> tuple[OwnersResult, ...]:
    """Return how each case scales to each number of processes; the slowest first.

    ``alone``: by case, the verdict on the release by one process on the instruction clock. The
    others as for ``scaling``.
    """
    results = []
    for (case, owners), together in sorted(counted.items(), key=lambda item: item[0]):
        if owners > 1:
            by_one = counted.get((case, 1), {})
            if result := scaling(case, owners, by_one, together, costs, least_seeds):
                results.append(result.model_copy(update={"alone": alone.get(case, "")}))
    return tuple(sorted(results, key=lambda result: result.ratio / result.owners, reverse=True))


def scaling(
    case: Case,
    owners: int,
    alone: Mapping[tuple[int, int], Mapping[int, Release]],
    together: Mapping[tuple[int, int], Mapping[int, Release]],
    costs: Sequence[int],
    least_seeds: int,
) -> OwnersResult | None:
    """Return the scaling, from releases by seed and cost of a moved line; None without any.

    Times and counts are the differences between the two numbers of objects, so that what a release
    pays once has no part in them. The ratio is the geometric mean over seeds and costs. Its
    interval contains, for each cost, that of Student's t over the logarithms of the seeds: so a
    verdict holds with each cost. It is ``unknown`` unless each of ``costs`` has ``least_seeds``.
    With one seed the interval has no width.
    """
    pairs = [
        (cost, more, more_alone)
        for (seed, cost), releases in sorted(together.items())
        if (more := _Added.of(releases)) and (more_alone := _Added.of(alone.get((seed, cost), {})))
    ]
    if not pairs:
        return None
    logs: dict[int, list[float]] = {cost: [] for cost in costs}
    for cost, more, more_alone in pairs:
        logs[cost].append(math.log(more.ticks / more_alone.ticks))
    low, high = _interval(filter(None, logs.values()))
    is_enough = min(map(len, logs.values())) >= least_seeds
    added = [more for _, more, _ in pairs]
    released = owners * added[0].objects
    return OwnersResult(
        **vars(case),
        owners=owners,
        objects=added[0].most,
        boots=len(added),
        ratio=math.exp(fmean(chain(*logs.values()))),
        ci=(low, high),
        verdict=_verdict(owners, low, high) if is_enough else "unknown",
        moves_each=fmean(more.moves for more in added) / released,
        locked_each=fmean(more.locked for more in added) / released,
        **_waiting([more.release for more in added]),
    )


@dataclass(frozen=True)
class _Added:
    """What the larger one of two releases has more."""

    most: int
    """Objects of each process in ``release``, the larger one."""
    release: Release
    objects: int
    ticks: float
    moves: float
    locked: float

    @classmethod
    def of(cls, releases: Mapping[int, Release]) -> Self | None:
        """Return the difference; None if there is only one release, or if it takes no time."""
        fewest = min(releases, default=0)
        most = max(releases, default=0)
        if fewest == most or releases[most].elapsed_ticks <= releases[fewest].elapsed_ticks:
            return None
        less = releases[fewest]
        release = releases[most]
        return cls(
            most,
            release,
            most - fewest,
            release.elapsed_ticks - less.elapsed_ticks,
            release.moves - less.moves,
            release.locked - less.locked,
        )


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


def _waiting(releases: Sequence[Release]) -> dict[str, Any]:
    """Return for what the CPUs wait longest, and the share that they sleep, as fields of a result.

    The shares are of the larger number of objects: data has a name by the functions that move it,
    which may be others for fewer objects.
    """
    sums: dict[_Data, Waited] = defaultdict(Waited)
    for release in releases:
        for data, waited in release.waited.items():
            sums[data].ticks += waited.ticks
            sums[data].lines += waited.lines / len(releases)
    asleep = sum(release.asleep_ticks for release in releases)
    total = (sum(waited.ticks for waited in sums.values()) + asleep) or 1.0
    longest = sorted(sums.items(), key=lambda entry: (-entry[1].ticks, entry[0]))[:_SHOWN]
    return {
        "data": tuple(
            ContendedData(
                name=name, movers=movers, share=waited.ticks / total, lines=round(waited.lines)
            )
            for (name, movers), waited in longest
            if waited.ticks >= _LEAST_SHARE * total
        ),
        "asleep_share": asleep / total,
    }


def failed_releases(boots: Iterable[BootRecords]) -> tuple[OwnersFailure, ...]:
    """Return the first release of each case and number of processes that gave no counts."""
    failed: dict[tuple[Case, int], OwnersFailure] = {}
    for boot in boots:
        for trial in trials(boot.records):
            case = case_of(trial.params)
            owners = int(trial.params["owners"])
            if not trial.usable:
                failure = failure_of(trial, boot, int(trial.params["objects"]))
                result = OwnersFailure(**vars(case), owners=owners, failed=failure)
                failed.setdefault((case, owners), result)
    return tuple(failed.values())
