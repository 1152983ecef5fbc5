"""What else one object more adds to a release, in guests with two CPUs; which interrupt the other.

The kernel counts functions that one CPU had another one run, flushes of the TLB of another CPU, and
switches of tasks (/proc/interrupts, /proc/stat); perf counts the work items that are queued.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Final

from kteardown.rundir.counting import BootRecords, trials
from kteardown_hunt.finds import MeasuredCase
from kteardown_hunt.folder import case_of
from kteardown_hunt.plan import Case, TrialPoint
from kteardown_hunt.result import BroadcastResult

CPUS = 2
SEEDS = 3
MOST_OBJECTS = 288
_INTERRUPTS: Final = ("calls_count", "flushes_count")
_METRICS: Final = (*_INTERRUPTS, "waits_count", "switches_count", "work_items_count")
_LEAST_EACH = 0.5


def broadcast_points(screened: Mapping[Case, MeasuredCase]) -> dict[Case, list[TrialPoint]]:
    """Return the two sizes at which each case is counted: the larger has four times as many."""
    points = {}
    for case, measured in screened.items():
        most = max((size for size in measured.sizes if size <= MOST_OBJECTS), default=0)
        if most >= 4:
            points[case] = [TrialPoint(size, watch="counts") for size in (most // 4, most)]
    return points


def counts_each(
    boots: Iterable[BootRecords],
) -> dict[tuple[str, Case], dict[str, dict[int, float]]]:
    """Return by kernel and case how many of each metric one object more costs, by seed."""
    counts: dict[tuple[str, Case, str], dict[tuple[int, int], float]] = defaultdict(dict)
    for boot in boots:
        for trial in (trial for trial in trials(boot.records) if trial.usable):
            for metric in _METRICS:
                if values := trial.samples.get(metric):
                    at = boot.start.kernel, case_of(trial.params), metric
                    size = int(trial.params["objects"])
                    counts[at][boot.start.seed, size] = float(median(values))
    each: dict[tuple[str, Case], dict[str, dict[int, float]]] = defaultdict(dict)
    for (kernel, case, metric), by_seed in counts.items():
        few, many = (limit(size for _, size in by_seed) for limit in (min, max))
        seeds = {seed for seed, _ in by_seed if {(seed, few), (seed, many)} <= by_seed.keys()}
        if many > few:
            each[kernel, case][metric] = {
                seed: (by_seed[seed, many] - by_seed[seed, few]) / (many - few) for seed in seeds
            }
    return each


def is_broadcast(each: Mapping[str, Mapping[int, float]]) -> bool:
    """Return whether each object interrupts other CPUs, with every seed.

    To wake a task on another CPU interrupts that CPU, too: so these are more interrupts than
    switches of tasks. Fewer switches for more objects are noise, and no reason for interrupts.
    """
    switches = each.get("switches_count", {})
    beyond = [
        sum(each.get(metric, {}).get(seed, 0.0) for metric in _INTERRUPTS) - max(switched, 0.0)
        for seed, switched in switches.items()
    ]
    return bool(beyond) and min(beyond) >= _LEAST_EACH


def middle_counts(each: Mapping[str, Mapping[int, float]]) -> dict[str, float]:
    """Return the median over seeds of what one object more adds, by metric."""
    return {metric: median(by_seed.values()) for metric, by_seed in each.items() if by_seed}


def broadcast_results(
    each: Mapping[tuple[str, Case], Mapping[str, Mapping[int, float]]],
    source: str,
    objects: Mapping[Case, int],
) -> tuple[BroadcastResult, ...]:
    """Return the cases that broadcast on ``source``, those with the most interrupts first."""
    results = []
    for (kernel, case), metrics in each.items():
        if kernel != source or not is_broadcast(metrics):
            continue
        calls, flushes = (_range(metrics.get(name, {})) for name in _INTERRUPTS)
        elsewhere = {
            other: (_least(counted, "calls_count"), _least(counted, "flushes_count"))
            for (other, same), counted in each.items()
            if same == case and other != source
        }
        results.append(
            BroadcastResult(
                **vars(case),
                objects=objects[case],
                seeds=max(len(by_seed) for by_seed in metrics.values()),
                calls_each=calls,
                flushes_each=flushes,
                elsewhere=elsewhere,
            )
        )
    return tuple(
        sorted(results, key=lambda result: -(result.calls_each[0] + result.flushes_each[0]))
    )


def _least(counted: Mapping[str, Mapping[int, float]], metric: str) -> float:
    return _range(counted.get(metric, {}))[0]


def _range(by_seed: Mapping[int, float]) -> tuple[float, float]:
    """Return the smallest and the largest figure over seeds."""
    return (min(by_seed.values()), max(by_seed.values())) if by_seed else (0.0, 0.0)
