"""Whether a cost grows faster than the number of objects, the verdict of the hunt, and how far it
grows.

METHODOLOGY.md has the conditions of ``superlinear``, a find, and of the other verdicts. The
constant part of a cost, such as setup, belongs to no object: it is left out of every rule, so
adding a constant changes no find. Costs that are no find are classified by the power law of all
sizes (``kteardown.analysis.growth.fit``).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from kteardown.analysis.growth.fit import Costs, power

Array = NDArray[np.float64]

DOUBLING = 1.7
"""Sizes whose ratio is at least this are a doubling; confirmation has sizes with a ratio of about
2."""
POWERS: Array = np.round(np.linspace(-1.0, 5.0, 601), 2)
"""The exponents that are tried; an interval that reaches an end of them is unbounded."""
Verdict = Literal["superlinear", "linear", "sublinear", "constant", "unknown"]

MIN_SIZES = 4
"""Sizes, each a doubling apart from the next: two successive doublings have two exponents."""
STEEP = 1.15
"""A find has exponents above this."""
SHARE = 0.2
"""A find has at least this share of its cost in the superlinear part."""
WORTH_CONFIRMING = 1.1
"""A kind with an exponent above this in the screen is confirmed: less than ``STEEP``, since one
seed errs."""
MEMORY_WORTH_CONFIRMING = 1.25
"""The same for memory: small numbers of objects find room in slabs that are there, so all take less
each."""
NOTICED = 10
"""What the screen asks for has grown by more than this many floors at the largest size."""
MAY_RISE = 1.3
"""An unknown cost with a larger exponent at the last doubling may be superlinear: its bounds are
too wide."""
_MIN_FOR_CONSTANT = 5
_CONSTANT = 0.1
"""A constant cost grows by less than this share over all sizes."""
_FLAT = 0.85
_HALF = 0.5
"""Exponents from ``_FLAT`` to ``STEEP`` are linear, if the interval is within ``_HALF`` of 1."""


def spaced(largest: int, count: int, factor: int = 2) -> tuple[int, ...]:
    """Return ``count`` sizes, each exactly ``factor`` times the one before and the last about
    ``largest``.

    They are at least a tenth away from powers of two: a table that doubles does so there, and then
    exactly once between two sizes, so that its steps double with the sizes and the cost stays
    linear. The last size is never above ``largest``; ValueError if that is below 5 times ``factor``
    to the power of ``count`` - 1.
    """
    first = largest // factor ** (count - 1)
    if first < 5:
        raise ValueError(
            f"{largest:,} is too small for {count} sizes that are a factor of {factor} apart"
        )
    power = 1 << (first.bit_length() - 1)
    if first > 1.8 * power:
        first = int(1.8 * power)
    elif first < 1.1 * power:
        first = int(0.9 * power)
    return tuple(first * factor**i for i in range(count))


@dataclass(frozen=True, eq=False)
class Curve:
    """The cost of ``sizes`` objects: making, synchronous or deferred in instructions, or held
    memory in kB.

    ``sizes`` are positive and ascend. ``rows`` has the shape (seeds, sizes), and NaN where a trial
    has no figure, because it did not end or was not begun. Differences of two costs below
    ``floor``, in the unit of the costs, are noise of the measurement, such as one timer tick more.

    Raises ValueError if the shapes do not fit, a size is not above the one before, or the floor is
    negative.
    """

    sizes: tuple[int, ...]
    rows: Array
    floor: float

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or self.rows.shape[1] != len(self.sizes):
            raise ValueError(
                f"costs have the shape {self.rows.shape}, not (seeds, {len(self.sizes)})"
            )
        if any(b <= a for a, b in pairwise((0, *self.sizes))):
            raise ValueError(f"sizes must be positive and ascend: {self.sizes}")
        if not self.floor >= 0:
            raise ValueError(f"the floor must not be negative: {self.floor}")

    @property
    def increments(self) -> Array:
        """Return what each size costs more than the one before, of the shape (seeds, sizes - 1)."""
        return np.diff(self.rows, axis=1)

    def at(self, columns: Sequence[int]) -> "Curve":
        """Return only the sizes at these positions, which ascend."""
        return Curve(tuple(self.sizes[c] for c in columns), self.rows[:, list(columns)], self.floor)

    def complete(self) -> "Curve":
        """Return sizes and seeds without a missing cost.

        Seeds without any cost are left out. If two or more remain, two are kept: the size with the
        most missing costs is left out, the largest of several, until two seeds have all others.
        Then the seeds that lack one are left out.
        """
        rows = self.rows[np.isfinite(self.rows).any(axis=1)]
        columns = list(range(len(self.sizes))) if len(rows) else []
        while columns:
            missing = ~np.isfinite(rows[:, columns])
            whole = ~missing.any(axis=1)
            if np.count_nonzero(whole) >= min(2, len(rows)):
                return Curve(self.at(columns).sizes, rows[whole][:, columns], self.floor)
            counts = missing.sum(axis=0)
            columns.pop(int(np.flatnonzero(counts == counts.max())[-1]))
        return Curve((), np.empty((0, 0)), self.floor)

    def ladder(self) -> "Curve":
        """Return the largest size and, going down, each next one that is at least a doubling
        apart."""
        columns: list[int] = []
        for column in reversed(range(len(self.sizes))):
            if not columns or self.sizes[columns[0]] >= DOUBLING * self.sizes[column]:
                columns.insert(0, column)
        return self.at(columns)


@dataclass(frozen=True)
class Exponent:
    """An exponent between two one-sided bounds, infinite where the costs give none.

    NaN if neither increment is above zero. ``sizes`` are those from which it was computed.
    """

    sizes: tuple[int, ...]
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def exponent(curve: Curve, first: int, second: int, confidence: float) -> Exponent:
    """Return the exponent from the increments at these positions of a curve without missing costs.

    ``confidence`` is that of each bound. If a cost is a + b * n**p, what it grows by from n = c to
    n = d is

        ratio(p) = (d**p - c**p) / (b**p - a**p)

    times what it grows by from a to b: for a, b = c and d = N, 2N and 4N, two to the power of p.
    The exponent is the p for which the ratio is that of the increments: 1 for a linear cost and 2
    for a square, whatever the constant part.

    Its interval has each p for which "second increment - ratio(p) * first increment" does not
    differ significantly from zero by Student's t over the seeds, the inversion of E. Fieller (J.
    Royal Statistical Society B 16, 1954). So an increment of zero needs no logarithm. Each
    increment may in addition be wrong by the floor of its curve, however little the seeds differ: a
    deterministic clock gives seeds that agree to the last digit, and one seed has no spread.
    """
    earlier = curve.increments[:, first]
    later = curve.increments[:, second]
    ends = (*curve.sizes[first : first + 2], *curve.sizes[second : second + 2])
    ratios = ratio(ends, POWERS)
    contrasts = later[:, None] - ratios * earlier[:, None]
    error = half_width(contrasts, confidence) + (1 + ratios) * curve.floor
    middle = contrasts.mean(axis=0)
    not_more = np.flatnonzero(middle <= error)
    not_less = np.flatnonzero(middle >= -error)
    # Rounded outwards: the bounds themselves are rejected, and so is everything beyond them.
    low = POWERS[max(not_more[0] - 1, 0) if len(not_more) else -1]
    high = POWERS[min(not_less[-1] + 1, len(POWERS) - 1) if len(not_less) else 0]
    grown = float(earlier.mean())
    grown_later = float(later.mean())
    value = math.inf if grown_later > 0 else math.nan
    if grown > 0:
        value = float(np.interp(grown_later / grown, ratios, POWERS))
    return Exponent(
        tuple(dict.fromkeys(ends)),
        value,
        -math.inf if low == POWERS[0] else float(low),
        math.inf if high == POWERS[-1] else float(high),
    )


def ratio(ends: tuple[int | float, ...], powers: Array) -> Array:
    """Return by how much the increment between the last two ``ends`` exceeds that between the first
    two.

    ``powers`` has the exponents; the result has their shape.
    """
    a, b, c, d = ends
    p = np.where(np.abs(powers) < 1e-9, 1e-9, powers)
    ratios: Array = (c / a) ** p * np.expm1(p * math.log(d / c)) / np.expm1(p * math.log(b / a))
    return ratios


def half_width(figures: Array, confidence: float) -> Array:
    """Return how far the mean over seeds, the rows of ``figures``, may be from the truth, to either
    side."""
    # Zero for one seed, which does not show how seeds differ.
    seeds = len(figures)
    if seeds < 2:
        return np.zeros(figures.shape[1:])
    t = float(special.stdtrit(seeds - 1, confidence))
    return np.asarray(t * np.std(figures, axis=0, ddof=1) / math.sqrt(seeds))


@dataclass(frozen=True)
class Growth:
    """How a cost grows, and why this is the verdict.

    ``exponents`` are those of successive doublings, from the smallest on. ``share`` is the
    superlinear part of the cost at the largest size, as a share of what the cost grew by; None
    where it did not grow or sizes are too few. ``rising``: the cost may be superlinear, and a
    larger size would decide it.
    """

    verdict: Verdict
    reason: str
    exponents: tuple[Exponent, ...] = ()
    share: float | None = None
    rising: bool = False


def judge(curve: Curve, confidence: float = 0.95) -> Growth:
    """Return the verdict; ``confidence`` is that of each one-sided bound."""
    # With one seed the bounds contain the floor of the curve and no differences between boots.
    whole = curve.complete()
    steps = whole.ladder()
    if len(steps.sizes) < MIN_SIZES:
        count = len(steps.sizes)
        return Growth("unknown", f"{count} sizes are a doubling apart, and {MIN_SIZES} are needed")
    total = steps.rows[:, -1] - steps.rows[:, 0]
    error = float(half_width(total, confidence)) + curve.floor
    if total.mean() <= error:
        return _not_growing(whole, float(total.mean()), error)
    exponents = tuple(exponent(steps, i, i + 1, confidence) for i in range(len(steps.sizes) - 2))
    share, rises = _superlinear_part(steps)
    *_, before, last = exponents
    steep = [doubling.low >= _limit(doubling.sizes) for doubling in (before, last)]
    falls = _falls(steps, confidence)
    if all(steep) and share >= SHARE and rises and not falls:
        reason = (
            f"exponents {before} and {last} at the last two doublings; {share:.0%} of the cost is "
            "superlinear"
        )
        return Growth("superlinear", reason, exponents, share)
    if steep[-1]:
        reason = falls or _what_is_missing(exponents, share, steep=all(steep))
        return Growth("unknown", reason, exponents, share, rising=True)
    verdict, reason = _by_power_law(whole, confidence)
    return Growth(
        verdict, reason, exponents, share, rising=verdict == "unknown" and last.value > MAY_RISE
    )


def screen(curve: Curve, worth: float = WORTH_CONFIRMING) -> bool:
    """Return whether a kind is confirmed, from few sizes and usually one seed.

    Errs on the side of confirming: an exponent above ``worth`` at the largest sizes is enough if it
    may also be that of a find there, and so are costs of fewer than three sizes, or none at the
    largest one. A cost that grew there by less than ``NOTICED`` floors is too small to be looked
    at: on a real kernel, nine of ten kinds have such a cost that grows somehow.
    """
    whole = curve.complete()
    if len(whole.sizes) < 3 or whole.sizes[-1] != curve.sizes[-1]:
        return True
    if whole.increments[:, -1].mean() <= NOTICED * curve.floor:
        return False
    last = len(whole.sizes) - 2
    last_exponent = exponent(whole, last - 1, last, 0.5)
    return last_exponent.value > worth and last_exponent.high > _limit(last_exponent.sizes)


def may_be_steep(curve: Curve) -> bool:
    """Return whether more seeds may make a find of a cost that was confirmed with one."""
    # Both of the last doublings of a find are steep, so both exponents must be as ``screen`` asks
    # of one.
    judged = judge(curve)
    steep = [
        doubling.value > WORTH_CONFIRMING and doubling.high > _limit(doubling.sizes)
        for doubling in judged.exponents[-2:]
    ]
    return judged.verdict == "superlinear" or (len(steep) > 1 and all(steep))


def _superlinear_part(steps: Curve) -> tuple[float, bool]:
    """Return its share of what the cost grew by, and whether one more object costs more in every
    seed."""
    n = np.array(steps.sizes, dtype=np.float64)
    slopes = (steps.rows[:, -3] - steps.rows[:, 0]) / (n[-3] - n[0])
    grown = steps.rows[:, -1] - steps.rows[:, 0]
    above = grown - slopes * (n[-1] - n[0])
    rises = steps.increments[:, -1] / (n[-1] - n[-2]) > slopes
    return float(above.mean() / grown.mean()), bool(rises.all())


def _falls(steps: Curve, confidence: float) -> str:
    """Return between which sizes the cost falls, before the last two doublings, if it falls."""
    fall = steps.rows[:, 0] - steps.rows[:, -3]
    if fall.mean() <= half_width(fall, confidence) + steps.floor:
        return ""
    return f"the cost falls from {steps.sizes[0]:,} to {steps.sizes[-3]:,} objects before it grows"


def _limit(sizes: tuple[int, ...]) -> float:
    """Return what the exponent from these three sizes of a find is above."""
    n = np.array(sizes, dtype=np.float64)
    return max(STEEP, exponent(Curve(sizes, (n * np.log(n))[None, :], 0.0), 0, 1, 0.5).value)


def _what_is_missing(exponents: Sequence[Exponent], share: float, *, steep: bool) -> str:
    *_, before, last = exponents
    if not steep:
        return (
            f"exponent {last} at the last doubling, but {before} at the one before: measure a "
            "larger size to decide"
        )
    if share < SHARE:
        return (
            f"exponent {last}, but only {share:.0%} of the cost is superlinear: measure a larger "
            "size to decide"
        )
    return f"exponent {last}, but one more object did not cost more in every seed"


def _not_growing(whole: Curve, grown: float, error: float) -> Growth:
    level = float(np.abs(whole.rows).mean())
    sizes = f"from {whole.sizes[0]:,} to {whole.sizes[-1]:,} objects"
    if abs(grown) + error <= _CONSTANT * level and len(whole.sizes) >= _MIN_FOR_CONSTANT:
        return Growth("constant", f"the cost changes by less than {_CONSTANT:.0%} {sizes}")
    if grown < -error:
        return Growth("sublinear", f"the cost falls by {-grown:,.0f} {sizes}")
    text = f"the cost changes by {grown:,.0f} {sizes}"
    within = abs(grown) <= whole.floor
    return Growth(
        "unknown",
        f"{text}, {f'within the floor of {whole.floor:,.0f}' if within else f'+-{error:,.0f}'}",
    )


def _by_power_law(whole: Curve, confidence: float) -> tuple[Verdict, str]:
    # The weights of the power law would be relative to a constant part.
    first, second = whole.rows[:, :2].mean(axis=0)
    slope = (second - first) / (whole.sizes[1] - whole.sizes[0])
    rows: Array = whole.rows - max(0.0, float(first - slope * whole.sizes[0]))
    law = power(Costs(np.array(whole.sizes, dtype=np.float64), rows), confidence)
    if law.exponent is None or law.exponent_ci is None:
        return "unknown", "the costs do not bound the exponent"
    low, high = law.exponent_ci
    text = f"exponent {law.exponent:.2f} [{low:.2f}, {high:.2f}] over all sizes"
    if high < _FLAT:
        return "sublinear", text
    if 1 - _HALF <= low <= STEEP and high <= 1 + _HALF:
        return "linear", text
    return "unknown", f"{text}: {'not linear' if low > STEEP else 'too wide an interval'}"
