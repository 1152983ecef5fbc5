"""The tested commits of a bisection in the order of history: on one line of text, and as a chart."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kteardown.report.charts import Axis, Chart, Mark, Plot, PlotSeries

_WIDTH = 72
_KINDS = (
    ("good", False, "better", "circle"),
    ("bad", True, "worse", "square"),
    ("no value, or uncertain", None, "inconclusive", "x"),
)


class CommitValue(NamedTuple):
    """A tested commit: its place in the history after the good one, its value also in words, its subject."""

    at: int
    is_bad: bool | None
    value: float | None
    ci: tuple[float, float] | None
    figures: str
    text: str


def line(tested: Iterable[CommitValue], last: int, left: Iterable[int]) -> str:
    """Return the history up to the place ``last`` on one line.

    A tested commit is ``o`` if it is good, ``#`` if it is bad, and ``?`` without a value. The change may be
    at the places ``left``, which are ``=``.
    """
    letters = ["-"] * _WIDTH
    marks = [(at, "=") for at in left]
    marks += [(one.at, {False: "o", True: "#", None: "?"}[one.is_bad]) for one in tested]
    for at, letter in marks:
        letters[round(at * (_WIDTH - 1) / max(last, 1))] = letter
    return "".join(letters)


def chart(tested: Sequence[CommitValue], title: str, unit: str) -> Chart:
    """Return the chart of values, which are in ``unit``, with their intervals."""
    least = min((one.value for one in tested if one.value is not None), default=0.0)
    series = []
    for name, is_bad, colour, symbol in _KINDS:
        marks = [
            Mark(
                one.at,
                least if one.value is None else one.value,
                f"{one.figures} {one.text}",
                *(one.ci or ()),
            )
            for one in tested
            if one.is_bad is is_bad
        ]
        series += [PlotSeries(name, colour, tuple(marks), symbol)] if marks else []
    plot = Plot(Axis("commits after the good one"), Axis(unit), tuple(series))
    return Chart("commits", title, f"{len(tested)} tested commits with their values.", plot)
