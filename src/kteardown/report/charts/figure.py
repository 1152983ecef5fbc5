"""What a chart is: plain data, which `drawing` draws; and the colours of reports by their meaning.

A chart names its colours, such as ``base`` or ``better``.

Verdicts are blue and vermillion; kernels are grey, green, purple, amber and sky blue. They follow the palette
of M. Okabe and K. Ito, "Color Universal Design" (2008), which people with any kind of colour blindness can
distinguish. No information is shown by colour alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kteardown.model.result import Verdict

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

    ``symbol`` is a symbol of ``page/symbols.svg`` with or without ``-open``, ``dot`` for very many marks,
    ``bar``, ``median`` for a short line, or empty. ``size`` is the width of a bar or a median, as a part of
    the column, or the diameter of dots in CSS pixels. ``dash`` has the lengths of dashes and gaps of the line
    that connects the marks, in CSS pixels: empty for a solid line, None for no line.
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
    """An axis of numbers, or of columns if there are ``names``, whose lines are separated by newlines.

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

    def logarithmic(self) -> Plot | None:
        """Return the plot with logarithmic axes, which have only positive numbers; None if no number is.

        Its marks have no texts, which the plot with linear axes has.
        """
        x, y = (replace(axis, title=f"{axis.title}, logarithmic", log=True) for axis in (self.x, self.y))
        series = [
            replace(
                one, marks=tuple(replace(mark, text="") for mark in one.marks if mark.x > 0 and mark.y > 0)
            )
            for one in self.series
        ]
        return Plot(x, y, tuple(series)) if any(one.marks for one in series) else None


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


@dataclass(frozen=True)
class Flame:
    """A flame graph, with the outermost function at the top."""

    frames: tuple[FlameFrame, ...]


@dataclass(frozen=True)
class Row:
    """A row of a forest plot: its picture in SVG, and ``reason`` why its verdict is no other.

    The heading of a metric, and the row of the labels, have no verdict.
    """

    label: str
    picture: str
    text: str = ""
    verdict: Verdict | None = None
    reason: str = ""


@dataclass(frozen=True)
class Rows:
    """A forest plot: on a page its rows are elements of the page, in a file they are drawn."""

    rows: tuple[Row, ...]
    key: tuple[tuple[str, str], ...]
    """What the pictures show: SVG that is 18 px wide, and its description."""


@dataclass(frozen=True)
class Chart:
    """One chart. ``about`` describes it for screen readers; ``notes`` are shown below it."""

    name: str
    title: str
    about: str
    drawn: Plot | Flame | Rows
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
        """Return the position in the keys, the label and the options, where there is more than one."""
        every = [
            (n, label, list(dict.fromkeys(key[n] for key in self.charts)))
            for n, label in enumerate(self.labels)
        ]
        return [choice for choice in every if len(choice[2]) > 1]

    @property
    def ordered(self) -> list[tuple[str, Chart]]:
        """Return the charts, the initial one first, each with the numbers of its options in ``choices``."""
        choices = self.choices
        every = sorted(self.charts.items(), key=lambda chart: chart[0] != self.first)
        return [(" ".join(str(options.index(key[n])) for n, _, options in choices), c) for key, c in every]


def of_kernel(kernel: str, kernels: Sequence[str], marks: Sequence[Mark], name: str = "") -> PlotSeries:
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
    """Return the colour of a kernel: grey for base and its twins, by position in ``kernels`` for variants."""
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


_COLOURS = {
    "page": ("#f6f7f9", "#0f1216"),
    "panel": ("#ffffff", "#171b21"),
    "raised": ("#ffffff", "#222830"),
    "ink": ("#1b1f24", "#e6e9ed"),
    "muted": ("#59636e", "#a2acb8"),
    "line": ("#c9d0d8", "#3d4651"),
    "grid": ("#e9ecf0", "#272e37"),
    "link": ("#0b5cad", "#7cbcf5"),
    "focus": ("#0b5cad", "#7cbcf5"),
    "broken": ("#a8071a", "#ff8a94"),
    "better": ("#0b67b2", "#62b0ee"),
    "worse": ("#b24706", "#f28a4b"),
    "same": ("#5f6b77", "#a2acb8"),
    "mixed": ("#7a3e9d", "#cf9cf0"),
    "inconclusive": ("#8a6100", "#e0b84c"),
    "broken-soft": ("#fde3e6", "#4d1620"),
    "better-soft": ("#e3eff9", "#17324a"),
    "worse-soft": ("#fceadf", "#452614"),
    "same-soft": ("#eceff2", "#272e37"),
    "mixed-soft": ("#f3e8fa", "#38234a"),
    "inconclusive-soft": ("#faf0d7", "#3b3014"),
    "null": ("#d5dae0", "#39414b"),
    "base": ("#59636e", "#a2acb8"),
    "twin": ("#9aa4ae", "#6d7884"),
    "kernel0": ("#007a58", "#35c296"),
    "kernel1": ("#a8437f", "#e08fc2"),
    "kernel2": ("#b87400", "#e8ad3f"),
    "kernel3": ("#2789c4", "#79c3f2"),
    "kernel4": ("#6a51a3", "#b4a0ea"),
    "posted": ("#1b1f24", "#e6e9ed"),
    "flame-less": ("#74aedb", "#2b6699"),
    "flame-none": ("#ece8e1", "#4a4f56"),
    "flame-more": ("#e58f5f", "#a5501f"),
    "flame-ink": ("#1b1f24", "#f4f5f7"),
}
LIGHT: Mapping[str, str] = {name: light for name, (light, _) in _COLOURS.items()}
DARK: Mapping[str, str] = {name: dark for name, (_, dark) in _COLOURS.items()}


def stylesheet() -> str:
    """Return both themes as CSS custom properties; the default is the theme of the system."""
    light, dark = ("".join(f"--{name}:{value};" for name, value in theme.items()) for theme in (LIGHT, DARK))
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f'@media (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{color-scheme:dark;{dark}}}}}\n'
        f':root[data-theme="dark"]{{color-scheme:dark;{dark}}}\n'
        f"@media print{{:root:not(#always){{color-scheme:light;{light}}}}}\n"
    )
