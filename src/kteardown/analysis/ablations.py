"""The share of each patch in the effect of a series."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kteardown.analysis.dataset import Data, headlines
from kteardown.analysis.estimate.bootstrap import Boots, Interval, ratio_interval
from kteardown.analysis.estimate.verdict import (
    estimate,
)
from kteardown.model.judged import Comparison, tidy, tidy_pair
from kteardown.model.kernel_facts import KernelFacts, PatchSet, Unavailable
from kteardown.model.point import Point
from kteardown.model.record import BASE
from kteardown.model.result import Ablation, Part, PatchParts

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

    def interval(self, before: str, after: str) -> Interval | None:
        """Return the interval of ``after`` / ``before``, or of its inverse; None if there is no
        interval."""
        names = (before, after) if before < after else (after, before)
        if names not in self._pairs:
            first, second = (self.boots[name] for name in names)
            result = None
            data = self.data
            if min(first.flat.min(), second.flat.min()) > 0:
                level = data.rules.confidence
                wall = data.clock == "wall"
                result = ratio_interval(
                    first, second, data.resampler, confidence=level, within=wall
                )
            self._pairs[names] = result
        return self._pairs[names]

    def variance(self, before: str, after: str) -> float:
        """Return the variance of the log ratio of two kernels; 0 if there is no interval."""
        interval = self.interval(before, after) if before != after else None
        return interval.se**2 if interval else 0.0


def ablations(
    data: Data,
    kernels: Mapping[str, KernelFacts],
    comparisons: Sequence[Comparison],
    unavailable: Sequence[Unavailable],
) -> tuple[Ablation, ...]:
    """Return the ablation of each whole series with partial kernels, for each headline metric and
    point.

    Shares are on the log scale: by steps, log(first k patches / first k - 1) / log R, and by
    leaving out, log(whole / whole without patch k) / log R, for a series that changes a cost by the
    factor R. The interval of a share is Fieller's: it contains every share s for which "part - s *
    whole" does not differ significantly from zero. The variances are those of the hierarchical
    bootstrap, and the width in standard errors is that of the interval of the whole. It is finite
    only if the change of the whole is significant; otherwise the share is refused. METHODOLOGY.md
    has the sources.
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
        if (
            whole is None
            or not whole.whole
            or whole.total < 2
            or facts.source != kernels[BASE].source
        ):
            continue
        sets = {
            k: f.patch_set
            for k, f in kernels.items()
            if f.patch_set and f.patch_set.series == whole.series and f.source == facts.source
        }
        parts = {patches.patches: k for k, patches in sets.items() if patches.total == whole.total}
        missing = {
            u.patch_set.patches: u for u in unavailable if u.patch_set.series == whole.series
        }
        if len(parts) > 1 or missing:
            yield _Series(data, name, whole, {(): BASE, **parts}, missing)


def _ablation(series: _Series, point: Point, metric: str, whole: Comparison) -> Ablation:
    all_boots = {
        name: series.data.collected.boots(name, point, metric) for name in series.kernels.values()
    }
    have = {name: boots for name, boots in all_boots.items() if boots is not None}
    common = sorted(set.intersection(*(set(boots.samples) for boots in have.values())))
    boots = {name: boots.only(common) for name, boots in have.items()} if common else {}
    at_point = replace(series, boots=boots, _pairs={})
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
                step=_part(at_point, patches[: k - 1], patches[:k], refused),
                leave_out=_part(at_point, [n for n in patches if n != k], patches, refused),
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
    return (
        f"the whole series is inconclusive: {whole.reason}"
        if whole.verdict == "inconclusive"
        else ""
    )


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
    data, (without_patch, with_patch) = series.data, names
    part, whole = (
        estimate(series.boots[before], series.boots[after], data.clock, data.rules, data.resampler)
        for before, after in ((without_patch, with_patch), (BASE, series.variant))
    )
    fields = {
        "ratio": tidy(part.ratio),
        "ci": tidy_pair(part.ci),
        "exact": part.exact and whole.exact,
    }
    if refused:
        return Part.model_validate({**fields, "reason": refused})
    if not part.ratio or part.ratio <= 0 or part.ci is None or not whole.ratio or whole.ratio <= 0:
        return Part.model_validate({**fields, "reason": "no ratio with an interval"})
    a = math.log(part.ratio)
    b = math.log(whole.ratio)
    exact = (a / b, a / b) if part.exact and whole.exact else None
    ends = exact or _fieller(series, without_patch, with_patch, a, b)
    if ends is None:
        return Part.model_validate({**fields, "reason": _NO_CHANGE})
    return Part.model_validate({**fields, "share": tidy(a / b), "share_ci": tidy_pair(ends)})


def _fieller(
    series: _Series, without_patch: str, with_patch: str, a: float, b: float
) -> tuple[float, float] | None:
    """Return the ends of the interval of a / b; None if it is not finite."""
    variant = series.variant
    # The covariance of two differences, computed from variances of differences only.
    covariance = (
        series.variance(with_patch, BASE)
        + series.variance(without_patch, variant)
        - series.variance(with_patch, variant)
        - series.variance(without_patch, BASE)
    ) / 2
    intervals = (series.interval(BASE, variant), series.interval(without_patch, with_patch))
    usable = next(
        (interval for interval in intervals if interval is not None and interval.se > 0), None
    )
    # The square of half the width, in standard errors.
    width2 = (math.log(usable.high / usable.low) / 2 / usable.se) ** 2 if usable else 0.0
    square = b * b - width2 * series.variance(BASE, variant)
    if square <= 0:
        return None
    middle = a * b - width2 * covariance
    rest = a * a - width2 * series.variance(without_patch, with_patch)
    root = math.sqrt(max(0.0, middle * middle - square * rest))
    return (middle - root) / square, (middle + root) / square
