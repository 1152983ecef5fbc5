"""A variant compared with base, at one point or over all, and the verdict on it."""

from typing import Literal

from kteardown.model.record_fields import ParamValue
from kteardown.model.workload import Better, FiniteModel

_DIGITS = 10
"""Significant digits of values computed with logarithms and roots, whose last digits depend on the
host."""


def tidy(value: float | None) -> float | None:
    """Return ``value`` with ten significant digits; None is kept."""
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def tidy_pair(pair: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return both ends of an interval with ten significant digits; None is kept."""
    return (
        None if pair is None else (float(f"{pair[0]:.{_DIGITS}g}"), float(f"{pair[1]:.{_DIGITS}g}"))
    )


Outside = Literal["agrees", "counted", "unresolved", "contradicts"]
"""What is seen from outside of a saving that a kernel or a script reports itself.

The call that contains it ``agrees``, or the instructions of the changed functions do (``counted``);
neither can show it (``unresolved``); or they do not show it though they would (``contradicts``): it
is not better.
"""
Verdict = Literal["broken", "better", "worse", "same", "inconclusive", "mixed"]
"""``mixed`` is a verdict of metrics only: changes at its points are opposite, or their mean hides
them."""


class Valued(FiniteModel):
    """Something with values of a metric: ``unit`` is that of the workload's file, ``value_unit``
    theirs.

    On the instruction clock a metric in ns has values in instructions. ``value_unit`` is empty in
    results that did not record it.
    """

    workload: str
    metric: str
    unit: str
    value_unit: str = ""


class Summary(FiniteModel):
    """The summary of one kernel at one point: ``median`` is the median over boots of the medians
    inside them.

    ``mean`` and ``sd`` are over all samples. ``n`` counts samples, ``boots`` boots. ``percentile``
    is the median over boots of the percentile inside them if a percentile is compared, else None.
    """

    median: float
    mean: float
    sd: float
    n: int
    boots: int
    percentile: float | None = None

    @property
    def compared(self) -> float:
        """Return the compared value: the percentile if one is compared, else the median."""
        return self.median if self.percentile is None else self.percentile


class Judged(Valued):
    """A variant compared with base, and the verdict on it.

    ``statistic`` is computed inside each boot: ``median``, or a percentile such as ``p99`` or
    ``p99.9``. ``ratio`` is changed / base of it; ``ci`` is its interval at ``confidence``; ``mde``
    is the smallest detectable change.

    The twins give intervals of base compared with a kernel that does the same: ``null_ci`` of the
    A/A twin, ``layout_ci`` of the layout twin; None without a twin. A p-value is None if nothing
    can be tested. ``p`` is the two-sided p-value of no change; ``p_same`` is that of a true change
    of the margin or more (two one-sided tests).
    """

    variant: str
    better: Better
    statistic: str = "median"
    ratio: float | None
    ci: tuple[float, float] | None
    confidence: float
    mde: float | None
    verdict: Verdict
    reason: str = ""
    """The reason of the verdict, in a few words."""
    exact: bool = False
    null_ci: tuple[float, float] | None = None
    layout_ci: tuple[float, float] | None = None
    p: float | None = None
    p_same: float | None = None
    same_within: float | None = None
    """The margin of the verdict "same"; None in results that did not record it."""
    outside: Outside | None = None
    """Of a figure that the kernel or the script made itself and that is better; None of any
    other."""


class Comparison(Judged):
    """One metric at one point, changed compared with base.

    ``exact`` (instruction clock): every sample of each side is the same number, or both sides are
    equal seed by seed. ``p_holm`` is ``p`` after the correction for the number of tests, which the
    verdict uses: for a headline metric that of the metrics and their points, else Holm's over the
    other metrics. ``p_rank`` is that of a rank test over boots (wall clock). ``outliers`` counts
    the boots of both sides that ``Result.outliers`` names.
    """

    point: dict[str, ParamValue]
    base: Summary
    changed: Summary
    p_holm: float | None = None
    p_rank: float | None = None
    outliers: int = 0


class MetricVerdict(Judged):
    """The verdict of one headline metric of one variant, over all its points together.

    ``ratio`` is the geometric mean over boots of the boots' own weighted geometric means over
    points. A metric with one point has the values of that point's comparison. ``points`` are the
    points that count, of the ``planned`` ones; ``boots`` the pairs of boots that have all of them.
    ``p_corrected`` is the p-value after the correction over headline metrics and variants, and
    ``p_mixed`` that of no opposite changes among the points. ``spread`` is the standard deviation
    over boots of the log ratio, and ``point_spread`` the median of those of the single points; None
    without a ratio.
    """

    points: int
    planned: int
    boots: int
    p_corrected: float | None = None
    p_mixed: float | None = None
    spread: float | None = None
    point_spread: float | None = None
