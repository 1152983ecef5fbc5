"""How much of what a series does each of its patches carries.

A series that changes a cost by the factor R is the product of what its patches do, so shares are taken
on the log scale. By steps: log(first k patches / first k - 1) / log R; these add up to 1. By leaving
out: log(whole / whole without patch k) / log R; these do not where patches need each other. The
first depends on the order of the series, the second does not (sequential and partial effects: N. Draper,
H. Smith, "Applied Regression Analysis", 1998, chapter 6).

A share is a ratio of two noisy figures of the same blocks. Its interval is Fieller's (E. Fieller, J. Royal
Statistical Society B 16, 1954): every share s with which "part - s * whole" cannot be told from nothing. The
variances are those of the hierarchical bootstrap, and the width in standard errors is that of the
whole's own interval. It is finite only where the whole can be told from no change; where it cannot, a share
is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kteardown.analysis.comparisons import Data
from kteardown.analysis.dataset import headlines
from kteardown.analysis.estimate.bootstrap import Boots, Interval, ratio_interval
from kteardown.analysis.estimate.rounding import tidy, tidy_pair
from kteardown.analysis.estimate.verdict import estimate
from kteardown.model.point import Point
from kteardown.model.record import BASE
from kteardown.model.result import Ablation, Comparison, KernelFacts, Part, PatchParts, PatchSet, Unavailable
from kteardown.model.workload import Metric

_NO_CHANGE = "the whole cannot be told from no change"


@dataclass(frozen=True)
class _Series:
    """The kernels of one series: the whole, and what stands for each set of its patches."""

    variant: str
    whole: PatchSet
    kernels: Mapping[tuple[int, ...], str]
    """By the patches that they have; base has none."""
    missing: Mapping[tuple[int, ...], Unavailable]

    def name(self, patches: Sequence[int]) -> str | None:
        return self.kernels.get(tuple(patches))


@dataclass(frozen=True)
class _Boots:
    """What the kernels of a series took at one point, all with the same blocks."""

    data: Data
    boots: Mapping[str, Boots]
    _pairs: dict[tuple[str, str], Interval | None] = field(default_factory=dict)

    def interval(self, one: str, other: str) -> Interval | None:
        """Of other / one; None where there is none."""
        names = (one, other) if one < other else (other, one)
        if names not in self._pairs:
            first, second = (self.boots[name] for name in names)
            positive = min(first.flat.min(), second.flat.min()) > 0
            self._pairs[names] = (
                ratio_interval(
                    first,
                    second,
                    self.data.resampler,
                    confidence=self.data.rules.confidence,
                    within=self.data.clock == "wall",
                )
                if positive
                else None
            )
        return self._pairs[names]

    def variance(self, one: str, other: str) -> float:
        """Of the log ratio of two kernels that have an interval."""
        found = self.interval(one, other) if one != other else None
        return found.se**2 if found else 0.0


def ablations(
    data: Data,
    kernels: Mapping[str, KernelFacts],
    comparisons: Sequence[Comparison],
    unavailable: Sequence[Unavailable],
) -> tuple[Ablation, ...]:
    """For each whole series with parts that were built or tried, each headline metric and point."""
    wholes = {
        (c.variant, c.workload, c.metric, tuple(c.point.items())): c
        for c in comparisons
        if c.statistic == "median"
    }
    result = []
    for series in _all_series(kernels, unavailable):
        for workload, metric, spec in headlines(data.experiment, data.workloads):
            for point in data.expected:
                whole = wholes.get((series.variant, workload, metric, tuple(point.shown.items())))
                if point.workload == workload and whole is not None:
                    result.append(_ablation(data, series, point, metric, spec, whole))
    return tuple(result)


def _all_series(kernels: Mapping[str, KernelFacts], unavailable: Sequence[Unavailable]) -> list[_Series]:
    result = []
    for name, facts in kernels.items():
        whole = facts.patch_set
        if whole is None or not whole.whole or whole.total < 2:
            continue
        sets = {
            k: f.patch_set for k, f in kernels.items() if f.patch_set and f.patch_set.series == whole.series
        }
        parts = {patches.patches: k for k, patches in sets.items() if patches.total == whole.total}
        missing = {u.patch_set.patches: u for u in unavailable if u.patch_set.series == whole.series}
        if len(parts) > 1 or missing:
            result.append(_Series(name, whole, {(): BASE, **parts}, missing))
    return result


def _ablation(
    data: Data, series: _Series, point: Point, metric: str, spec: Metric, whole: Comparison
) -> Ablation:
    found = {name: data.collected.boots(name, point, metric) for name in series.kernels.values()}
    have = {name: boots for name, boots in found.items() if boots is not None}
    common = sorted(set.intersection(*(set(boots.samples) for boots in have.values())))
    boots = _Boots(data, {name: boots.only(common) for name, boots in have.items()} if common else {})
    patches = range(1, series.whole.total + 1)
    refused = _refused(whole)
    subjects = series.whole.subjects or ("",) * series.whole.total
    return Ablation(
        workload=point.workload,
        variant=series.variant,
        series=series.whole.series,
        metric=metric,
        unit=spec.unit,
        better=spec.better,
        point=point.shown,
        ratio=whole.ratio,
        ci=whole.ci,
        confidence=data.rules.confidence,
        exact=whole.exact,
        patches=tuple(
            PatchParts(
                patch=k,
                subject=subjects[k - 1],
                step=_part(boots, series, patches[: k - 1], patches[:k], refused),
                leave_out=_part(boots, series, [n for n in patches if n != k], patches, refused),
            )
            for k in patches
        ),
        unavailable=tuple(series.missing.values()),
    )


def _refused(whole: Comparison) -> str:
    """Why nothing can be a share of this, or nothing."""
    if whole.ratio is None or whole.ci is None:
        return "the whole has no ratio with an interval"
    if whole.ratio <= 0:
        return "the whole has no logarithm"
    if whole.ci[0] <= 1 <= whole.ci[1]:
        return _NO_CHANGE
    return f"the whole is inconclusive: {whole.reason}" if whole.verdict == "inconclusive" else ""


def _part(
    boots: _Boots, series: _Series, without: Sequence[int], having: Sequence[int], refused: str
) -> Part:
    names = []
    for patches in (without, having):
        name = series.name(patches)
        if name is None:
            missing = series.missing.get(tuple(patches))
            return Part(reason=missing.reason if missing else "not built")
        if name not in boots.boots:
            return Part(reason=f"{name} has no samples here")
        names.append(name)
    return _share(boots, names[0], names[1], series.variant, refused)


def _share(boots: _Boots, without: str, having: str, variant: str, refused: str) -> Part:
    data = boots.data
    part, whole = (
        estimate(boots.boots[one], boots.boots[other], data.clock, data.rules, data.resampler)
        for one, other in ((without, having), (BASE, variant))
    )
    fields = {"ratio": tidy(part.ratio), "ci": tidy_pair(part.ci), "exact": part.exact and whole.exact}
    if refused:
        return Part.model_validate({**fields, "reason": refused})
    if not part.ratio or part.ratio <= 0 or part.ci is None or not whole.ratio or whole.ratio <= 0:
        return Part.model_validate({**fields, "reason": "no ratio with an interval"})
    a, b = math.log(part.ratio), math.log(whole.ratio)
    ends = (a / b, a / b) if part.exact and whole.exact else _fieller(boots, (without, having), variant, a, b)
    if ends is None:
        return Part.model_validate({**fields, "reason": _NO_CHANGE})
    return Part.model_validate({**fields, "share": tidy(a / b), "share_ci": tidy_pair(ends)})


def _fieller(
    boots: _Boots, pair: tuple[str, str], variant: str, a: float, b: float
) -> tuple[float, float] | None:
    """The ends of the interval of a / b; None where it has none."""
    one, other = pair
    # The covariance of two differences, out of variances of differences alone.
    covariance = (
        boots.variance(other, BASE)
        + boots.variance(one, variant)
        - boots.variance(other, variant)
        - boots.variance(one, BASE)
    ) / 2
    width2 = _width(boots.interval(BASE, variant), boots.interval(one, other)) ** 2
    square = b * b - width2 * boots.variance(BASE, variant)
    if square <= 0:
        return None
    middle = a * b - width2 * covariance
    rest = a * a - width2 * boots.variance(one, other)
    root = math.sqrt(max(0.0, middle * middle - square * rest))
    return (middle - root) / square, (middle + root) / square


def _width(*intervals: Interval | None) -> float:
    """Half an interval in standard errors: of the first one that has any."""
    for found in intervals:
        if found is not None and found.se > 0:
            return math.log(found.high / found.low) / 2 / found.se
    return 0.0
