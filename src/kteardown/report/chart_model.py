"""What a chart shows, before anything is drawn: its series, axes, rows and frames."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from kteardown.judge.metrics import Group
from kteardown.model.judged import Verdict

KERNEL_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
DASHES = ("", "", "7 4", "7 3 2 3", "12 5")
DOTTED = "1.5 4"
_VARIANTS = 5


@dataclass(frozen=True)
class Mark:
    """A value, with the ends of its interval and the text that is shown when the pointer is on it.

    ``x`` is a number, or that of a column. ``base`` is where a bar begins, which ends at ``y``.
    """

    x: float
    y: float
    text: str = ""
    low: float | None = None
    high: float | None = None
    base: float = 0.0


@dataclass(frozen=True)
class PlotSeries:
    """Marks of one colour.

    ``symbol`` is a symbol of ``page/symbols.svg`` with or without ``-open``, ``dot`` for very many
    marks, ``bar``, ``median`` for a short line, or empty. ``size`` is the width of a bar or a
    median, as a part of the column, or the diameter of dots in CSS pixels. ``dash`` has the lengths
    of dashes and gaps of the line that connects the marks, in CSS pixels: empty for a solid line,
    None for no line.
    """

    name: str
    colour: str
    marks: tuple[Mark, ...]
    symbol: str = ""
    dash: str | None = None
    width: float = 2
    size: float = 0.0
    variant: str = ""
    in_legend: bool = True


@dataclass(frozen=True)
class Axis:
    """An axis of numbers, or of columns if there are ``names``, whose lines are separated by
    newlines.

    With ``zero`` the axis begins at zero, unless it is logarithmic.
    """

    title: str = ""
    log: bool = False
    zero: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plot:
    """Series in one system of axes. Those drawn later are above those drawn before."""

    x: Axis
    y: Axis
    series: tuple[PlotSeries, ...]

    def logarithmic(self) -> "Plot | None":
        """Return the plot with logarithmic axes, which have only positive numbers; None if no
        number is.

        Its marks have no texts, which the plot with linear axes has.
        """
        x, y = (
            replace(axis, title=f"{axis.title}, logarithmic", log=True) for axis in (self.x, self.y)
        )
        series = [
            replace(
                line,
                marks=tuple(
                    replace(mark, text="") for mark in line.marks if mark.x > 0 and mark.y > 0
                ),
            )
            for line in self.series
        ]
        return Plot(x, y, tuple(series)) if any(line.marks for line in series) else None


@dataclass(frozen=True)
class FlameFrame:
    """A function in a flame graph: its place in percent of the width, and its depth.

    ``more`` is from -1 to 1: by how much more time was in it than on base.
    """

    left: float
    width: float
    depth: int
    label: str
    text: str
    more: float


Flame = tuple[FlameFrame, ...]
"""A flame graph, with the outermost function at the top."""


class Row(NamedTuple):
    """A row of a forest plot: its picture in SVG, and ``reason`` why its verdict is no other."""

    label: str
    picture: str
    text: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Forest:
    """Every change of one variant: on a page its rows are elements of the page, in a file they are
    drawn.

    ``lines`` and ``labels`` are those of the axis, in SVG.
    """

    variant: str
    lines: str
    labels: str
    metrics: tuple[tuple[Group, list[Row]], ...]
    verdicts: list[Verdict]
    twins: list[tuple[str, str]]
    """The twins that have intervals, each with its description."""
    several: bool
    """Whether the metrics are of several workloads."""


@dataclass(frozen=True)
class Chart:
    """One chart. ``about`` describes it for screen readers; ``notes`` are shown below it."""

    name: str
    title: str
    about: str
    drawn: Plot | Flame | Forest
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gallery:
    """Charts of one kind, of which the page shows the one that the selected options name.

    ``charts`` has the charts by their options, one for each of ``labels``. ``first`` is the initial
    selection.
    """

    name: str
    labels: tuple[str, ...]
    charts: Mapping[tuple[str, ...], Chart]
    first: tuple[str, ...]
    metric: str = ""

    @property
    def choices(self) -> list[tuple[int, str, list[str]]]:
        """Return the position in the keys, the label and the options, where there is more than
        one."""
        every = [
            (n, label, list(dict.fromkeys(key[n] for key in self.charts)))
            for n, label in enumerate(self.labels)
        ]
        return [choice for choice in every if len(choice[2]) > 1]

    @property
    def ordered(self) -> list[tuple[str, Chart]]:
        """Return the charts, the initial one first, each with the numbers of its options in
        ``choices``."""
        choices = self.choices
        every = sorted(self.charts.items(), key=lambda chart: chart[0] != self.first)
        return [
            (" ".join(str(options.index(key[n])) for n, _, options in choices), c)
            for key, c in every
        ]


def of_kernel(
    kernel: str, kernels: Sequence[str], marks: Sequence[Mark], name: str = ""
) -> PlotSeries:
    """Return the line of a kernel in its colour, with its symbol and its dashes."""
    at = 0 if kernel == "base" else 1 + _position(kernel, kernels)
    return PlotSeries(
        name=name or kernel,
        colour=colour(kernel, kernels),
        marks=tuple(marks),
        symbol=KERNEL_SYMBOLS[at and 1 + (at - 1) % (len(KERNEL_SYMBOLS) - 1)],
        dash=DASHES[at and 1 + (at - 1) % (len(DASHES) - 1)],
        variant=kernel,
    )


def colour(kernel: str, kernels: Sequence[str]) -> str:
    """Return the colour of a kernel: grey for base and its twins, by position in ``kernels`` for
    variants."""
    if kernel == "base":
        return "base"
    if kernel.startswith("base-"):
        return "twin"
    return f"kernel{_position(kernel, kernels) % _VARIANTS}"


def _position(kernel: str, kernels: Sequence[str]) -> int:
    variants = [name for name in kernels if name != "base" and not name.startswith("base-")]
    return variants.index(kernel) if kernel in variants else 0


def slug(*words: str) -> str:
    """Return a name for a file or an anchor, with dashes instead of special characters."""
    text = "-".join(word for word in words if word).replace(",", "")
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-")
