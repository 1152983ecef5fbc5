"""Every comparison of a report: each variant against base, by metric, statistic and point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kteardown.analysis.dataset import Dataset, compared
from kteardown.analysis.estimate.bootstrap import Boots, Resampler
from kteardown.analysis.estimate.outliers import FarOut, far_out
from kteardown.analysis.estimate.rank_test import rank_tests
from kteardown.analysis.estimate.rounding import tidy, tidy_pair
from kteardown.analysis.estimate.verdict import (
    MEDIAN,
    Beside,
    Estimate,
    Rules,
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
    """All that comparisons are made of. ``moved`` has the boots of the layout twin and, of base, those
    in the same blocks; the others are in ``collected``."""

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
        """The design's."""
        return self.experiment.design.clock


@dataclass(frozen=True)
class _Figure:
    """What is compared at a point: a metric, and what is taken of it inside each boot."""

    point: Point
    metric: str
    spec: Metric
    quantile: float

    @property
    def statistic(self) -> str:
        return "median" if self.quantile == MEDIAN else f"p{self.quantile * 100:.6g}"

    def of(self, kernel: str) -> tuple[str, str, Key, str, float]:
        """What names the figure of one kernel."""
        return (kernel, self.point.workload, self.point.full, self.metric, self.quantile)


@dataclass(frozen=True)
class _Pair:
    """One comparison before its verdict."""

    figure: _Figure
    variant: str
    base: Boots
    changed: Boots
    found: Estimate
    beside: Beside

    @property
    def figures(self) -> tuple[dict[int, float], dict[int, float]]:
        """Base's and changed's, by block."""
        return self.base.quantiles(self.figure.quantile), self.changed.quantiles(self.figure.quantile)


def compare_all(data: Data) -> tuple[tuple[Comparison, ...], tuple[Outlier, ...]]:
    """The comparisons, headline metrics first, and the boots that lie far from the others.

    Holm's correction is over all of them, percentiles and lesser metrics too: each prints a verdict.
    """
    figures = _figures(data)
    pairs = [pair for figure in figures for pair in _pairs(data, figure)]
    if data.clock == "wall":
        tests = rank_tests([pair.figures for pair in pairs])
        pairs = [
            replace(pair, beside=replace(pair.beside, rank=test))
            for pair, test in zip(pairs, tests, strict=True)
        ]
    far = _far(data, figures)
    adjusted = holm([pair.found.p for pair in pairs])
    comparisons = tuple(
        _comparison(pair, p, _count(pair, far), data.rules) for pair, p in zip(pairs, adjusted, strict=True)
    )
    return comparisons, tuple(_outliers(figures, far, [BASE, TWIN, *data.variants]))


def _figures(data: Data) -> list[_Figure]:
    return [
        _Figure(point, metric, spec, quantile)
        for name, metric, spec in compared(data.experiment, data.workloads)
        for quantile in (MEDIAN, *(percent / 100 for percent in spec.percentiles if percent != 50))
        for point in data.expected
        if point.workload == name
    ]


def _pairs(data: Data, figure: _Figure) -> list[_Pair]:
    """Every variant that has samples against base, each with what the twins show."""

    def against(base: Boots, changed: Boots) -> Estimate:
        return estimate(base, changed, data.clock, data.rules, data.resampler, quantile=figure.quantile)

    def boots(kernel: str, collected: Dataset = data.collected) -> Boots | None:
        return collected.boots(kernel, figure.point, figure.metric)

    base = boots(BASE)
    if base is None:
        return []
    twin, still, moved = boots(TWIN), boots(BASE, data.moved), boots(LAYOUT, data.moved)
    beside = Beside(
        twin=against(base, twin) if twin else None,
        layout=against(still, moved) if still and moved else None,
    )
    pairs = []
    for variant in data.variants:
        changed = boots(variant)
        if changed is not None:
            before, after = paired(base, changed)
            pairs.append(_Pair(figure, variant, before, after, against(before, after), beside))
    return pairs


_Far = Mapping[tuple[str, str, Key, str, float], tuple[FarOut, ...]]


def _far(data: Data, figures: Sequence[_Figure]) -> _Far:
    """The boots far out, by kernel and figure; only where there are any."""
    groups = {}
    for figure in figures:
        for kernel in (BASE, TWIN, *data.variants):
            boots = data.collected.boots(kernel, figure.point, figure.metric)
            if boots is not None:
                groups[figure.of(kernel)] = boots.quantiles(figure.quantile)
    found = far_out(list(groups.values()), data.rules.same_within)
    return {name: boots for name, boots in zip(groups, found, strict=True) if boots}


def _count(pair: _Pair, far: _Far) -> int:
    sides = ((BASE, pair.base), (pair.variant, pair.changed))
    return sum(
        boot.block in boots.samples for kernel, boots in sides for boot in far.get(pair.figure.of(kernel), ())
    )


def _outliers(figures: Sequence[_Figure], far: _Far, kernels: Sequence[str]) -> list[Outlier]:
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
        for boot in far.get(figure.of(kernel), ())
    ]


def _comparison(pair: _Pair, p_adjusted: float | None, outliers: int, rules: Rules) -> Comparison:
    figure, found, beside = pair.figure, pair.found, pair.beside
    verdict, reason = judge(found, beside, p_adjusted, figure.spec.better, rules)
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
        null_ci=tidy_pair(beside.twin.ci) if beside.twin else None,
        p=tidy(found.p),
        reason=reason,
        statistic=figure.statistic,
        layout_ci=tidy_pair(beside.layout.ci) if beside.layout else None,
        p_holm=tidy(p_adjusted),
        p_rank=tidy(beside.rank.p) if beside.rank else None,
        p_same=tidy(found.p_same),
        outliers=outliers,
        same_within=rules.same_within,
    )
