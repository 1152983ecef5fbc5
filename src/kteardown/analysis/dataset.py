"""The dataset of an analysis: usable samples by kernel, point, metric and block."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from kteardown.analysis.estimate.bootstrap import Boots, Resampler
from kteardown.analysis.estimate.verdict import Rules
from kteardown.model.clock import Clock
from kteardown.model.experiment import Experiment
from kteardown.model.faults import VoidTrials, boot_failed
from kteardown.model.point import Key, Point, key
from kteardown.model.record import Hello
from kteardown.model.result import ChangeCost
from kteardown.model.workload import Metric, Workload
from kteardown.rundir.counting import BootRecords, trials

_NO_END = "it did not end"
"""The reason for a trial that is missing from a boot whose outcome is ok."""
_Void = tuple[str, str, Key, str, str]


@dataclass(frozen=True)
class Histogram:
    """The number of values in each bucket, by the lowest value of the bucket.

    There are 2 ** bits buckets for each power of two, as in HdrHistogram (Gil Tene) and, with
    another mapping, DDSketch (C. Masson, J. Rim, H. Lee, VLDB 2019). A bucket is represented by its
    middle. Its distance from any value in the bucket is at most half the width, which is 2 **
    -(bits + 1) of the value. Each value below 2 ** (bits + 1) has its own bucket. Histograms are
    merged by adding their buckets; a percentile of the sum is that of all values together, with the
    same error bound.
    """

    bits: int
    counts: Mapping[int, int]

    @property
    def n(self) -> int:
        return sum(self.counts.values())

    @property
    def error(self) -> float:
        """Return the largest relative error of the middle of a bucket."""
        return 2.0 ** -(self.bits + 1)

    def percentile(self, percent: float) -> int:
        """Return the middle of the bucket of the smallest value that at least ``percent`` of all do
        not exceed.

        Raises ValueError if the histogram is empty.
        """
        # Rounded, because products such as 100 * 99.9 are not exact in floating point.
        rank = math.ceil(round(self.n * percent, 6) / 100)
        below = 0
        for low, count in sorted(self.counts.items()):
            below += count
            if below >= rank:
                return low + width(low, self.bits) // 2
        raise ValueError("an empty histogram has no percentile")


def width(value: int, bits: int) -> int:
    """Return the number of values that share the bucket of ``value``."""
    return 1 << max(0, value.bit_length() - 1 - bits)


def lowest(value: int, bits: int) -> int:
    """Return the smallest value in the bucket of ``value``."""
    return value - value % width(value, bits)


def merged(histograms: Iterable[Histogram]) -> Histogram:
    """Return all values together, in the buckets of the coarsest histogram. Needs at least one
    histogram."""
    parts = list(histograms)
    bits = min(histogram.bits for histogram in parts)
    counts: Counter[int] = Counter()
    for histogram in parts:
        for low, number in histogram.counts.items():
            counts[lowest(low, bits)] += number
    return Histogram(bits, counts)


class Dataset:
    """Every usable sample of a run by the rule of ``rundir.counting``, and which trials are not
    usable.

    Nothing else is left out: an outlier is a sample. ``releases`` has the release that each kernel
    reported, ``metrics`` every workload and metric that has samples.
    """

    def __init__(self, boots: Iterable[BootRecords]) -> None:
        self.releases: dict[str, str] = {}
        self.metrics: set[tuple[str, str]] = set()
        self._samples: dict[tuple[str, str, Key, str], dict[int, list[float]]] = {}
        self._histograms: dict[tuple[str, str, Key, str], list[Histogram]] = {}
        self._voids: Counter[_Void] = Counter()
        self._ended: dict[tuple[str, int], tuple[str, set[tuple[str, Key]]]] = {}
        self._boots: dict[tuple[str, str, Key, str], Boots] = {}
        for boot in boots:
            kernel = boot.start.kernel
            block = boot.start.block
            outcome = boot.end.outcome
            # With several machines a block has a boot of this kernel on each, and each has points
            # of its own.
            before, ended = self._ended.get((kernel, block), (_NO_END, set()))
            why = before if outcome == "ok" else boot_failed(outcome)
            self._ended[kernel, block] = (why, ended)
            for record in boot.records:
                if isinstance(record, Hello):
                    self.releases.setdefault(kernel, record.release)
            for trial in trials(boot.records):
                full = key(trial.params)
                if trial.status:
                    ended.add((trial.workload, full))
                    if not trial.usable:
                        self._voids[kernel, trial.workload, full, trial.status, trial.detail] += 1
                for metric, values in trial.samples.items() if trial.usable else ():
                    self.metrics.add((trial.workload, metric))
                    of_metric = self._samples.setdefault((kernel, trial.workload, full, metric), {})
                    of_metric.setdefault(block, []).extend(values)
                for metric, parts in trial.histograms.items() if trial.usable else ():
                    merged_later = self._histograms.setdefault(
                        (kernel, trial.workload, full, metric), []
                    )
                    merged_later.extend(Histogram(part.bits, dict(part.buckets)) for part in parts)

    def boots(self, kernel: str, point: Point, metric: str) -> Boots | None:
        """Return the samples of a metric of a kernel at a point, by block, in its unit; None
        without any."""
        place = (kernel, point.workload, point.full, metric)
        if place in self._samples and place not in self._boots:
            self._boots[place] = Boots(self._samples[place])
        return self._boots.get(place)

    def measured(self, kernel: str, point: Point) -> bool:
        """Return whether the kernel has samples of any metric at the point."""
        return any(
            (kernel, point.workload, point.full, m) in self._samples for _, m in self.metrics
        )

    def histogram(self, kernel: str, point: Point, metric: str) -> Histogram | None:
        """Return all values of one metric of one kernel at one point, of all boots; None without
        any."""
        parts = self._histograms.get((kernel, point.workload, point.full, metric))
        return merged(parts) if parts else None

    def voids(
        self, kernels: Sequence[str], blocks: int, expected: Sequence[Point]
    ) -> tuple[VoidTrials, ...]:
        """Return the trials that were void, failed, or planned and never ended, with how often and
        why.

        A trial of ``expected`` is missing if one of ``kernels`` did not end it in a block below
        ``blocks``.
        """
        counts = Counter(self._voids)
        for kernel in kernels:
            for block in range(blocks):
                why, ended = self._ended.get((kernel, block), ("not booted", set()))
                for point in expected:
                    if (point.workload, point.full) not in ended:
                        counts[kernel, point.workload, point.full, "missing", why] += 1
        shown = {(point.workload, point.full): point.shown for point in expected}
        order = {(kernel, *place): n for n, (kernel, place) in enumerate(product(kernels, shown))}
        keys = sorted(counts, key=lambda key: (order.get(key[:3], len(order)), key[3:]))
        return tuple(
            VoidTrials.model_validate(
                {
                    "kernel": kernel,
                    "workload": workload,
                    "point": shown.get((workload, full), dict(full)),
                    "status": status,
                    "detail": detail,
                    "count": counts[kernel, workload, full, status, detail],
                }
            )
            for kernel, workload, full, status, detail in keys
        )


@dataclass(frozen=True)
class Data:
    """The input of all comparisons.

    ``moved`` has the boots of the layout twin, and those of base in the same blocks; the other
    boots are in ``collected``.
    """

    experiment: Experiment
    workloads: Mapping[str, Workload]
    collected: Dataset
    moved: Dataset
    expected: Sequence[Point]
    variants: Sequence[str]
    asked_for: Sequence[str]
    """The variants that were requested, without the kernels that were built only for an
    ablation."""
    rules: Rules
    resampler: Resampler
    nodes: Mapping[int, str] = field(default_factory=dict)
    """On the nodes of a cluster and the wall clock, the node of each block."""
    costs: Mapping[tuple[str, str], ChangeCost] = field(default_factory=dict)
    """What the changed functions execute, by variant and workload, where that was counted."""

    @property
    def clock(self) -> Clock:
        return self.experiment.design.clock


def compared(
    experiment: Experiment, workloads: Mapping[str, Workload]
) -> list[tuple[str, str, Metric]]:
    """Return workload, metric and its description for every metric that is judged, headline metrics
    first."""
    result: list[tuple[str, str, Metric]] = []
    for name in dict.fromkeys(sweep.workload for sweep in experiment.workloads):
        metrics = [
            (metric, spec) for metric, spec in workloads[name].metrics.items() if spec.compare
        ]
        metrics.sort(key=lambda item: not item[1].headline)
        result += [(name, metric, spec) for metric, spec in metrics]
    return result


def headlines(
    experiment: Experiment, workloads: Mapping[str, Workload]
) -> list[tuple[str, str, Metric]]:
    """Return those of ``compared`` that are headline metrics: all of a workload that marks none."""
    return [
        (name, metric, spec)
        for name, metric, spec in compared(experiment, workloads)
        if spec.headline or not any(other.headline for other in workloads[name].metrics.values())
    ]
