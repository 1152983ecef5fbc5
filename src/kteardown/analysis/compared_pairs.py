"""The pairs that are compared: each variant with base, by metric, statistic and point, without verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kteardown.analysis.dataset import Dataset, compared
from kteardown.analysis.estimate.bootstrap import Boots, Resampler
from kteardown.analysis.estimate.over_nodes import log_ratios, over_nodes
from kteardown.analysis.estimate.verdict import MEDIAN, Estimate, Rules, SupportingResults, estimate, paired
from kteardown.model.clock import Clock
from kteardown.model.experiment import Experiment
from kteardown.model.point import Key, Point
from kteardown.model.record import BASE, LAYOUT, TWIN
from kteardown.model.workload import Metric, Workload


@dataclass(frozen=True)
class Data:
    """The input of all comparisons.

    ``moved`` has the boots of the layout twin, and those of base in the same blocks; the other boots are in
    ``collected``.
    """

    experiment: Experiment
    workloads: Mapping[str, Workload]
    collected: Dataset
    moved: Dataset
    expected: Sequence[Point]
    variants: Sequence[str]
    asked_for: Sequence[str]
    """The variants that were requested, without the kernels that were built only for an ablation."""
    rules: Rules
    resampler: Resampler
    nodes: Mapping[int, str] = field(default_factory=dict)
    """On the nodes of a cluster and the wall clock, the node of each block."""

    @property
    def clock(self) -> Clock:
        """Return the clock of the design."""
        return self.experiment.design.clock


@dataclass(frozen=True)
class Quantity:
    """A compared quantity at a point: a metric, and the quantile that is taken inside each boot."""

    point: Point
    metric: str
    spec: Metric
    quantile: float

    @property
    def statistic(self) -> str:
        return "median" if self.quantile == MEDIAN else f"p{self.quantile * 100:.6g}"

    def of(self, kernel: str) -> tuple[str, str, Key, str, float]:
        """Return the key of this quantity of one kernel."""
        return (kernel, self.point.workload, self.point.full, self.metric, self.quantile)


@dataclass(frozen=True)
class Pair:
    """One comparison before its verdict."""

    figure: Quantity
    variant: str
    base: Boots
    changed: Boots
    found: Estimate
    supporting: SupportingResults

    @property
    def figures(self) -> tuple[dict[int, float], dict[int, float]]:
        """Return the values of base and changed, by block."""
        return self.base.quantiles(self.figure.quantile), self.changed.quantiles(self.figure.quantile)


def figures_of(data: Data) -> list[Quantity]:
    """Return every compared quantity, headline metrics first."""
    return [
        Quantity(point, metric, spec, quantile)
        for name, metric, spec in compared(data.experiment, data.workloads)
        for quantile in (MEDIAN, *(percent / 100 for percent in spec.percentiles if percent != 50))
        for point in data.expected
        if point.workload == name
    ]


def pairs_of(data: Data, figure: Quantity) -> list[Pair]:
    """Return every variant that has samples, compared with base, and the results of the twins."""

    def compared_with(base: Boots, changed: Boots) -> Estimate:
        return estimate(base, changed, data.clock, data.rules, data.resampler, quantile=figure.quantile)

    def boots(kernel: str, collected: Dataset = data.collected) -> Boots | None:
        return collected.boots(kernel, figure.point, figure.metric)

    base = boots(BASE)
    if base is None:
        return []
    twin, not_moved, moved = boots(TWIN), boots(BASE, data.moved), boots(LAYOUT, data.moved)
    supporting = SupportingResults(
        twin=compared_with(base, twin) if twin else None,
        layout=compared_with(not_moved, moved) if not_moved and moved else None,
    )
    pairs = []
    for variant in data.variants:
        changed = boots(variant)
        if changed is not None:
            before, after = paired(base, changed)
            found = compared_with(before, after)
            if data.nodes and found.ci is not None:
                logs = log_ratios(before.quantiles(figure.quantile), after.quantiles(figure.quantile))
                found = over_nodes(found, logs, data.nodes, data.rules)
            pairs.append(Pair(figure, variant, before, after, found, supporting))
    return pairs
