"""The comparisons of a result: each variant with base, by metric, statistic and point, and over all
points.

Every statistic of a headline metric of a requested variant is a family of ``estimate.gatekeeping``:
the test over all points, the tests of the points, and those of the growth laws. The effect of each
patch of a series has shares of that of the whole (``ablations``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kteardown.analysis.dataset import Data, Dataset, compared, headlines
from kteardown.analysis.estimate.gatekeeping import Family, adjust
from kteardown.analysis.estimate.student import (
    OverPoints,
    PointBoots,
    estimate_over_points,
    over_nodes,
)
from kteardown.analysis.estimate.verdict import (
    MEDIAN,
    Estimate,
    Rules,
    SupportingResults,
    explained_by_twin,
    holm,
    judge,
    rank_tests,
    summary,
)
from kteardown.analysis.faults import as_broken
from kteardown.analysis.growth.laws import SlopeRatio
from kteardown.analysis.outliers import Outliers, outliers
from kteardown.analysis.pairs import Pair, Quantity, pairs_of
from kteardown.analysis.self_timed import OwnSavings, SeenOutside, saying
from kteardown.analysis.transfers import TRANSFER, agreed, confirmed
from kteardown.model.faults import Fault
from kteardown.model.judged import Comparison, MetricVerdict, Outside, Verdict, tidy, tidy_pair
from kteardown.model.point import weight_of
from kteardown.model.record import BASE, LAYOUT, TWIN
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Outlier

_OPPOSITE = "the changes at its points are opposite"
_HIDDEN = "the mean is the same, single points are not"


@dataclass(frozen=True, eq=False)
class MetricTest:
    """One headline metric of a variant before its verdict: its points, and its growth laws."""

    pairs: Sequence[Pair]
    laws: Sequence[SlopeRatio]
    planned: int
    over: OverPoints
    supporting: SupportingResults

    @property
    def single(self) -> bool:
        return len(self.pairs) == 1

    @property
    def members(self) -> list[Pair | SlopeRatio]:
        """Return what is tested after the metric itself."""
        return [*(() if self.single else self.pairs), *self.laws]


def _metric_tests(
    data: Data, pairs: Sequence[Pair], slopes: Sequence[SlopeRatio]
) -> list[MetricTest]:
    """Return a test for every headline metric, statistic and requested variant that has data."""
    headline = {
        (workload, metric) for workload, metric, _ in headlines(data.experiment, data.workloads)
    }
    groups: dict[tuple[str, str, str, str], list[Pair]] = {}
    for pair in pairs:
        figure = pair.figure
        if (figure.point.workload, figure.metric) in headline and pair.variant in data.asked_for:
            name = (figure.point.workload, figure.metric, figure.statistic, pair.variant)
            groups.setdefault(name, []).append(pair)
    return [
        _test(
            data,
            of_metric,
            [s for s in slopes if (s.workload, s.metric, "median", s.variant) == name],
        )
        for name, of_metric in groups.items()
    ]


def _corrected(tests: Sequence[MetricTest]) -> dict[MetricTest | Pair | SlopeRatio, float | None]:
    """Return the p-values after the correction over headline metrics and variants, and of their
    points."""
    families = [
        Family(t.over.estimate.p, tuple(member.estimate.p for member in t.members)) for t in tests
    ]
    result: dict[MetricTest | Pair | SlopeRatio, float | None] = {}
    for test, family in zip(tests, adjust(families), strict=True):
        result[test] = family.metric
        result.update(zip(test.members, family.points, strict=True))
        if test.single:
            result[test.pairs[0]] = family.metric
    return result


def _metric_verdict(
    data: Data,
    test: MetricTest,
    p_corrected: float | None,
    points: Sequence[Comparison],
    finding: SeenOutside | None,
) -> MetricVerdict:
    """Return the verdict of a metric; ``points`` are the comparisons at its points."""
    first = test.pairs[0]
    estimate = test.over.estimate
    rules = data.rules
    p_mixed = None if test.single else _p_mixed(test, points, 1 - rules.confidence)
    if test.single:
        verdict = points[0].verdict
        reason = points[0].reason
        outside = points[0].outside
    else:
        judged = judge(estimate, test.supporting, p_corrected, first.figure.spec.better, rules)
        verdict, reason, outside = _seen_outside(*judged, finding)
    if outside == "contradicts":
        reason = saying(reason, estimate.ratio)
    if not test.single:
        verdict, reason = _with_points(verdict, reason, points, p_mixed, 1 - rules.confidence)
    if data.clock == "contention":
        verdict, reason = confirmed(verdict, reason, _by_transfer(data, test))
    return MetricVerdict(
        **_judged(first.figure, first.variant, estimate, test.supporting, rules),
        verdict=verdict,
        reason=reason,
        outside=outside,
        points=len(test.over.used),
        planned=test.planned,
        boots=test.over.boots,
        p_corrected=tidy(p_corrected),
        p_mixed=tidy(p_mixed),
        spread=tidy(test.over.spread),
        point_spread=tidy(test.over.point_spread),
    )


def _seen_outside(
    verdict: Verdict, reason: str, finding: SeenOutside | None
) -> tuple[Verdict, str, Outside | None]:
    """Return the verdict and its reason after a look from outside at a figure that is better."""
    if verdict != "better" or finding is None:
        return verdict, reason, None
    if finding.outside == "contradicts":
        return "inconclusive", finding.why, finding.outside
    return verdict, reason, finding.outside


def _judged(
    figure: Quantity, variant: str, estimate: Estimate, supporting: SupportingResults, rules: Rules
) -> dict[str, Any]:
    """Return the fields that a comparison and the verdict of a metric have in common, but the
    verdict."""
    return {
        "workload": figure.point.workload,
        "variant": variant,
        "metric": figure.metric,
        "unit": figure.spec.unit,
        "better": figure.spec.better,
        "statistic": figure.statistic,
        "ratio": tidy(estimate.ratio),
        "ci": tidy_pair(estimate.ci),
        "confidence": rules.confidence,
        "mde": tidy(estimate.mde),
        "exact": estimate.exact,
        "null_ci": tidy_pair(supporting.twin.ci) if supporting.twin else None,
        "layout_ci": tidy_pair(supporting.layout.ci) if supporting.layout else None,
        "p": tidy(estimate.p),
        "p_same": tidy(estimate.p_same),
        "same_within": rules.same_within,
    }


def _test(data: Data, pairs: Sequence[Pair], laws: Sequence[SlopeRatio]) -> MetricTest:
    first = pairs[0]
    sweep = next(s for s in data.experiment.workloads if s.workload == first.figure.point.workload)

    def compared(sides: Sequence[PointBoots]) -> OverPoints:
        return estimate_over_points(
            sides, data.clock, data.rules, data.resampler, quantile=first.figure.quantile
        )

    weights = [weight_of(sweep, pair.figure.point) for pair in pairs]
    over = compared([PointBoots(p.base, p.changed, w) for p, w in zip(pairs, weights, strict=True)])

    def twin(kernel: str, collected: Dataset) -> Estimate | None:
        sides = []
        for n in over.used:
            figure = pairs[n].figure
            base, twin_boots = (
                collected.boots(name, figure.point, figure.metric) for name in (BASE, kernel)
            )
            if base is not None and twin_boots is not None:
                sides.append(PointBoots(base, twin_boots, weights[n]))
        return compared(sides).estimate if sides else None

    if len(pairs) == 1:
        over = replace(over, estimate=first.estimate)
        supporting = first.supporting
    else:
        over = replace(
            over, estimate=over_nodes(over.estimate, over.figures, data.nodes, data.rules)
        )
        supporting = SupportingResults(
            twin(TWIN, data.collected),
            twin(LAYOUT, data.moved),
            coarse=all(pair.supporting.coarse for pair in pairs),
        )
    return MetricTest(pairs, laws, _planned(data, first), over, supporting)


def _planned(data: Data, pair: Pair) -> int:
    """Return at how many points the metric is to be compared."""
    # A point is not one of them if both kernels recorded other metrics there, and neither this one.
    figure = pair.figure
    sides = (BASE, pair.variant)
    collected = data.collected
    return sum(
        any(collected.boots(name, point, figure.metric) for name in sides)
        or not all(collected.measured(name, point) for name in sides)
        for point in data.expected
        if point.workload == figure.point.workload
    )


def _p_mixed(test: MetricTest, points: Sequence[Comparison], alpha: float) -> float | None:
    """Return the p-value of no opposite changes: no point higher, or no point lower (Gail, Simon
    1985)."""
    # Both are tested by the most extreme point, with Bonferroni's correction over the points, as in
    # the range test of S. Piantadosi and M. Gail (Statistics in Medicine 12, 1993). As both must be
    # rejected, neither needs a further correction (R. Berger, Technometrics 24, 1982). Points whose
    # change is inside the margin or within that of a twin are no evidence.
    higher: list[float] = []
    lower: list[float] = []
    for pair, point in zip(test.pairs, points, strict=True):
        p = pair.estimate.p
        none = point.verdict == "same" or point.outside == "contradicts"
        if p is None or none or explained_by_twin(pair.estimate, pair.supporting, alpha):
            continue
        (higher if pair.estimate.higher else lower).append(p / 2)
    if not higher or not lower:
        return 1.0
    return min(1.0, len(test.pairs) * max(min(higher), min(lower)))


def _with_points(
    verdict: Verdict, reason: str, points: Sequence[Comparison], p_mixed: float | None, alpha: float
) -> tuple[Verdict, str]:
    """Return the verdict after a look at the points: ``mixed`` if the mean would hide what they
    show."""
    called = {point.verdict for point in points} & {"better", "worse"}
    claimed = verdict in ("better", "worse")
    if len(called) == 2 or (
        claimed and (called - {verdict} or (p_mixed is not None and p_mixed < alpha))
    ):
        return "mixed", _OPPOSITE
    if verdict == "same" and called:
        return "mixed", _HIDDEN
    return verdict, reason


@dataclass(frozen=True)
class JudgedComparisons:
    """Everything that is compared, with its verdict: headline metrics first.

    ``figures`` has the log ratios of each metric verdict, by block. ``slopes`` has the verdict of
    every slope ratio, in its order, with the reason and what is seen outside.
    """

    comparisons: tuple[Comparison, ...]
    metric_verdicts: tuple[MetricVerdict, ...]
    figures: tuple[Mapping[int, float], ...]
    outliers: tuple[Outlier, ...]
    slopes: tuple[tuple[Verdict, str, Outside | None], ...]


def compare_all(
    data: Data, slopes: Sequence[SlopeRatio], failed: Sequence[Fault]
) -> JudgedComparisons:
    """Return the verdicts of metrics and of their points, and the outlier boots.

    Headline metrics of the requested variants, with their points and growth laws, are corrected by
    ``estimate.gatekeeping``. All other comparisons (other metrics, and the kernels of an ablation)
    have Holm's correction over themselves, so that their number does not weaken the headline
    metrics. What is broken by ``failed`` has that verdict.
    """
    figures = _quantities(data)
    pairs = [pair for figure in figures for pair in pairs_of(data, figure)]
    if data.clock == "wall":
        sides = [
            (p.base.quantiles(p.figure.quantile), p.changed.quantiles(p.figure.quantile))
            for p in pairs
        ]
        ranks = rank_tests(sides)
        pairs = [
            replace(pair, supporting=replace(pair.supporting, rank=rank))
            for pair, rank in zip(pairs, ranks, strict=True)
        ]
    outliers_of = outliers(data, figures)
    tests = _metric_tests(data, pairs, slopes)
    ps = _corrected(tests)
    other_pairs = [pair for pair in pairs if pair not in ps]
    ps.update(zip(other_pairs, holm([pair.estimate.p for pair in other_pairs]), strict=True))
    savings = OwnSavings(pairs, data)
    comparisons = {
        pair: _comparison(pair, ps[pair], outliers_of, data.rules, savings.at(pair))
        for pair in pairs
    }
    if data.clock == "contention":
        comparisons = dict(zip(pairs, agreed([*comparisons.values()]), strict=True))
    metrics = [
        _metric_verdict(
            data,
            test,
            ps[test],
            [comparisons[pair] for pair in test.pairs],
            savings.over(test.pairs),
        )
        for test in tests
    ]
    family = {law: test for test in tests for law in test.laws}
    return JudgedComparisons(
        comparisons=as_broken([*comparisons.values()], failed),
        metric_verdicts=as_broken(metrics, failed),
        figures=tuple(test.over.figures for test in tests),
        outliers=tuple(outlier for outliers in outliers_of.values() for outlier in outliers),
        slopes=tuple(
            _slope_verdict(data, law, family[law], ps.get(law), savings) for law in slopes
        ),
    )


def _quantities(data: Data) -> list[Quantity]:
    """Return all that is compared, headline metrics first."""
    return [
        Quantity(point, metric, spec, quantile)
        for name, metric, spec in compared(data.experiment, data.workloads)
        for quantile in (MEDIAN, *(percent / 100 for percent in spec.percentiles if percent != 50))
        for point in data.expected
        if point.workload == name
    ]


def _by_transfer(data: Data, test: MetricTest) -> dict[ParamValue, Verdict]:
    """Return the verdict over all points with one cost of a moved line, for each cost."""
    by_cost: dict[ParamValue, list[Pair]] = {}
    for pair in test.pairs:
        by_cost.setdefault(pair.figure.point.params.get(TRANSFER, 0), []).append(pair)
    verdicts = {}
    for cost, pairs in by_cost.items():
        alone = _test(data, pairs, ())
        estimate = alone.over.estimate
        better = pairs[0].figure.spec.better
        verdicts[cost], _ = judge(estimate, alone.supporting, estimate.p, better, data.rules)
    return verdicts


def _slope_verdict(
    data: Data, law: SlopeRatio, test: MetricTest, p_corrected: float | None, savings: OwnSavings
) -> tuple[Verdict, str, Outside | None]:
    supporting = replace(law.supporting, coarse=test.supporting.coarse)
    judged = judge(law.estimate, supporting, p_corrected, law.better, data.rules)
    param = data.workloads[law.workload].law
    return _seen_outside(*judged, savings.growth(test.pairs, param, law.rest))


def _comparison(
    pair: Pair,
    p_adjusted: float | None,
    outliers_of: Outliers,
    rules: Rules,
    finding: SeenOutside | None,
) -> Comparison:
    figure = pair.figure
    estimate = pair.estimate
    supporting = pair.supporting
    judged = judge(estimate, supporting, p_adjusted, figure.spec.better, rules)
    verdict, reason, outside = _seen_outside(*judged, finding)
    return Comparison(
        **_judged(figure, pair.variant, estimate, supporting, rules),
        verdict=verdict,
        reason=reason,
        outside=outside,
        point=figure.point.shown,
        base=summary(pair.base, figure.quantile),
        changed=summary(pair.changed, figure.quantile),
        p_holm=tidy(p_adjusted),
        p_rank=tidy(supporting.rank.p) if supporting.rank else None,
        outliers=sum(
            outlier.block in boots.samples
            for kernel, boots in ((BASE, pair.base), (pair.variant, pair.changed))
            for outlier in outliers_of.get((kernel, figure), ())
        ),
    )
