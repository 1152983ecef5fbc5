"""The chart of a line of the history: computes the positions of its marks; the template draws them."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from kteardown.history.lines import Line
from kteardown.report.history_tables import figure_text, size, when

WIDTH, HEIGHT = 720, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 12, 14, 40
_ROOM = 0.08
"""Free space above and below the figures, as a share of their span."""
_LABEL_WIDTH = 76


@dataclass(frozen=True)
class FigureMark:
    """A figure, with the range of its boots and the text of its tooltip."""

    x: float
    y: float
    top: float
    bottom: float
    label: str


@dataclass(frozen=True)
class Level:
    """The median between two changes of level."""

    left: float
    right: float
    y: float


@dataclass(frozen=True)
class Break:
    """A change of level, between two figures."""

    x: float
    verdict: str
    label: str


@dataclass(frozen=True)
class AxisLabel:
    """A label on an axis."""

    at: float
    text: str


@dataclass(frozen=True)
class Picture:
    """The marks, in the units of the view box."""

    dots: tuple[FigureMark, ...]
    levels: tuple[Level, ...]
    breaks: tuple[Break, ...]
    values: tuple[AxisLabel, ...]
    releases: tuple[AxisLabel, ...]
    left: float = _LEFT
    right: float = WIDTH - _RIGHT
    bottom: float = HEIGHT - _BOTTOM
    width: int = WIDTH
    height: int = HEIGHT


def picture(line: Line) -> Picture:
    """Return the marks of ``line``: figures from left to right at equal distances, larger values higher."""
    values = [figure.value for figure in line.figures]
    least, most = min(values), max(values)
    room = _ROOM * (most - least) or 0.5 * abs(most) or 1.0
    low, high = least - room, most + room

    def y(value: float) -> float:
        inside = min(max(value, low), high)
        return round(HEIGHT - _BOTTOM - (inside - low) / (high - low) * (HEIGHT - _TOP - _BOTTOM), 1)

    step = (WIDTH - _LEFT - _RIGHT) / len(values)

    def x(index: float) -> float:
        return round(_LEFT + (index + 0.5) * step, 1)

    dots = (
        FigureMark(
            x(index),
            y(figure.value),
            y(figure.high),
            y(figure.low),
            f"{figure.release}, {when(figure)}: {figure_text(line, figure.value)} ({figure.run})",
        )
        for index, figure in enumerate(line.figures)
    )
    marks = sorted({least, most})
    return Picture(
        dots=tuple(dots),
        levels=tuple(Level(x(a - 0.3), x(b - 0.7), y(value)) for a, b, value in _levels(line)),
        breaks=tuple(
            Break(x(s.index - 0.5), s.verdict, f"{s.verdict}: {size(line, s)}") for s in line.shifts
        ),
        values=tuple(AxisLabel(y(value), figure_text(line, value)) for value in marks),
        releases=tuple(AxisLabel(x(index), text) for index, text in _releases(line, step)),
    )


def _levels(line: Line) -> Iterator[tuple[int, int, float]]:
    """Yield the first figure, the one after the last, and the median of each level.

    Yields nothing if the line was not searched for changes of level.
    """
    if line.unlooked:
        return
    for start, end in pairwise([0, *(shift.index for shift in line.shifts), len(line.figures)]):
        yield start, end, statistics.median(figure.value for figure in line.figures[start:end])


def _releases(line: Line, step: float) -> Iterator[tuple[float, str]]:
    """Yield a label under the first figure of each release, unless it would overlap the one before."""
    last, free = "", 0.0
    for index, figure in enumerate(line.figures):
        if figure.release != last and index * step >= free:
            yield index, figure.release
            free = index * step + _LABEL_WIDTH
        last = figure.release
