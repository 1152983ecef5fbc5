"""Format numbers, changes and verdicts as plain ASCII text, which cover letters need."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kteardown.judge.verdicts import VERDICTS
from kteardown.model.both_clocks import OneClock
from kteardown.model.clock import Clock
from kteardown.model.judged import Comparison, Verdict
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Part
from kteardown.paths import shipped_table

WORDS: Mapping[str, Any] = shipped_table("report/words")
"""The longer texts of reports."""


@dataclass(frozen=True)
class Scale:
    """The unit in which a metric is printed: values are divided by ``divisor``."""

    divisor: float
    unit: str

    def text(self, value: float) -> str:
        """Return ``value`` in this unit as ``number`` does; unscaled values have no needless
        decimals."""
        scaled = value / self.divisor
        whole = self.divisor == 1 and (abs(scaled) >= 1000 or scaled == int(scaled))
        return f"{scaled:,.0f}" if whole else number(scaled)


_IN_INSTRUCTIONS: Mapping[str, Scale] = {
    "ns": Scale(1, "instructions"),
    "us": Scale(1e-3, "instructions"),
    "per_s": Scale(1, "per 1e9 instructions"),
}
"""Units of time on the instruction clock: one guest nanosecond is one instruction, and no time of a
host."""


def scale(unit: str, clock: Clock, values: Iterable[float]) -> Scale:
    """Return a unit in which the largest of ``values`` has few digits. Instructions are never
    scaled."""
    if clock == "instructions" and unit in _IN_INSTRUCTIONS:
        return _IN_INSTRUCTIONS[unit]
    if unit == "ns":
        largest = max((abs(value) for value in values), default=0.0)
        steps = ((1e4, 1.0, "ns"), (1e7, 1e3, "us"), (1e10, 1e6, "ms"))
        return next(
            (Scale(by, name) for below, by, name in steps if largest < below), Scale(1e9, "s")
        )
    if unit == "share":
        return Scale(0.01, "%")
    return Scale(1, {"kb": "kB", "per_s": "1/s", "per_cycle": "per cycle"}.get(unit, unit))


_REMEDIES: Mapping[str, str] = {
    "one seed gives no interval": "--seeds 2",
    "one boot gives no interval": "--boots 2 (on the instruction clock --seeds 2)",
}
"""By the begin of a reason, what to add to the command."""
_REMEDY_OF_CLOCK: Mapping[Clock, str] = {
    "instructions": "--seeds 2",
    "wall": "--boots 2",
    "contention": "--seeds 2",
}


_OPTION = re.compile(r" \(--[^()]*\)")
"""An option of the command, in parentheses behind the words that say what it does."""
_RESOLUTION = 0.0005
"""A smaller part of the whole rounds to 0.0%."""
_SMALL = f"<{_RESOLUTION:.2%}"


def number(value: float) -> str:
    """Return ``value`` with four significant digits and thousands separators, without an
    exponent."""
    if value == 0:
        return "0"
    decimals = max(0, min(6, 3 - math.floor(math.log10(abs(value)))))
    return f"{value:,.{decimals}f}"


def percent(ratio: float, decimals: int = 1) -> str:
    """Return a ratio as a change in percent: 0.39 is ``-61.0%``."""
    # Adding 0.0 turns -0.0, a possible result of rounding, into 0.0.
    return f"{round((ratio - 1) * 100, decimals) + 0.0:+,.{decimals}f}%"


def percent_of(size: float) -> str:
    """Return a size for a sentence, with two digits that matter: ``61%``, ``1.0%``, ``0.34%``."""
    value = 100 * size
    if value >= 9.95:
        return f"{value:,.0f}%"
    if value >= 0.995:
        return f"{value:.1f}%"
    return f"{value:.2g}%" if value >= 0.01 else "less than 0.01%"


def saved_percent(ratio: float) -> str:
    """Return what a ratio below 1 saves: as ``percent_of``, and ``99.7%`` where nearly all is
    saved."""
    value = 100 * (1 - ratio)
    if not 99.5 <= value < 100:
        return percent_of(1 - ratio)
    return next((f"{value:.{n}f}%" for n in (1, 2, 3) if round(value, n) < 100), "99.999%")


def counted(number: int, what: str) -> str:
    """Return a number with its noun: ``1 boot``, ``2 boots``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def size_of(ratio: float) -> float:
    """Return how large a change is, in either direction."""
    return abs(math.log(ratio)) if ratio > 0 else math.inf


def change(comparison: Comparison, decimals: int = 1) -> str:
    """Return the change of a comparison with its interval: ``-61.0% [-61.2, -60.8]`` or ``-61.0%
    exact``; ``both 0`` if nothing was counted on either side."""
    if comparison.ratio is None and comparison.base.mean == comparison.changed.mean == 0:
        return "both 0"
    return change_of(comparison.ratio, comparison.ci, exact=comparison.exact, decimals=decimals)


def change_of(
    ratio: float | None, ci: tuple[float, float] | None, *, exact: bool = False, decimals: int = 1
) -> str:
    """Return a ratio and its interval as a change in percent."""
    if ratio is None:
        return "no ratio"
    text = percent(ratio, decimals)
    if exact:
        return f"{text} exact"
    return f"{text} {interval(ci, decimals)}" if ci else text


def speedup(
    ratio: float | None, ci: tuple[float, float] | None = None, *, exact: bool = False
) -> str:
    """Return base / changed with its interval: ``1.18x [1.15, 1.21]`` or ``1.18x exact``."""
    if not ratio:
        return "no ratio"
    text = f"{1 / ratio:.2f}x"
    if exact:
        return f"{text} exact"
    return text if ci is None or not ci[0] else f"{text} [{1 / ci[1]:.2f}, {1 / ci[0]:.2f}]"


def share(value: float | None) -> str:
    """Return a relative size in percent: ``6.1%``. A positive size that rounds to zero is
    ``<0.05%``."""
    if value is None:
        return "-"
    if value >= 10:
        return ">1,000%"
    return _SMALL if 0 < value < _RESOLUTION else f"{value:.1%}"


def detectable(mde: float | None) -> str:
    """Return a smallest detectable change: ``6.1%``, ``<0.05%``, or ``-`` without one.

    Of samples whose boots agree it is 0, which is less than this text can show and not a change of
    0.0%.
    """
    return _SMALL if mde is not None and mde < _RESOLUTION else share(mde)


def detectable_span(mdes: Sequence[float]) -> str:
    """Return the smallest and the largest of ``mdes``: ``1.2% to 6.1%``, or one text for both."""
    return " to ".join(dict.fromkeys((detectable(min(mdes)), detectable(max(mdes)))))


def portion(part: Part) -> str:
    """Return the share of the whole that a part has: ``65.1% [60.2, 70.0]`` or ``65.1% exact``."""
    if part.share is None:
        return "-"
    # Adding 0.0 turns -0.0, a possible result of rounding, into 0.0.
    text, *ends = (
        f"{round(value * 100, 1) + 0.0:.1f}" for value in (part.share, *(part.share_ci or ()))
    )
    return f"{text}% [{', '.join(ends)}]" if ends and not part.exact else f"{text}% exact"


def probability(p: float | None) -> str:
    """Return a probability with three decimals: ``0.031`` or ``<0.001``."""
    if p is None:
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def interval(ci: tuple[float, float], decimals: int = 1) -> str:
    """Return an interval of a ratio as an interval of changes in percent."""
    low, high = (percent(end, decimals).rstrip("%") for end in ci)
    return f"[{low}, {high}]"


def decimals(comparisons: Iterable[Comparison | Part | OneClock]) -> int:
    """Return the number of decimals for changes: one, or two where most intervals are narrower than
    0.2%."""
    widths = sorted(c.ci[1] - c.ci[0] for c in comparisons if c.ci and not c.exact)
    return 2 if widths and widths[len(widths) // 2] < 0.002 else 1


def parameter(value: ParamValue) -> str:
    """Return the value of a parameter as text."""
    return f"{value:,}" if isinstance(value, int) else value


def point_text(point: Mapping[str, ParamValue]) -> str:
    """Return a point as text: ``zombies=30,000``."""
    return " ".join(f"{name}={parameter(value)}" for name, value in point.items())


def with_remedy(reason: str, clock: Clock | None = None) -> str:
    """Return the reason of a verdict, with the option that makes the next run decide if one does.

    ``clock``: the clock of the verdict, if it is known.
    """
    option = next((option for start, option in _REMEDIES.items() if reason.startswith(start)), "")
    option = _REMEDY_OF_CLOCK[clock] if option and clock else option
    return f"{reason}, add {option}" if option else reason


def without_options(text: str) -> str:
    """Return a text without what ``with_remedy`` adds, and without options in parentheses.

    For a page: its readers need not have run the command, and it gives whole commands in one place.
    """
    for option in (*_REMEDIES.values(), *_REMEDY_OF_CLOCK.values()):
        text = text.replace(f", add {option}", "").replace(f"; add {option}", "")
    return _OPTION.sub("", text)


def verdict_counts(verdicts: Iterable[Verdict]) -> str:
    """Return how often each verdict occurs: ``5 better, 1 same``."""
    counts = Counter(verdicts)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
