"""Whether several processes that release at once, each on a CPU of its own, wait for each other.

One CPU has no contention: a release whose instructions are linear can still take a lock of the whole machine.
So the same boot measures on the wall clock the release by one process and by P processes, each with as many
objects of its own. The ratio of the two times is 1 if they do not hinder each other, and P if they release
one after another. More than P is a convoy: each object costs more than if the processes had taken turns.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np

from kteardown.hunt.exponent import half_width
from kteardown.hunt.growth import STEEP
from kteardown.hunt.measure import case_of
from kteardown.hunt.plan import Case
from kteardown.rundir.counting import BootRecords, trials

Waiting = Literal["parallel", "serial", "convoy", "unknown"]

_CONFIDENCE = 0.975
"""Of each one-sided bound: the interval has 95%."""


@dataclass(frozen=True)
class Scaling:
    """How long ``owners`` processes take, relative to one, each with ``objects`` objects.

    ``ratio`` is the geometric mean over boots, ``ci`` its interval by Student's t of the logarithms.
    """

    owners: int
    objects: int
    boots: int
    ratio: float
    ci: tuple[float, float]
    verdict: Waiting


def scalings(boots: Sequence[BootRecords]) -> dict[Case, list[Scaling]]:
    """Return the scaling of each case to each number of owners, from the boots of one stage."""
    times: dict[tuple[Case, int], dict[tuple[int, int], float]] = {}
    for boot in boots:
        for trial in trials(boot.records):
            if trial.usable and trial.samples.get("elapsed_ns"):
                key = case_of(trial.params), int(trial.params["owners"])
                at = boot.boot, int(trial.params["objects"])
                times.setdefault(key, {})[at] = median(trial.samples["elapsed_ns"])
    found: dict[Case, list[Scaling]] = {}
    for (case, owners), those in sorted(times.items()):
        alone = times.get((case, 1), {})
        if owners > 1 and (one := scaling(owners, alone, those)):
            found.setdefault(case, []).append(one)
    return found


def scaling(
    owners: int, alone: Mapping[tuple[int, int], float], together: Mapping[tuple[int, int], float]
) -> Scaling | None:
    """Return the scaling, from times by boot and number of objects; None with fewer than two boots."""
    both = [at for at in together if alone.get(at, 0) > 0 and together[at] > 0]
    if len(both) < 2:
        return None
    logs = np.log([together[at] / alone[at] for at in both])
    middle, width = float(logs.mean()), float(half_width(logs, _CONFIDENCE))
    low, high = math.exp(middle - width), math.exp(middle + width)
    return Scaling(
        owners,
        max(at[1] for at in both),
        len(both),
        math.exp(middle),
        (low, high),
        _waiting(owners, low, high),
    )


def _waiting(owners: int, low: float, high: float) -> Waiting:
    """Return the verdict; closer to one than to ``owners`` is parallel."""
    between = (1 + owners) / 2
    if low > STEEP * owners:
        return "convoy"
    if low > between:
        return "serial"
    return "parallel" if high < between else "unknown"
