"""Numbers and verdicts as people read them. Plain ASCII, for cover letters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kteardown.model.experiment import Clock
from kteardown.model.record import ParamValue
from kteardown.model.result import Comparison, Part, Verdict

VERDICTS: tuple[Verdict, ...] = ("better", "worse", "same", "inconclusive")

CLOCKS: Mapping[Clock, str] = {
    "instructions": "one guest nanosecond is one guest instruction, the same on every run and host. It tells "
    "path length, growth and memory. It does not tell caches, lock contention or the latency of interrupts "
    "between CPUs; several CPUs run in turn, rarely in another one.",
    "wall": "real time; the boots of all kernels interleaved in randomized blocks, base twice (A/A). It "
    "tells what this machine took, noise included; another machine can differ.",
}


@dataclass(frozen=True)
class Scale:
    """The unit in which a metric is printed: values are divided by ``divisor``."""

    divisor: float
    unit: str

    def text(self, value: float) -> str:
        """A value with thousands separators; whole where the unit was not scaled."""
        scaled = value / self.divisor
        whole = self.divisor == 1 and (abs(scaled) >= 1000 or scaled == int(scaled))
        return f"{scaled:,.0f}" if whole else number(scaled)


def scale(unit: str, clock: Clock, values: Iterable[float]) -> Scale:
    """A unit in which the largest of ``values`` has few digits; instructions are never scaled."""
    if unit == "ns":
        if clock == "instructions":
            return Scale(1, "instructions")
        largest = max((abs(value) for value in values), default=0.0)
        steps = ((1e4, 1.0, "ns"), (1e7, 1e3, "us"), (1e10, 1e6, "ms"))
        return next((Scale(by, name) for below, by, name in steps if largest < below), Scale(1e9, "s"))
    if unit == "share":
        return Scale(0.01, "%")
    return Scale(1, {"kb": "kB", "per_s": "1/s"}.get(unit, unit))


def number(value: float) -> str:
    """Four significant digits, thousands separated, no exponent."""
    if value == 0:
        return "0"
    decimals = max(0, min(6, 3 - math.floor(math.log10(abs(value)))))
    return f"{value:,.{decimals}f}"


def percent(ratio: float, decimals: int = 1) -> str:
    """A ratio as a change: 0.39 is -61.0%."""
    # Adding 0.0 turns the -0.0 that rounding leaves into 0.0.
    return f"{round((ratio - 1) * 100, decimals) + 0.0:+,.{decimals}f}%"


def change(comparison: Comparison, decimals: int = 1) -> str:
    """The change with its interval: ``-61.0% [-61.2, -60.8]``, ``-61.0% exact``."""
    return change_of(comparison.ratio, comparison.ci, exact=comparison.exact, decimals=decimals)


def change_of(
    ratio: float | None, ci: tuple[float, float] | None, *, exact: bool = False, decimals: int = 1
) -> str:
    """A ratio with its interval, as a change."""
    if ratio is None:
        return "no ratio"
    text = percent(ratio, decimals)
    if exact:
        return f"{text} exact"
    return f"{text} {interval(ci, decimals)}" if ci else text


def speedup(ratio: float | None, ci: tuple[float, float] | None = None, *, exact: bool = False) -> str:
    """Base / changed with its interval: ``1.18x [1.15, 1.21]``, ``1.18x exact``."""
    if not ratio:
        return "no ratio"
    text = f"{1 / ratio:.2f}x"
    if exact:
        return f"{text} exact"
    return text if ci is None or not ci[0] else f"{text} [{1 / ci[1]:.2f}, {1 / ci[0]:.2f}]"


def share(value: float | None) -> str:
    """A relative size: ``6.1%``."""
    return "-" if value is None else f"{value:.1%}" if value < 10 else "> 1,000%"


def portion(part: Part) -> str:
    """What a part is of the whole: ``65.1% [60.2, 70.0]``, ``65.1% exact``."""
    if part.share is None:
        return "-"
    text = f"{_hundredths(part.share)}%"
    if part.exact or part.share_ci is None:
        return f"{text} exact"
    return f"{text} [{_hundredths(part.share_ci[0])}, {_hundredths(part.share_ci[1])}]"


def _hundredths(value: float) -> str:
    # Adding 0.0 turns the -0.0 that rounding leaves into 0.0.
    return f"{round(value * 100, 1) + 0.0:.1f}"


def probability(p: float | None) -> str:
    """Three decimals: ``0.031``, ``<0.001``."""
    if p is None:
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def interval(ci: tuple[float, float], decimals: int = 1) -> str:
    """An interval of a ratio as one of changes in percent."""
    low, high = (percent(end, decimals).rstrip("%") for end in ci)
    return f"[{low}, {high}]"


def decimals(comparisons: Iterable[Comparison | Part]) -> int:
    """One decimal, or two where most intervals are narrower than a tenth of a percent."""
    widths = sorted(c.ci[1] - c.ci[0] for c in comparisons if c.ci and not c.exact)
    return 2 if widths and widths[len(widths) // 2] < 0.002 else 1


def parameter(value: ParamValue) -> str:
    """A parameter's value as text."""
    return f"{value:,}" if isinstance(value, int) else value


def place(point: Mapping[str, ParamValue]) -> str:
    """A point as text: ``zombies=30,000``."""
    return " ".join(f"{name}={parameter(value)}" for name, value in point.items())


def sentence(metric: str, variant: str, comparisons: Sequence[Comparison]) -> str:
    """What one variant did to one metric: ``V: better on 2 of 3 points of M (-61.0% at ...), same on 1``."""
    counts = Counter(comparison.verdict for comparison in comparisons)
    seen = [verdict for verdict in VERDICTS if counts[verdict]]
    first, rest = seen[0], seen[1:]
    last = [comparison for comparison in comparisons if comparison.verdict == first][-1]
    where = f" at {place(last.point)}" if last.point else ""
    detail = last.reason if first == "same" else f"{_short(last)}{where}"
    share = "" if len(comparisons) == 1 else f"on {_of(counts[first], len(comparisons))} points of "
    others = "".join(f", {verdict} on {counts[verdict]}" for verdict in rest)
    return f"{variant}: {first} {share or 'on '}{metric} ({detail}){others}"


def tone(comparisons: Iterable[Comparison]) -> Verdict:
    """One verdict for several, the most alarming first."""
    seen = {comparison.verdict for comparison in comparisons}
    order: tuple[Verdict, ...] = ("worse", "better", "inconclusive", "same")
    return next((verdict for verdict in order if verdict in seen), "inconclusive")


def _short(comparison: Comparison) -> str:
    if comparison.verdict == "inconclusive":
        return change(comparison)
    if comparison.ratio is not None:
        return percent(comparison.ratio)
    return f"{number(comparison.base.median)} to {number(comparison.changed.median)}"


def _of(count: int, total: int) -> str:
    return f"all {total}" if count == total else f"{count} of {total}"
