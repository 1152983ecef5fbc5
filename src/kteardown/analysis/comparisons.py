"""The comparisons of a result: each variant with base, by metric, statistic and point, and over all points.

Every statistic of a headline metric of a requested variant is a family of ``estimate.gatekeeping``: the test
over all points, the tests of the points, and those of the growth laws. The effect of each patch of a series
has shares of that of the whole (``ablations``).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import numpy as np

from kteardown.analysis.dataset import Data, Dataset, compared, headlines
from kteardown.analysis.estimate.bootstrap import Boots, Interval, ratio_interval
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
    estimate,
    explained_by_twin,
    holm,
    judge,
    rank_tests,
    summary,
)
from kteardown.analysis.faults import as_broken
from kteardown.analysis.growth.laws import SlopeRatio
from kteardown.analysis.pairs import Pair, Quantity, pairs_of
from kteardown.analysis.self_timed import OwnSavings, SeenOutside, saying
from kteardown.model.faults import Fault
from kteardown.model.judged import Comparison, MetricVerdict, Outside, Verdict, tidy, tidy_pair
from kteardown.model.kernel_facts import KernelFacts, PatchSet, Unavailable
from kteardown.model.point import Point, weight_of
from kteardown.model.record import BASE, LAYOUT, TWIN
from kteardown.model.result import Ablation, Outlier, Part, PatchParts

_OPPOSITE = "the changes at its points are opposite"
_HIDDEN = "the mean is the same, single points are not"
FENCE = 3.0
MIN_BOOTS = 5
_LEVEL = 0.05
"""Of the test whether the size of a change differs between nodes."""


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


def _metric_tests(data: Data, pairs: Sequence[Pair], slopes: Sequence[SlopeRatio]) -> list[MetricTest]:
    """Return a test for every headline metric, statistic and requested variant that has data."""
    wanted = {(workload, metric) for workload, metric, _ in headlines(data.experiment, data.workloads)}
    groups: dict[tuple[str, str, str, str], list[Pair]] = {}
    for pair in pairs:
        figure = pair.figure
        if (figure.point.workload, figure.metric) in wanted and pair.variant in data.asked_for:
            name = (figure.point.workload, figure.metric, figure.statistic, pair.variant)
            groups.setdefault(name, []).append(pair)
    return [
        _test(data, own, [s for s in slopes if (s.workload, s.metric, "median", s.variant) == name])
        for name, own in groups.items()
    ]


def _corrected(tests: Sequence[MetricTest]) -> dict[MetricTest | Pair | SlopeRatio, float | None]:
    """Return the p-values after the correction over headline metrics and variants, and of their points."""
    families = [Family(t.over.estimate.p, tuple(one.found.p for one in t.members)) for t in tests]
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
    first, found, rules = test.pairs[0], test.over.estimate, data.rules
    p_mixed = None if test.single else _p_mixed(test, points, 1 - rules.confidence)
    if test.single:
        verdict, reason, outside = points[0].verdict, points[0].reason, points[0].outside
    else:
        judged = judge(found, test.supporting, p_corrected, first.figure.spec.better, rules)
        verdict, reason, outside = _seen_outside(*judged, finding)
    if outside == "contradicts":
        reason = saying(reason, found.ratio)
    if not test.single:
        verdict, reason = _with_points(verdict, reason, points, p_mixed, 1 - rules.confidence)
    return MetricVerdict(
        **_judged(first.figure, first.variant, found, test.supporting, rules),
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
    figure: Quantity, variant: str, found: Estimate, supporting: SupportingResults, rules: Rules
) -> dict[str, Any]:
    """Return the fields that a comparison and the verdict of a metric have in common, but the verdict."""
    return {
        "workload": figure.point.workload,
        "variant": variant,
        "metric": figure.metric,
        "unit": figure.spec.unit,
        "better": figure.spec.better,
        "statistic": figure.statistic,
        "ratio": tidy(found.ratio),
        "ci": tidy_pair(found.ci),
        "confidence": rules.confidence,
        "mde": tidy(found.mde),
        "exact": found.exact,
        "null_ci": tidy_pair(supporting.twin.ci) if supporting.twin else None,
        "layout_ci": tidy_pair(supporting.layout.ci) if supporting.layout else None,
        "p": tidy(found.p),
        "p_same": tidy(found.p_same),
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
            base, other = (collected.boots(name, figure.point, figure.metric) for name in (BASE, kernel))
            if base is not None and other is not None:
                sides.append(PointBoots(base, other, weights[n]))
        return compared(sides).estimate if sides else None

    if len(pairs) == 1:
        over = replace(over, estimate=first.found)
        supporting = first.supporting
    else:
        over = replace(over, estimate=over_nodes(over.estimate, over.figures, data.nodes, data.rules))
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
    sides, collected = (BASE, pair.variant), data.collected
    return sum(
        any(collected.boots(name, point, figure.metric) for name in sides)
        or not all(collected.measured(name, point) for name in sides)
        for point in data.expected
        if point.workload == figure.point.workload
    )


def _p_mixed(test: MetricTest, points: Sequence[Comparison], alpha: float) -> float | None:
    """Return the p-value of no opposite changes: no point higher, or no point lower (Gail, Simon 1985)."""
    # Both are tested by the most extreme point, with Bonferroni's correction over the points, as in the range
    # test of S. Piantadosi and M. Gail (Statistics in Medicine 12, 1993). As both must be rejected, neither
    # needs a further correction (R. Berger, Technometrics 24, 1982). Points whose change is inside the margin
    # or within that of a twin are no evidence.
    higher: list[float] = []
    lower: list[float] = []
    for pair, point in zip(test.pairs, points, strict=True):
        p = pair.found.p
        none = point.verdict == "same" or point.outside == "contradicts"
        if p is None or none or explained_by_twin(pair.found, pair.supporting, alpha):
            continue
        (higher if pair.found.higher else lower).append(p / 2)
    if not higher or not lower:
        return 1.0
    return min(1.0, len(test.pairs) * max(min(higher), min(lower)))


def _with_points(
    verdict: Verdict, reason: str, points: Sequence[Comparison], p_mixed: float | None, alpha: float
) -> tuple[Verdict, str]:
    """Return the verdict after a look at the points: ``mixed`` if the mean would hide what they show."""
    called = {point.verdict for point in points} & {"better", "worse"}
    claimed = verdict in ("better", "worse")
    if len(called) == 2 or (claimed and (called - {verdict} or (p_mixed is not None and p_mixed < alpha))):
        return "mixed", _OPPOSITE
    if verdict == "same" and called:
        return "mixed", _HIDDEN
    return verdict, reason


@dataclass(frozen=True)
class JudgedComparisons:
    """Everything that is compared, with its verdict: headline metrics first.

    ``figures`` has the log ratios of each metric verdict, by block. ``slopes`` has the verdict of every slope
    ratio, in its order, with the reason and what is seen outside.
    """

    comparisons: tuple[Comparison, ...]
    metric_verdicts: tuple[MetricVerdict, ...]
    figures: tuple[Mapping[int, float], ...]
    outliers: tuple[Outlier, ...]
    slopes: tuple[tuple[Verdict, str, Outside | None], ...]


def compare_all(data: Data, slopes: Sequence[SlopeRatio], failed: Sequence[Fault]) -> JudgedComparisons:
    """Return the verdicts of metrics and of their points, and the outlier boots.

    Headline metrics of the requested variants, with their points and growth laws, are corrected by
    ``estimate.gatekeeping``. All other comparisons (other metrics, and the kernels of an ablation) have
    Holm's correction over themselves, so that their number does not weaken the headline metrics. What is
    broken by ``failed`` has that verdict.
    """
    figures = [
        Quantity(point, metric, spec, quantile)
        for name, metric, spec in compared(data.experiment, data.workloads)
        for quantile in (MEDIAN, *(percent / 100 for percent in spec.percentiles if percent != 50))
        for point in data.expected
        if point.workload == name
    ]
    pairs = [pair for figure in figures for pair in pairs_of(data, figure)]
    if data.clock == "wall":
        sides = [(p.base.quantiles(p.figure.quantile), p.changed.quantiles(p.figure.quantile)) for p in pairs]
        ranks = rank_tests(sides)
        pairs = [
            replace(pair, supporting=replace(pair.supporting, rank=rank))
            for pair, rank in zip(pairs, ranks, strict=True)
        ]
    outliers_of = _outliers(data, figures)
    tests = _metric_tests(data, pairs, slopes)
    ps = _corrected(tests)
    others = [pair for pair in pairs if pair not in ps]
    ps.update(zip(others, holm([pair.found.p for pair in others]), strict=True))
    savings = OwnSavings(pairs, data)
    comparisons = {
        pair: _comparison(pair, ps[pair], outliers_of, data.rules, savings.at(pair)) for pair in pairs
    }
    metrics = [
        _metric_verdict(
            data, test, ps[test], [comparisons[pair] for pair in test.pairs], savings.over(test.pairs)
        )
        for test in tests
    ]
    family = {law: test for test in tests for law in test.laws}
    return JudgedComparisons(
        comparisons=as_broken([*comparisons.values()], failed),
        metric_verdicts=as_broken(metrics, failed),
        figures=tuple(test.over.figures for test in tests),
        outliers=tuple(outlier for outliers in outliers_of.values() for outlier in outliers),
        slopes=tuple(_slope_verdict(data, law, family[law], ps.get(law), savings) for law in slopes),
    )


def _slope_verdict(
    data: Data, law: SlopeRatio, test: MetricTest, p_corrected: float | None, savings: OwnSavings
) -> tuple[Verdict, str, Outside | None]:
    supporting = replace(law.supporting, coarse=test.supporting.coarse)
    judged = judge(law.found, supporting, p_corrected, law.better, data.rules)
    param = data.workloads[law.workload].law
    return _seen_outside(*judged, savings.growth(test.pairs, param, law.rest))


_Outliers = Mapping[tuple[str, Quantity], tuple[Outlier, ...]]


def _outliers(data: Data, figures: Sequence[Quantity]) -> _Outliers:
    """Return the outlier boots by kernel and quantity, only where there are any."""
    found = {}
    for figure in figures:
        for kernel in (BASE, TWIN, *data.variants):
            boots = data.collected.boots(kernel, figure.point, figure.metric)
            if boots is not None:
                about = {
                    "kernel": kernel,
                    "workload": figure.point.workload,
                    "metric": figure.metric,
                    "statistic": figure.statistic,
                    "point": figure.point.shown,
                }
                group = boots.quantiles(figure.quantile)
                if outliers := find_outliers(about, group, data.rules.same_within):
                    found[kernel, figure] = outliers
    return found


def _comparison(
    pair: Pair, p_adjusted: float | None, outliers_of: _Outliers, rules: Rules, finding: SeenOutside | None
) -> Comparison:
    figure, found, supporting = pair.figure, pair.found, pair.supporting
    judged = judge(found, supporting, p_adjusted, figure.spec.better, rules)
    verdict, reason, outside = _seen_outside(*judged, finding)
    return Comparison(
        **_judged(figure, pair.variant, found, supporting, rules),
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


def find_outliers(about: Mapping[str, Any], group: Mapping[int, float], within: float) -> tuple[Outlier, ...]:
    """Return the outliers of a group of boots, which are reported and not removed.

    ``about`` has the other fields of ``Outlier``, ``group`` the values by block.

    An outlier is beyond the outer fences of its group: three interquartile ranges below the lower or above
    the upper quartile (J. Tukey, "Exploratory Data Analysis", 1977, section 2D). The log scale is used,
    because noise multiplies a cost. With normal noise this finds an outlier in 13% of groups of five boots,
    4.5% of ten, 2% of twenty; with fewer than five boots no value can be outside (D. Hoaglin, B. Iglewicz, J.
    Tukey, J. American Statistical Association 81, 1986). Differences from the median below ``within`` (0.02
    is two percent) do not matter for a verdict. A group with a value at or below zero has no outliers.
    """
    if len(group) < MIN_BOOTS or min(group.values()) <= 0:
        return ()
    logs = np.log([*group.values()])
    low, middle, high = np.quantile(logs, (0.25, 0.5, 0.75))
    outside, spread = np.maximum(low - logs, logs - high), float(high - low)
    is_outlier = (outside > FENCE * spread) & (np.abs(logs - middle) > np.log1p(within))
    return tuple(
        Outlier(
            **about,
            block=block,
            value=value,
            median=float(np.median([*group.values()])),
            ranges=tidy(float(distance / spread)) if spread > 0 else None,
        )
        for (block, value), beyond, distance in zip(group.items(), is_outlier, outside, strict=True)
        if beyond
    )


def node_notes(found: JudgedComparisons, nodes: Mapping[int, str]) -> list[str]:
    """Return notes for each claimed change of a metric, if the blocks were on several nodes."""
    # Comparisons are inside blocks, each on one node, so what makes a node faster or slower as a whole is not
    # in a ratio. A change whose size depends on the machine can be, and the interval includes it
    # (``over_nodes``). Whether its size differs between the nodes is tested by one-way analysis of variance,
    # unless a node has a single block.
    notes = []
    for claim, logs in zip(found.metric_verdicts, found.figures, strict=True) if nodes else ():
        by_node: dict[str, list[float]] = {}
        for block, change in logs.items():
            by_node.setdefault(nodes.get(block) or "this host", []).append(change)
        if claim.verdict not in ("better", "worse") or len(by_node) < 2 or claim.ratio is None:
            continue
        down, groups = claim.ratio < 1, list(by_node.values())
        holds = sum((median(changes) < 0) == down for changes in groups)
        each = ", ".join(
            f"{node} {math.expm1(median(changes)) * 100:+.1f}% ({len(changes)})"
            for node, changes in sorted(by_node.items())
        )
        notes.append(
            f"{claim.variant}, {claim.metric}: the change has the claimed direction on {holds} of "
            f"{len(by_node)} nodes; median of each, with its blocks: {each}"
        )
        if min(map(len, groups)) > 1 and any(len(set(group)) > 1 for group in groups):
            from scipy.stats import f_oneway

            p = float(f_oneway(*groups).pvalue)
            if p < _LEVEL:
                notes.append(
                    f"{claim.variant}, {claim.metric}: the size of the change differs between the nodes "
                    f"(p = {p:.2g}); its interval includes that"
                )
    return notes


_OF_THE_WHOLE = (
    *("workload", "variant", "metric", "unit", "better"),
    *("point", "ratio", "ci", "confidence", "exact"),
)
_NO_CHANGE = "the change of the whole series is not significant"


@dataclass(frozen=True)
class _Series:
    """The kernels of one series, and their boots at one point, restricted to common blocks."""

    data: Data
    variant: str
    whole: PatchSet
    kernels: Mapping[tuple[int, ...], str]
    """By the patches that the kernels have; base has none."""
    missing: Mapping[tuple[int, ...], Unavailable]
    boots: Mapping[str, Boots] = field(default_factory=dict)
    _pairs: dict[tuple[str, str], Interval | None] = field(default_factory=dict)

    def interval(self, one: str, other: str) -> Interval | None:
        """Return the interval of ``other`` / ``one``, or of its inverse; None if there is no interval."""
        names = (one, other) if one < other else (other, one)
        if names not in self._pairs:
            first, second = (self.boots[name] for name in names)
            found, data = None, self.data
            if min(first.flat.min(), second.flat.min()) > 0:
                level, wall = data.rules.confidence, data.clock == "wall"
                found = ratio_interval(first, second, data.resampler, confidence=level, within=wall)
            self._pairs[names] = found
        return self._pairs[names]

    def variance(self, one: str, other: str) -> float:
        """Return the variance of the log ratio of two kernels; 0 if there is no interval."""
        found = self.interval(one, other) if one != other else None
        return found.se**2 if found else 0.0


def ablations(
    data: Data,
    kernels: Mapping[str, KernelFacts],
    comparisons: Sequence[Comparison],
    unavailable: Sequence[Unavailable],
) -> tuple[Ablation, ...]:
    """Return the ablation of each whole series with partial kernels, for each headline metric and point.

    Shares are on the log scale: by steps, log(first k patches / first k - 1) / log R, and by leaving out,
    log(whole / whole without patch k) / log R, for a series that changes a cost by the factor R. The interval
    of a share is Fieller's: it contains every share s for which "part - s * whole" does not differ
    significantly from zero. The variances are those of the hierarchical bootstrap, and the width in standard
    errors is that of the interval of the whole. It is finite only if the change of the whole is significant;
    otherwise the share is refused. METHODOLOGY.md has the sources.
    """
    wholes = {
        (c.variant, c.workload, c.metric, tuple(c.point.items())): c
        for c in comparisons
        if c.statistic == "median"
    }
    result = []
    for series in _all_series(data, kernels, unavailable):
        for workload, metric, _ in headlines(data.experiment, data.workloads):
            for point in data.expected:
                whole = wholes.get((series.variant, workload, metric, tuple(point.shown.items())))
                if point.workload == workload and whole is not None:
                    result.append(_ablation(series, point, metric, whole))
    return tuple(result)


def _all_series(
    data: Data, kernels: Mapping[str, KernelFacts], unavailable: Sequence[Unavailable]
) -> Iterator[_Series]:
    for name, facts in kernels.items():
        whole = facts.patch_set
        if whole is None or not whole.whole or whole.total < 2 or facts.source != kernels[BASE].source:
            continue
        sets = {
            k: f.patch_set
            for k, f in kernels.items()
            if f.patch_set and f.patch_set.series == whole.series and f.source == facts.source
        }
        parts = {patches.patches: k for k, patches in sets.items() if patches.total == whole.total}
        missing = {u.patch_set.patches: u for u in unavailable if u.patch_set.series == whole.series}
        if len(parts) > 1 or missing:
            yield _Series(data, name, whole, {(): BASE, **parts}, missing)


def _ablation(series: _Series, point: Point, metric: str, whole: Comparison) -> Ablation:
    found = {name: series.data.collected.boots(name, point, metric) for name in series.kernels.values()}
    have = {name: boots for name, boots in found.items() if boots is not None}
    common = sorted(set.intersection(*(set(boots.samples) for boots in have.values())))
    boots = {name: boots.only(common) for name, boots in have.items()} if common else {}
    here = replace(series, boots=boots, _pairs={})
    patches = range(1, series.whole.total + 1)
    refused = _refused(whole)
    subjects = series.whole.subjects or ("",) * series.whole.total
    return Ablation(
        **{name: getattr(whole, name) for name in _OF_THE_WHOLE},
        series=series.whole.series,
        patches=tuple(
            PatchParts(
                patch=k,
                subject=subjects[k - 1],
                step=_part(here, patches[: k - 1], patches[:k], refused),
                leave_out=_part(here, [n for n in patches if n != k], patches, refused),
            )
            for k in patches
        ),
        unavailable=tuple(series.missing.values()),
    )


def _refused(whole: Comparison) -> str:
    """Return why the change of the whole has no shares; empty if it has."""
    if whole.ratio is None or whole.ci is None:
        return "the whole series has no ratio with an interval"
    if whole.ratio <= 0:
        return "the ratio of the whole series is not above zero"
    if whole.ci[0] <= 1 <= whole.ci[1]:
        return _NO_CHANGE
    return f"the whole series is inconclusive: {whole.reason}" if whole.verdict == "inconclusive" else ""


def _part(series: _Series, without: Sequence[int], having: Sequence[int], refused: str) -> Part:
    names = []
    for patches in (without, having):
        name = series.kernels.get(tuple(patches))
        if name is None:
            missing = series.missing.get(tuple(patches))
            return Part(reason=missing.reason if missing else "not built")
        if name not in series.boots:
            return Part(reason=f"{name} has no samples at this point")
        names.append(name)
    data, (one, other) = series.data, names
    part, whole = (
        estimate(series.boots[before], series.boots[after], data.clock, data.rules, data.resampler)
        for before, after in ((one, other), (BASE, series.variant))
    )
    fields = {"ratio": tidy(part.ratio), "ci": tidy_pair(part.ci), "exact": part.exact and whole.exact}
    if refused:
        return Part.model_validate({**fields, "reason": refused})
    if not part.ratio or part.ratio <= 0 or part.ci is None or not whole.ratio or whole.ratio <= 0:
        return Part.model_validate({**fields, "reason": "no ratio with an interval"})
    a, b = math.log(part.ratio), math.log(whole.ratio)
    exact = (a / b, a / b) if part.exact and whole.exact else None
    ends = exact or _fieller(series, one, other, a, b)
    if ends is None:
        return Part.model_validate({**fields, "reason": _NO_CHANGE})
    return Part.model_validate({**fields, "share": tidy(a / b), "share_ci": tidy_pair(ends)})


def _fieller(series: _Series, one: str, other: str, a: float, b: float) -> tuple[float, float] | None:
    """Return the ends of the interval of a / b; None if it is not finite."""
    variant = series.variant
    # The covariance of two differences, computed from variances of differences only.
    covariance = (
        series.variance(other, BASE)
        + series.variance(one, variant)
        - series.variance(other, variant)
        - series.variance(one, BASE)
    ) / 2
    intervals = (series.interval(BASE, variant), series.interval(one, other))
    found = next((each for each in intervals if each is not None and each.se > 0), None)
    # The square of half the width, in standard errors.
    width2 = (math.log(found.high / found.low) / 2 / found.se) ** 2 if found else 0.0
    square = b * b - width2 * series.variance(BASE, variant)
    if square <= 0:
        return None
    middle = a * b - width2 * covariance
    rest = a * a - width2 * series.variance(one, other)
    root = math.sqrt(max(0.0, middle * middle - square * rest))
    return (middle - root) / square, (middle + root) / square
