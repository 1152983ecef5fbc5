"""Records sorted into what statistics compare: samples by kernel, point, metric and block."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kteardown.analysis.estimate.bootstrap import Boots
from kteardown.analysis.estimate.histogram import Histogram, merged
from kteardown.inputs.load import points
from kteardown.model.experiment import Experiment
from kteardown.model.record import Buckets, Check, Hello, ParamValue, Sample, TrialEnd, TrialStart
from kteardown.model.result import VoidTrials
from kteardown.model.workload import Metric, Workload
from kteardown.rundir.directory import BootRecords

Key = tuple[tuple[str, ParamValue], ...]
"""All parameters of a point, sorted by name."""
_ENDED_WELL = "it did not end"
"""Said of a trial that is missing from a boot that ended well."""
_Void = tuple[str, str, Key, str, str]


@dataclass(frozen=True)
class Point:
    """A parameter point: ``full`` names every parameter, ``shown`` those that the experiment chose."""

    workload: str
    full: Key
    shown: dict[str, ParamValue]


@dataclass
class _Trial:
    """One trial as its lines arrive."""

    workload: str
    full: Key
    samples: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    histograms: dict[str, list[Histogram]] = field(default_factory=lambda: defaultdict(list))
    failed_check: str = ""

    def take(self, record: Sample | Buckets | Check) -> None:
        """What was measured; not what was while it warmed up."""
        if isinstance(record, Check):
            if not record.ok:
                self.failed_check = f"{record.name}: {record.detail}"
        elif not record.warmup:
            if isinstance(record, Sample):
                self.samples[record.metric].append(record.value)
            else:
                self.histograms[record.metric].append(Histogram(record.bits, dict(record.buckets)))


class Collected:
    """Every usable sample of a run, and what is not usable.

    Usable are the measured (not the warm-up) samples of trials that ended ok with no failed check, also
    where their boot failed later. Nothing else is left out; an outlier is a sample.
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
            self._boot(boot)

    def boots(self, kernel: str, point: Point, metric: str) -> Boots | None:
        """The samples of one metric of one kernel at one point; None where there are none."""
        place = (kernel, point.workload, point.full, metric)
        if place in self._samples and place not in self._boots:
            self._boots[place] = Boots(self._samples[place])
        return self._boots.get(place)

    def histogram(self, kernel: str, point: Point, metric: str) -> Histogram | None:
        """All values of one metric of one kernel at one point, of all its boots; None without any."""
        found = self._histograms.get((kernel, point.workload, point.full, metric))
        return merged(found) if found else None

    def voids(self, kernels: Sequence[str], blocks: int, expected: Sequence[Point]) -> tuple[VoidTrials, ...]:
        """Trials that were void, failed, or planned and never ended, with how often and why."""
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

    def _boot(self, boot: BootRecords) -> None:
        kernel, block = boot.start.kernel, boot.start.block
        outcome = boot.end.outcome
        # With several machines a block has a boot of this kernel on each, and each has points of its own.
        before, ended = self._ended.get((kernel, block), (_ENDED_WELL, set()))
        why = before if outcome == "ok" else f"boot: {outcome}"
        self._ended[kernel, block] = (why, ended)
        trials: dict[int, _Trial] = {}
        for record in boot.records:
            if isinstance(record, Sample | Buckets | Check):
                if record.trial in trials:
                    trials[record.trial].take(record)
            elif isinstance(record, TrialStart):
                trials[record.trial] = _Trial(record.workload, key(record.params))
            elif isinstance(record, TrialEnd):
                trial = trials.pop(record.trial, None)
                if trial is not None:
                    ended.add((trial.workload, trial.full))
                    self._trial(kernel, block, trial, record)
            elif isinstance(record, Hello):
                self.releases.setdefault(kernel, record.release)

    def _trial(self, kernel: str, block: int, trial: _Trial, end: TrialEnd) -> None:
        if end.status != "ok" or trial.failed_check:
            status = "failed" if end.status == "failed" else "void"
            detail = end.detail or trial.failed_check
            self._voids[kernel, trial.workload, trial.full, status, detail] += 1
            return
        for metric, values in trial.samples.items():
            self.metrics.add((trial.workload, metric))
            place = self._samples.setdefault((kernel, trial.workload, trial.full, metric), {})
            place.setdefault(block, []).extend(values)
        for metric, found in trial.histograms.items():
            self._histograms.setdefault((kernel, trial.workload, trial.full, metric), []).extend(found)


def key(params: Mapping[str, ParamValue]) -> Key:
    """Parameters as something that can be looked up."""
    return tuple(sorted(params.items()))


def expected_points(experiment: Experiment, workloads: Mapping[str, Workload]) -> list[Point]:
    """Every point of the experiment, in the order of its sweeps and their values."""
    result: list[Point] = []
    for sweep in experiment.workloads:
        workload = workloads[sweep.workload]
        chosen = {*experiment.machine.swept, *sweep.params, workload.law}
        for machine in experiment.machine.points():
            for params in points(sweep, workload):
                full = {**machine, **params}
                shown = {name: value for name, value in full.items() if name in chosen}
                result.append(Point(sweep.workload, key(full), shown))
    return result


def compared(experiment: Experiment, workloads: Mapping[str, Workload]) -> list[tuple[str, str, Metric]]:
    """Every workload's metrics that are judged, headline metrics first."""
    result: list[tuple[str, str, Metric]] = []
    for name in dict.fromkeys(sweep.workload for sweep in experiment.workloads):
        metrics = [(metric, spec) for metric, spec in workloads[name].metrics.items() if spec.compare]
        metrics.sort(key=lambda item: not item[1].headline)
        result += [(name, metric, spec) for metric, spec in metrics]
    return result


def headlines(experiment: Experiment, workloads: Mapping[str, Workload]) -> list[tuple[str, str, Metric]]:
    """Those of them that are headline metrics; a workload that marks none has all of them so."""
    return [
        (name, metric, spec)
        for name, metric, spec in compared(experiment, workloads)
        if spec.headline or not any(other.headline for other in workloads[name].metrics.values())
    ]
