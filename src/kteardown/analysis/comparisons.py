"""The comparisons of a result: each variant with base, by metric, statistic and point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kteardown.analysis.dataset import Dataset, compared
from kteardown.analysis.estimate.bootstrap import Boots, Resampler
from kteardown.analysis.estimate.outliers import OutlierBoot, find_outliers
from kteardown.analysis.estimate.rank_test import rank_tests
from kteardown.analysis.estimate.rounding import tidy, tidy_pair
from kteardown.analysis.estimate.verdict import (
    MEDIAN,
    Estimate,
    Rules,
    SupportingResults,
    estimate,
    holm,
    judge,
    paired,
    summary,
)
from kteardown.model.experiment import Clock, Experiment
from kteardown.model.point import Key, Point
from kteardown.model.record import BASE, LAYOUT, TWIN
from kteardown.model.result import Comparison, Outlier
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
    rules: Rules
    resampler: Resampler

    @property
    def clock(self) -> Clock:
        """Return the clock of the design."""
        return self.experiment.design.clock


@dataclass(frozen=True)
class _Quantity:
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
class _Pair:
    """One comparison before its verdict."""

    figure: _Quantity
    variant: str
    base: Boots
    changed: Boots
    found: Estimate
    supporting: SupportingResults

    @property
    def figures(self) -> tuple[dict[int, float], dict[int, float]]:
        """Return the values of base and changed, by block."""
        return self.base.quantiles(self.figure.quantile), self.changed.quantiles(self.figure.quantile)


def compare_all(data: Data) -> tuple[tuple[Comparison, ...], tuple[Outlier, ...]]:
    """Return the comparisons, of each workload headline metrics first, and the outlier boots.

    Holm's correction is over all comparisons, including percentiles and metrics outside the main tables,
    because each of them has a verdict.
    """
    figures = _figures(data)
    pairs = [pair for figure in figures for pair in _pairs(data, figure)]
    if data.clock == "wall":
        tests = rank_tests([pair.figures for pair in pairs])
        pairs = [
            replace(pair, supporting=replace(pair.supporting, rank=test))
            for pair, test in zip(pairs, tests, strict=True)
        ]
    outliers_of = _outlier_boots(data, figures)
    adjusted = holm([pair.found.p for pair in pairs])
    comparisons = tuple(
        _comparison(pair, p, _count(pair, outliers_of), data.rules)
        for pair, p in zip(pairs, adjusted, strict=True)
    )
    return comparisons, tuple(_outlier_results(figures, outliers_of, [BASE, TWIN, *data.variants]))


def _figures(data: Data) -> list[_Quantity]:
    return [
        _Quantity(point, metric, spec, quantile)
        for name, metric, spec in compared(data.experiment, data.workloads)
        for quantile in (MEDIAN, *(percent / 100 for percent in spec.percentiles if percent != 50))
        for point in data.expected
        if point.workload == name
    ]


def _pairs(data: Data, figure: _Quantity) -> list[_Pair]:
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
            pairs.append(_Pair(figure, variant, before, after, compared_with(before, after), supporting))
    return pairs


_Outliers = Mapping[tuple[str, str, Key, str, float], tuple[OutlierBoot, ...]]


def _outlier_boots(data: Data, figures: Sequence[_Quantity]) -> _Outliers:
    """Return the outlier boots by kernel and quantity, only where there are any."""
    groups = {}
    for figure in figures:
        for kernel in (BASE, TWIN, *data.variants):
            boots = data.collected.boots(kernel, figure.point, figure.metric)
            if boots is not None:
                groups[figure.of(kernel)] = boots.quantiles(figure.quantile)
    found = find_outliers(list(groups.values()), data.rules.same_within)
    return {name: boots for name, boots in zip(groups, found, strict=True) if boots}


def _count(pair: _Pair, outliers_of: _Outliers) -> int:
    sides = ((BASE, pair.base), (pair.variant, pair.changed))
    return sum(
        boot.block in boots.samples
        for kernel, boots in sides
        for boot in outliers_of.get(pair.figure.of(kernel), ())
    )


def _outlier_results(
    figures: Sequence[_Quantity], outliers_of: _Outliers, kernels: Sequence[str]
) -> list[Outlier]:
    return [
        Outlier(
            kernel=kernel,
            workload=figure.point.workload,
            metric=figure.metric,
            statistic=figure.statistic,
            point=figure.point.shown,
            block=boot.block,
            value=boot.value,
            median=boot.median,
            ranges=tidy(boot.ranges),
        )
        for figure in figures
        for kernel in kernels
        for boot in outliers_of.get(figure.of(kernel), ())
    ]


def _comparison(pair: _Pair, p_adjusted: float | None, outliers: int, rules: Rules) -> Comparison:
    figure, found, supporting = pair.figure, pair.found, pair.supporting
    verdict, reason = judge(found, supporting, p_adjusted, figure.spec.better, rules)
    return Comparison(
        workload=figure.point.workload,
        variant=pair.variant,
        metric=figure.metric,
        unit=figure.spec.unit,
        better=figure.spec.better,
        point=figure.point.shown,
        base=summary(pair.base, figure.quantile),
        changed=summary(pair.changed, figure.quantile),
        ratio=tidy(found.ratio),
        ci=tidy_pair(found.ci),
        confidence=rules.confidence,
        mde=tidy(found.mde),
        verdict=verdict,
        exact=found.exact,
        null_ci=tidy_pair(supporting.twin.ci) if supporting.twin else None,
        p=tidy(found.p),
        reason=reason,
        statistic=figure.statistic,
        layout_ci=tidy_pair(supporting.layout.ci) if supporting.layout else None,
        p_holm=tidy(p_adjusted),
        p_rank=tidy(supporting.rank.p) if supporting.rank else None,
        p_same=tidy(found.p_same),
        outliers=outliers,
        same_within=rules.same_within,
    )
