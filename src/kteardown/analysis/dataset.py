"""The dataset of an analysis: usable samples by kernel, point, metric and block."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kteardown.analysis.estimate.bootstrap import Boots
from kteardown.analysis.estimate.histogram import Histogram, merged
from kteardown.model.experiment import Experiment
from kteardown.model.point import Key, Point, key
from kteardown.model.record import Hello
from kteardown.model.result import VoidTrials, boot_failed
from kteardown.model.workload import Metric, Workload
from kteardown.rundir.counting import BootRecords, trials

_NO_END = "it did not end"
"""The reason for a trial that is missing from a boot whose outcome is ok."""
_Void = tuple[str, str, Key, str, str]


class Dataset:
    """Every usable sample of a run by the rule of ``rundir.counting``, and which trials are not usable.

    Nothing else is left out: an outlier is a sample. ``releases`` has the release that each kernel reported,
    ``metrics`` every workload and metric that has samples.
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
            kernel, block = boot.start.kernel, boot.start.block
            outcome = boot.end.outcome
            # With several machines a block has a boot of this kernel on each, and each has points of its own.
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
                for metric, found in trial.histograms.items() if trial.usable else ():
                    merged_later = self._histograms.setdefault((kernel, trial.workload, full, metric), [])
                    merged_later.extend(Histogram(part.bits, dict(part.buckets)) for part in found)

    def boots(self, kernel: str, point: Point, metric: str) -> Boots | None:
        """Return the samples of one metric of one kernel at one point, by block; None if it has no samples.

        They are in the unit of the metric.
        """
        place = (kernel, point.workload, point.full, metric)
        if place in self._samples and place not in self._boots:
            self._boots[place] = Boots(self._samples[place])
        return self._boots.get(place)

    def measured(self, kernel: str, point: Point) -> bool:
        """Return whether the kernel has samples of any metric at the point."""
        return any((kernel, point.workload, point.full, m) in self._samples for _, m in self.metrics)

    def histogram(self, kernel: str, point: Point, metric: str) -> Histogram | None:
        """Return all values of one metric of one kernel at one point, of all boots; None without any."""
        found = self._histograms.get((kernel, point.workload, point.full, metric))
        return merged(found) if found else None

    def voids(self, kernels: Sequence[str], blocks: int, expected: Sequence[Point]) -> tuple[VoidTrials, ...]:
        """Return the trials that were void, failed, or planned and never ended, with how often and why.

        A trial of ``expected`` is missing if one of ``kernels`` did not end it in a block below ``blocks``.
        """
        counts = Counter(self._voids)
        for kernel in kernels:
            for block in range(blocks):
                why, ended = self._ended.get((kernel, block), ("not booted", set()))
                for point in expected:
                    if (point.workload, point.full) not in ended:
                        counts[kernel, point.workload, point.full, "missing", why] += 1
        shown = {(point.workload, point.full): point.shown for point in expected}
        order = {
            (kernel, *place): n for n, (kernel, place) in enumerate((k, p) for k in kernels for p in shown)
        }
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


def compared(experiment: Experiment, workloads: Mapping[str, Workload]) -> list[tuple[str, str, Metric]]:
    """Return workload, metric and its description for every metric that is judged, headline metrics first."""
    result: list[tuple[str, str, Metric]] = []
    for name in dict.fromkeys(sweep.workload for sweep in experiment.workloads):
        metrics = [(metric, spec) for metric, spec in workloads[name].metrics.items() if spec.compare]
        metrics.sort(key=lambda item: not item[1].headline)
        result += [(name, metric, spec) for metric, spec in metrics]
    return result


def headlines(experiment: Experiment, workloads: Mapping[str, Workload]) -> list[tuple[str, str, Metric]]:
    """Return those of ``compared`` that are headline metrics: all of a workload that marks none."""
    return [
        (name, metric, spec)
        for name, metric, spec in compared(experiment, workloads)
        if spec.headline or not any(other.headline for other in workloads[name].metrics.values())
    ]
