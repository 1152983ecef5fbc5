"""Correct the tests of a report for their number: headline metrics first, then their points.

A family is a headline metric of a variant: the test of the metric over all its points, and those of
its points and growth laws. The whole alpha is divided over the hypotheses that are not rejected
yet:

- Every metric has 90% of its family's equal share of alpha, its points 10%.
- If a metric is rejected, half of what it had goes to the metrics that are not rejected, half to
  its points.
- Inside a family the points have equal parts of what the family has for them (Holm's procedure). If
  all of them are rejected, their part goes to the metrics that are not rejected, and at the end to
  other points.

A rejection never makes another part smaller, and the parts of all that is not rejected add up to at
most alpha. METHODOLOGY.md has the reasons and sources.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

METRIC_PART = 0.9
"""The part of a family's alpha that its metric has while it is not rejected; its points have the
rest."""
PASSED_ON = 0.5
"""The part of a rejected metric's alpha that the other metrics get; its own points get the rest."""
_Place = tuple[int, int | None]
"""The number of a family, and of a point in it; None is its metric."""
_Points = list[tuple[float, int]]
"""The p-values and the numbers of points that are not rejected."""


@dataclass(frozen=True)
class Family:
    """P-values of a metric and of its points; None if nothing can be tested.

    A metric with one point has no ``points``: the metric is the point.
    """

    metric: float | None
    points: tuple[float | None, ...] = ()

    @property
    def tested(self) -> bool:
        return self.metric is not None or any(p is not None for p in self.points)


def adjust(families: Sequence[Family]) -> list[Family]:
    """Return the adjusted p-values: the smallest alpha at which the procedure rejects each
    hypothesis."""
    adjusted: dict[_Place, float] = {}
    # Of each family the points that are not rejected yet, the next one first.
    left = [
        sorted((p, place) for place, p in enumerate(family.points) if p is not None)
        for family in families
    ]
    highest = 0.0
    while highest < 1 and (best := _best(families, adjusted, left)) is not None:
        (number, place), ratio = best
        highest = min(1.0, max(highest, ratio))
        adjusted[number, place] = highest
        if place is not None:
            left[number].pop(0)

    def of(p: float | None, number: int, place: int | None) -> float | None:
        return None if p is None else adjusted.get((number, place), 1.0)

    return [
        Family(
            of(family.metric, n, None),
            tuple(of(p, n, place) for place, p in enumerate(family.points)),
        )
        for n, family in enumerate(families)
    ]


def parts(families: int, points: int) -> tuple[float, float]:
    """Return the parts of alpha of a metric at the start, and of the first point if its metric is
    rejected.

    ``families`` is the number of metrics times variants, ``points`` the number of points of the
    metric.
    """
    if points <= 1:
        return 1 / families, 1 / families
    open_gate = 1 - METRIC_PART * PASSED_ON if families > 1 else 1.0
    return METRIC_PART / families, open_gate / families / points


def _best(
    families: Sequence[Family], adjusted: Mapping[_Place, float], left: Sequence[_Points]
) -> tuple[_Place, float] | None:
    """Return the hypothesis with the least p / part of alpha, and that; None if all are
    rejected."""
    waiting = [
        n for n, f in enumerate(families) if f.metric is not None and (n, None) not in adjusted
    ]
    candidates: list[tuple[float, int, int, _Place]] = []
    of_metric, of_points = _weights(families, waiting, left)
    for number in waiting:
        p = families[number].metric or 0.0
        candidates.append((p / of_metric[number], 0, number, (number, None)))
    for number, points in enumerate(left):
        if points:
            p, place = points[0]
            candidates.append((p * len(points) / of_points[number], 1, number, (number, place)))
    if not candidates:
        return None
    ratio, _, _, at = min(candidates)
    return at, ratio


def _weights(
    families: Sequence[Family], waiting: Sequence[int], left: Sequence[_Points]
) -> tuple[dict[int, float], list[float]]:
    """Return the part of alpha of each waiting metric, and of the points of each family
    together."""
    share = 1 / max(1, sum(family.tested for family in families))
    to_metrics = 0.0
    of_points = []
    of_metric = dict.fromkeys(waiting, 0.0)
    for number, (family, points) in enumerate(zip(families, left, strict=True)):
        metric_part = 0.0 if family.tested else 1.0
        if number in of_metric:
            metric_part = METRIC_PART if family.points else 1.0
            of_metric[number] = share * metric_part
        elif family.metric is not None:
            metric_part = PASSED_ON * (METRIC_PART if family.points else 1.0)
            to_metrics += share * metric_part
        rest = share * (1 - metric_part)
        of_points.append(rest if points else 0.0)
        to_metrics += 0.0 if points else rest
    if waiting:
        return {n: part + to_metrics / len(waiting) for n, part in of_metric.items()}, of_points
    open_families = sum(part > 0 for part in of_points)
    return {}, [part + to_metrics / open_families if part > 0 else 0.0 for part in of_points]
