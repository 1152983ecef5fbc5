"""The verdicts of headline metrics over all their points, and which points are tested for them.

Every statistic of a headline metric of a requested variant is a family of ``estimate.gatekeeping``: the test
over all points, the tests of the points, and those of the growth laws.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kteardown.analysis.compared_pairs import Data, Pair
from kteardown.analysis.dataset import Dataset, headlines
from kteardown.analysis.estimate.gatekeeping import Family, adjust
from kteardown.analysis.estimate.over_nodes import over_nodes
from kteardown.analysis.estimate.over_points import OverPoints, PointBoots, estimate_over_points
from kteardown.analysis.estimate.rounding import tidy, tidy_pair
from kteardown.analysis.estimate.verdict import Estimate, SupportingResults, explained_by_twin, judge
from kteardown.analysis.growth.slope_ratio import SlopeRatio
from kteardown.model.point import weight_of
from kteardown.model.record import BASE, LAYOUT, TWIN
from kteardown.model.result import Comparison, MetricVerdict, Verdict

_OPPOSITE = "the changes at its points are opposite"
_HIDDEN = "the mean is the same, single points are not"


@dataclass(frozen=True)
class MetricTest:
    """One headline metric of a variant before its verdict: its points, and its growth laws.

    ``numbers`` are the positions of ``pairs`` in the list of all pairs, ``laws`` those of its laws in the
    list of all slope ratios.
    """

    pairs: tuple[Pair, ...]
    numbers: tuple[int, ...]
    laws: tuple[int, ...]
    planned: int
    over: OverPoints
    supporting: SupportingResults

    @property
    def single(self) -> bool:
        """Return whether the metric has one point only, and is that point."""
        return len(self.pairs) == 1


@dataclass(frozen=True)
class Corrected:
    """Corrected p-values of metrics, in their order, and of pairs and slope ratios by their position."""

    metrics: tuple[float | None, ...]
    pairs: Mapping[int, float | None]
    laws: Mapping[int, float | None]


def metric_tests(data: Data, pairs: Sequence[Pair], slopes: Sequence[SlopeRatio]) -> list[MetricTest]:
    """Return a test for every headline metric, statistic and requested variant that has data."""
    wanted = {(workload, metric) for workload, metric, _ in headlines(data.experiment, data.workloads)}
    groups: dict[tuple[str, str, str, str], list[int]] = {}
    for number, pair in enumerate(pairs):
        figure = pair.figure
        if (figure.point.workload, figure.metric) in wanted and pair.variant in data.asked_for:
            name = (figure.point.workload, figure.metric, figure.statistic, pair.variant)
            groups.setdefault(name, []).append(number)
    return [
        _test(
            data,
            [pairs[n] for n in numbers],
            numbers,
            [n for n, law in enumerate(slopes) if (law.workload, law.metric, "median", law.variant) == name],
        )
        for name, numbers in groups.items()
    ]


def corrected(tests: Sequence[MetricTest], pairs: Sequence[Pair], slopes: Sequence[SlopeRatio]) -> Corrected:
    """Return the p-values after the correction over headline metrics and variants, and of their points."""
    families = []
    for test in tests:
        points = () if test.single else test.numbers
        ps = (*(pairs[n].found.p for n in points), *(slopes[n].found.p for n in test.laws))
        families.append(Family(test.over.estimate.p, ps))
    of_pairs: dict[int, float | None] = {}
    of_laws: dict[int, float | None] = {}
    metrics = []
    for test, family in zip(tests, adjust(families), strict=True):
        metrics.append(family.metric)
        points = () if test.single else test.numbers
        of_pairs |= dict(zip(points, family.points[: len(points)], strict=True))
        of_laws |= dict(zip(test.laws, family.points[len(points) :], strict=True))
        if test.single:
            of_pairs[test.numbers[0]] = family.metric
    return Corrected(tuple(metrics), of_pairs, of_laws)


def metric_verdict(
    data: Data, test: MetricTest, p_corrected: float | None, points: Sequence[Comparison]
) -> MetricVerdict:
    """Return the verdict of a metric; ``points`` are the comparisons at its points."""
    first, found, rules = test.pairs[0], test.over.estimate, data.rules
    p_mixed = None if test.single else _p_mixed(test, points, 1 - rules.confidence)
    if test.single:
        verdict, reason = points[0].verdict, points[0].reason
    else:
        verdict, reason = judge(found, test.supporting, p_corrected, first.figure.spec.better, rules)
        verdict, reason = _with_points(verdict, reason, points, p_mixed, 1 - rules.confidence)
    twin, layout = test.supporting.twin, test.supporting.layout
    return MetricVerdict(
        workload=first.figure.point.workload,
        variant=first.variant,
        metric=first.figure.metric,
        unit=first.figure.spec.unit,
        better=first.figure.spec.better,
        statistic=first.figure.statistic,
        points=test.over.points,
        planned=test.planned,
        boots=test.over.boots,
        ratio=tidy(found.ratio),
        ci=tidy_pair(found.ci),
        confidence=rules.confidence,
        mde=tidy(found.mde),
        verdict=verdict,
        reason=reason,
        exact=found.exact,
        null_ci=tidy_pair(twin.ci) if twin else None,
        layout_ci=tidy_pair(layout.ci) if layout else None,
        p=tidy(found.p),
        p_corrected=tidy(p_corrected),
        p_same=tidy(found.p_same),
        p_mixed=tidy(p_mixed),
        spread=tidy(test.over.spread),
        point_spread=tidy(test.over.point_spread),
        same_within=rules.same_within,
    )


def _test(data: Data, pairs: Sequence[Pair], numbers: Sequence[int], laws: Sequence[int]) -> MetricTest:
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
        supporting = SupportingResults(twin(TWIN, data.collected), twin(LAYOUT, data.moved))
    planned = _planned(data, first)
    return MetricTest(tuple(pairs), tuple(numbers), tuple(laws), planned, over, supporting)


def _planned(data: Data, pair: Pair) -> int:
    """Return at how many points the metric is to be compared.

    A point is not one of them if both kernels recorded other metrics there, and neither this one.
    """
    figure = pair.figure
    sides, collected = (BASE, pair.variant), data.collected
    return sum(
        any(collected.boots(name, point, figure.metric) for name in sides)
        or not all(collected.measured(name, point) for name in sides)
        for point in data.expected
        if point.workload == figure.point.workload
    )


def _p_mixed(test: MetricTest, points: Sequence[Comparison], alpha: float) -> float | None:
    """Return the p-value of no opposite changes: no point higher, or no point lower (Gail, Simon 1985).

    Both are tested by the most extreme point, with Bonferroni's correction over the points, as in the range
    test of S. Piantadosi and M. Gail (Statistics in Medicine 12, 1993). As both must be rejected, neither
    needs a further correction (R. Berger, Technometrics 24, 1982). Points whose change is inside the margin
    or within that of a twin are no evidence.
    """
    higher: list[float] = []
    lower: list[float] = []
    for pair, point in zip(test.pairs, points, strict=True):
        p = pair.found.p
        if p is None or point.verdict == "same" or explained_by_twin(pair.found, pair.supporting, alpha):
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
