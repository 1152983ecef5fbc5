"""The comparisons of a result: each variant with base, by metric, statistic and point."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kteardown.analysis.compared_pairs import Data, Pair, Quantity, figures_of, pairs_of
from kteardown.analysis.estimate.outliers import find_outliers
from kteardown.analysis.estimate.rank_test import rank_tests
from kteardown.analysis.estimate.rounding import tidy, tidy_pair
from kteardown.analysis.estimate.verdict import Rules, holm, judge, summary
from kteardown.analysis.faults import as_broken, metrics_as_broken
from kteardown.analysis.growth.slope_ratio import SlopeRatio
from kteardown.analysis.metric_verdicts import corrected, metric_tests, metric_verdict
from kteardown.model.point import Key
from kteardown.model.record import BASE, TWIN
from kteardown.model.result import Comparison, Fault, MetricVerdict, Outlier, Verdict


@dataclass(frozen=True)
class JudgedComparisons:
    """Everything that is compared, with its verdict: headline metrics first.

    ``figures`` has the log ratios of each metric verdict, by block. ``slopes`` has the verdict, the reason
    and the corrected p-value of every slope ratio, in its order.
    """

    comparisons: tuple[Comparison, ...]
    metric_verdicts: tuple[MetricVerdict, ...]
    figures: tuple[Mapping[int, float], ...]
    outliers: tuple[Outlier, ...]
    slopes: tuple[tuple[Verdict, str], ...]


def compare_all(data: Data, slopes: Sequence[SlopeRatio], failed: Sequence[Fault]) -> JudgedComparisons:
    """Return the verdicts of metrics and of their points, and the outlier boots.

    Headline metrics of the requested variants, with their points and growth laws, are corrected by
    ``estimate.gatekeeping``. All other comparisons (other metrics, and the kernels of an ablation) have
    Holm's correction over themselves, so that their number does not weaken the headline metrics. What is
    broken by ``failed`` has that verdict.
    """
    figures = figures_of(data)
    pairs = [pair for figure in figures for pair in pairs_of(data, figure)]
    if data.clock == "wall":
        ranks = rank_tests([pair.figures for pair in pairs])
        pairs = [
            replace(pair, supporting=replace(pair.supporting, rank=rank))
            for pair, rank in zip(pairs, ranks, strict=True)
        ]
    outliers_of = _outliers(data, figures)
    tests = metric_tests(data, pairs, slopes)
    adjusted = corrected(tests, pairs, slopes)
    others = [n for n in range(len(pairs)) if n not in adjusted.pairs]
    of_others = dict(zip(others, holm([pairs[n].found.p for n in others]), strict=True))
    ps = {**adjusted.pairs, **of_others}
    comparisons = [_comparison(pair, ps[n], outliers_of, data.rules) for n, pair in enumerate(pairs)]
    metrics = [
        metric_verdict(data, test, p, [comparisons[n] for n in test.numbers])
        for test, p in zip(tests, adjusted.metrics, strict=True)
    ]
    return JudgedComparisons(
        comparisons=as_broken(comparisons, failed),
        metric_verdicts=metrics_as_broken(metrics, failed),
        figures=tuple(test.over.figures for test in tests),
        outliers=tuple(outlier for outliers in outliers_of.values() for outlier in outliers),
        slopes=tuple(
            judge(law.found, law.supporting, adjusted.laws.get(n), law.better, data.rules)
            for n, law in enumerate(slopes)
        ),
    )


_Outliers = Mapping[tuple[str, str, Key, str, float], tuple[Outlier, ...]]


def _outliers(data: Data, figures: Sequence[Quantity]) -> _Outliers:
    """Return the outlier boots by kernel and quantity, only where there are any."""
    groups = {}
    for figure in figures:
        for kernel in (BASE, TWIN, *data.variants):
            boots = data.collected.boots(kernel, figure.point, figure.metric)
            if boots is not None:
                groups[figure.of(kernel)] = figure, boots.quantiles(figure.quantile)
    found = find_outliers([values for _, values in groups.values()], data.rules.same_within)
    return {
        name: tuple(
            Outlier(
                kernel=name[0],
                workload=figure.point.workload,
                metric=figure.metric,
                statistic=figure.statistic,
                point=figure.point.shown,
                block=boot.block,
                value=boot.value,
                median=boot.median,
                ranges=tidy(boot.ranges),
            )
            for boot in outliers
        )
        for (name, (figure, _)), outliers in zip(groups.items(), found, strict=True)
        if outliers
    }


def _comparison(pair: Pair, p_adjusted: float | None, outliers_of: _Outliers, rules: Rules) -> Comparison:
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
        outliers=sum(
            outlier.block in boots.samples
            for kernel, boots in ((BASE, pair.base), (pair.variant, pair.changed))
            for outlier in outliers_of.get(figure.of(kernel), ())
        ),
        same_within=rules.same_within,
    )
