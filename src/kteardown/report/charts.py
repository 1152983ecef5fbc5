"""Charts: what they show, as plain data, and one drawing of it as SVG for pages and files, which may be PNG.

A chart names its colours by their meaning, such as ``base`` or ``better``. Verdicts are blue and vermillion;
kernels are grey, green, purple, amber and sky blue. They follow the palette of M. Okabe and K. Ito, "Color
Universal Design" (2008), which people with any kind of colour blindness can distinguish. No information is
shown by colour alone.

Positions from left to right are percentages and those from top to bottom are pixels, so on a page the text
keeps its size on a phone and on paper. Colours are the properties of the page's theme, so a picture follows
it; a file has the colours of the light theme.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby, pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from kteardown.errors import InputError, LabError
from kteardown.model.result import Verdict
from kteardown.report.metrics import Group
from kteardown.visible import visible

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

    def logarithmic(self) -> "Plot | None":
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


class Row(NamedTuple):
    """A row of a forest plot: its picture in SVG, and ``reason`` why its verdict is no other."""

    label: str
    picture: str
    text: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Forest:
    """Every change of one variant: on a page its rows are elements of the page, in a file they are drawn.

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


_COLOURS = [
    line.split("\t")
    for line in files("kteardown.report").joinpath("colours.tsv").read_text().splitlines()
    if not line.startswith("#")
]
LIGHT: Mapping[str, str] = {name: light for name, light, _ in _COLOURS}
DARK: Mapping[str, str] = {name: dark for name, _, dark in _COLOURS}


def stylesheet() -> str:
    """Return both themes as CSS custom properties; the default is the theme of the system."""
    light, dark = ("".join(f"--{name}:{value};" for name, value in theme.items()) for theme in (LIGHT, DARK))
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f'@media (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{color-scheme:dark;{dark}}}}}\n'
        f':root[data-theme="dark"]{{color-scheme:dark;{dark}}}\n'
        f"@media print{{:root:not(#always){{color-scheme:light;{light}}}}}\n"
    )


_ROOM = 0.04
"""Free space at each end, as a part of the axis."""
_MOST_TICKS = 7
_SUFFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_LONG = 1e5
"""An axis to this value or beyond has suffixes; a shorter one has labels as in tables: ``15,000``."""
_MOST_PLACES = 2
"""A label with more decimals is not shorter with a suffix than without."""
_NOTHING = 1e-12
"""Numbers this near to each other are one number on an axis, and so near to 0 they are 0."""


@dataclass(frozen=True)
class Tick:
    """A label; ``share`` is its place, from 0 to 1."""

    share: float
    text: str


@dataclass(frozen=True)
class AxisScale:
    """``share`` returns the place of a value, from 0 to 1."""

    share: Callable[[float], float]
    ticks: tuple[Tick, ...]


def numeric(values: Sequence[float], *, log: bool = False, zero: bool = False) -> AxisScale:
    """Return an axis of numbers that has all ``values``, and 0 too with ``zero``."""
    finite = [float(value) for value in values if math.isfinite(value) and (value > 0 or not log)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    if zero and not log:
        low, high = min(low, 0.0), max(high, 0.0)
    if log:
        low, high = math.log10(low), math.log10(high)
    if math.isclose(low, high, rel_tol=1e-9, abs_tol=_NOTHING):
        half = 0.5 * abs(low) if abs(low) > _NOTHING else 0.5
        low, high = low - half, high + half
    room = _ROOM * (high - low)
    start, end = (low if zero and low == 0 else low - room), high + room

    def share(value: float) -> float:
        place = (math.log10(value) if value > 0 else start) if log else float(value)
        return min(1.0, max(0.0, (place - start) / (end - start)))

    decades = _decades(start, end) if log else []
    marks = decades
    if not decades:
        # Round values at equal distances: steps of 1, 2 or 5 of a power of ten.
        least, most = (10**start, 10**end) if log else (start, end)
        rough = (most - least) / _MOST_TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(times * power for times in (1, 2, 5, 10) if times * power >= rough)
        marks = [n * step for n in range(math.ceil(least / step - 1e-9), math.floor(most / step + 1e-9) + 1)]
    # Those of a logarithmic axis have all sizes, so each has a suffix of its own: ``0.5``, ``5k``, ``1M``.
    texts = [text for mark in marks for text in _labels([mark], long=0)] if decades else _labels(marks)
    return AxisScale(share, tuple(map(Tick, map(share, marks), texts)))


def _decades(low: float, high: float) -> list[float]:
    """Return powers of ten between two exponents, with twice and five times them where there is room.

    Empty if there are fewer than two.
    """
    times = (1,) if high - low > 3 else (1, 2, 5)
    found = [
        by * 10.0**power
        for power in range(math.floor(low), math.ceil(high) + 1)
        for by in times
        if low <= math.log10(by) + power <= high
    ]
    return found[:: 1 + len(found) // (_MOST_TICKS + 2)] if len(found) > 1 else []


def _labels(marks: Sequence[float], long: float = _LONG) -> list[str]:
    """Return labels in one style: as in tables, or from ``long`` all with the suffix of the largest."""
    largest = max(map(abs, marks), default=0.0)
    fitting = [one for one in _SUFFIXES if largest >= max(one[0], long)]
    by, suffix = fitting[0] if fitting else (1.0, "")
    step = min((after - before for before, after in pairwise(marks)), default=largest)
    if _places(step / by) > _MOST_PLACES:
        by, suffix = 1.0, ""
    places = _places(step / by)
    texts = [f"{mark / by:,.{places}f}" for mark in marks]
    short = [text.rstrip("0").rstrip(".") if places else text for text in texts]
    return [text + suffix if mark else "0" for text, mark in zip(short, marks, strict=True)]


def _places(step: float) -> int:
    """Return how many decimals a multiple of a round step has."""
    return max(0, -math.floor(math.log10(step) + 1e-9)) if step else 0


_FRAME_PX, _ROW_PX, _LINE_PX = 18, 22, 16
_HEIGHT = 250
_NARROWEST = 3.0
"""A frame of a flame graph that is this many percent wide has its name written in it."""
_LETTER_PX = 7.2
"""The width of a digit, and about that of the other letters."""
_STROKES = ("cross", "x")
"""The symbols that are lines, without an inside."""
_WITHOUT = ("bar", "dot", "median", "")
"""What is no symbol."""
_EDGE_PX, _WIDTH_PX = 24, 1000
"""Of a file: the space around the chart, and the width of the part that is as wide as the place on a page."""
_LABEL_PX, _VALUE_PX = 220, 240
"""Of a forest plot in a file: the widths of the texts on both sides of the picture."""
FONT = "system-ui,'Segoe UI',Roboto,'DejaVu Sans','Liberation Sans','Noto Sans',Arial,sans-serif"
"""What draws PNG files has no other fonts than those that are named."""


def markup(drawn: Plot | Flame | Forest) -> str:
    """Return the markup of a chart in a page: an SVG with its axes, and the legend below it.

    A forest plot has none: its rows are elements of the page.
    """
    if isinstance(drawn, Forest):
        return ""
    if isinstance(drawn, Flame):
        return _flame(drawn.frames)
    plot = _Canvas.of(drawn)
    entries = "".join(
        f"<li{_variant(one)}>{_swatch(one)}{escape(one.name)}</li>" for one in drawn.series if one.in_legend
    )
    legend = f'<ul class="legend">{entries}</ul>' if entries else ""
    # A label of a column is as wide as the column.
    names = "".join(f"<span>{escape(name).replace(chr(10), '<br>')}</span>" for name in drawn.x.names)
    labels = f'<div class="names">{names}</div>' if drawn.x.names else _numbers(plot.x.ticks)
    x_title = f'<p class="axis-title x">{escape(drawn.x.title)}</p>' if drawn.x.title else ""
    return (
        f'<div class="drawn" style="--gutter:{plot.gutter}px">'
        f'<p class="axis-title">{escape(drawn.y.title)}</p>'
        f"{plot.svg(drawn.series)}{labels}{x_title}</div>{legend}"
    )


def svg_file(chart: Chart) -> str:
    """Return the chart as an SVG file with its title, which needs nothing of a page."""
    width, below = _WIDTH_PX + 2 * _EDGE_PX, 2.5 * _EDGE_PX
    parts = [_text(_EDGE_PX, 1.4 * _EDGE_PX, chart.title, "title")]
    if isinstance(chart.drawn, Plot):
        canvas = _Canvas.of(chart.drawn)
        width += canvas.gutter
        drawn, height = _file_of_plot(chart.drawn, canvas, below)
    elif isinstance(chart.drawn, Flame):
        height = below + _FRAME_PX * (1 + max(frame.depth for frame in chart.drawn.frames))
        drawn = [_placed(_EDGE_PX, below, _WIDTH_PX, _flame(chart.drawn.frames))]
    else:
        drawn, height = _file_of_forest(chart.drawn, below)
    body = "".join([*parts, *drawn])
    style = (
        f"svg{{font:12px {FONT};fill:var(--ink)}}.title{{font-size:16px}}.title,.head{{font-weight:600}}"
        f"{asset('charts.css')}"
    )
    whole = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height + _EDGE_PX:g}">'
        f"<style>{style}</style>{asset('symbols.svg')}"
        f'<rect width="100%" height="100%" style="fill:var(--panel)"/>{body}</svg>\n'
    )
    return visible(re.sub(r"var\(--([a-z0-9-]+)\)", lambda name: LIGHT.get(name[1], name[0]), whole))


def _file_of_plot(plot: Plot, canvas: "_Canvas", top: float) -> tuple[list[str], float]:
    """Return the parts below the title, which begin at ``top``, and where they end, in pixels."""
    left, at = _EDGE_PX + canvas.gutter, top + _LINE_PX
    drawn = [_text(_EDGE_PX, top, plot.y.title), _placed(left, at, _WIDTH_PX, canvas.svg(plot.series))]
    at += _HEIGHT
    if plot.x.names:
        names = [name.split("\n") for name in plot.x.names]
        for tick, lines in zip(canvas.x.ticks, names, strict=True):
            x = left + _WIDTH_PX * tick.share
            drawn += [_text(x, at + _LINE_PX * (n + 1), line, "middle") for n, line in enumerate(lines)]
        at += _LINE_PX * max(map(len, names))
    else:
        drawn.append(_placed(left, at, _WIDTH_PX, _numbers(canvas.x.ticks)))
        at += _LINE_PX
    if plot.x.title:
        at += _LINE_PX * 1.2
        drawn.append(_text(left + _WIDTH_PX / 2, at, plot.x.title, "middle"))
    key = [(_swatch(one), one.name) for one in plot.series if one.in_legend]
    return [*drawn, *_key(key, at + _LINE_PX)], at + 2 * _LINE_PX * bool(key)


def _file_of_forest(plot: Forest, top: float) -> tuple[list[str], float]:
    """Return the parts below the title, which begin at ``top``, and where they end, in pixels."""
    key = [(f'<use href="#mark-{verdict}" x="9" y="6"/>', str(verdict)) for verdict in plot.verdicts]
    key += [(f'<line x2="18" y1="6" y2="6" class="{name}"/>', text) for name, text in plot.twins]
    drawn = list(_key([(f'<svg width="18">{mark}</svg>', text) for mark, text in key], top - _LINE_PX))
    left, width = _EDGE_PX + _LABEL_PX, _WIDTH_PX - _LABEL_PX - _VALUE_PX
    rows = [("", "ticks", plot.labels, "")]
    for group, mine in plot.metrics:
        of = f" ({group.workload})" if plot.several else ""
        rows.append((f"{group.name}{of}, {group.better} is better", "ticks", "", ""))
        rows += [
            (one.label, "picture", plot.lines + one.picture, f"{one.text} {one.verdict}") for one in mine
        ]
    at = top
    for label, kind, picture, text in rows:
        drawn.append(_text(_EDGE_PX, at + _LINE_PX, label, "head" if kind == "ticks" else ""))
        drawn.append(_placed(left, at, width, f'<svg class="{kind}" height="{_ROW_PX}">{picture}</svg>'))
        drawn.append(_text(left + width + _EDGE_PX, at + _LINE_PX, text))
        at += _ROW_PX
    return drawn, at


def _key(entries: Sequence[tuple[str, str]], top: float) -> Iterator[str]:
    """Yield swatches with their names, side by side."""
    x = float(_EDGE_PX)
    for swatch, name in entries:
        yield _placed(x, top, 30, swatch) + _text(x + 36, top + 10, name)
        x += 66 + _LETTER_PX * len(name)


def _text(x: float, y: float, text: str, name: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{name}">{escape(text)}</text>'


def _placed(x: float, y: float, width: float, svg: str) -> str:
    return f'<svg x="{x:g}" y="{y:g}" width="{width:g}" overflow="visible">{svg}</svg>'


@dataclass(frozen=True)
class _Canvas:
    """The scales of both axes, and in ``gutter`` the room for the labels on the left, in pixels."""

    x: AxisScale
    y: AxisScale
    gutter: int
    named: bool

    @classmethod
    def of(cls, plot: Plot) -> "_Canvas":
        marks = [mark for one in plot.series for mark in one.marks]
        heights = [mark.y for mark in marks] + [
            end for mark in marks for end in (mark.low, mark.high) if end is not None
        ]
        heights += [mark.base for one in plot.series if one.symbol == "bar" for mark in one.marks]
        x, y = _scale(plot.x, [mark.x for mark in marks]), _scale(plot.y, heights)
        gutter = round(max((len(tick.text) for tick in y.ticks), default=1) * _LETTER_PX + 12)
        return cls(x, y, gutter, bool(plot.x.names))

    def at(self, x: float) -> float:
        """Return the position of ``x``, in percent from the left."""
        return round(100 * self.x.share(x), 2)

    def down(self, y: float) -> float:
        """Return the position of ``y``, in pixels from the top."""
        return round(_HEIGHT * (1 - self.y.share(y)), 1)

    def svg(self, series: Sequence[PlotSeries]) -> str:
        """Return the grid with the labels on the left, the series, and above all lines their symbols."""
        # From left to right, places in this box are thousandths; its lines keep their width.
        box = (
            f'<svg class="paths" viewBox="0 0 1000 {_HEIGHT}" preserveAspectRatio="none" overflow="visible">'
        )
        labels = "".join(
            f'<text y="{_HEIGHT * (1 - tick.share):.4g}">{escape(tick.text)}</text>' for tick in self.y.ticks
        )
        lines = "".join(f"M0 {_HEIGHT * (1 - tick.share):.4g}H1000" for tick in self.y.ticks)
        if not self.named:
            lines += "".join(f"M{1000 * tick.share:.4g} 0V{_HEIGHT}" for tick in self.x.ticks)
        grid = f'<path class="grid" d="{lines}"/>'
        if any(tick.text == "0" for tick in self.y.ticks):
            grid += f'<path class="zero" d="M0 {self.down(0):g}H1000"/>'
        paths = "".join(
            f"<g{look}>{''.join(map(self._paths, alike))}</g>" for look, alike in groupby(series, _look)
        )
        symbols = ""
        for one in series:
            use = f'<use href="#m-{one.symbol.removesuffix("-open")}"'
            drawn = "".join(
                f'{use} x="{self.at(mark.x)}%" y="{self.down(mark.y):g}">{_title(mark)}</use>'
                for mark in one.marks
            )
            if one.symbol not in _WITHOUT:
                symbols += f'<g class="{_paint(one.symbol)}"{_look(one)}>{drawn}</g>'
        return (
            f'<svg class="canvas" height="{_HEIGHT}"><g class="y" transform="translate(-8 4)">{labels}</g>'
            f"{box}{grid}{paths}</svg>{symbols}</svg>"
        )

    def _paths(self, one: PlotSeries) -> str:
        places = [f"{10 * self.at(mark.x):g} {self.down(mark.y):g}" for mark in one.marks]
        drawn = ""
        if one.symbol == "dot":
            # All dots are a path in whole pixels, in which every place is relative to the one before.
            at = [(round(10 * self.at(mark.x)), round(self.down(mark.y))) for mark in one.marks]
            dots = "".join(f"m{x - left}{y - top:+}h0" for (left, top), (x, y) in pairwise([(0, 0), *at]))
            drawn += f'<path d="{dots}" stroke-width="{one.size:.2g}"/>'
        elif one.symbol in ("bar", "median"):
            drawn += self._columns(one)
        if one.dash is not None and len(places) > 1:
            dashes = f' stroke-dasharray="{one.dash}"' if one.dash else ""
            drawn += f'<path d="M{"L".join(places)}" stroke-width="{one.width:g}"{dashes}/>'
        intervals = "".join(
            f"M{10 * self.at(mark.x):g} {self.down(mark.low):g}V{self.down(mark.high):g}"
            for mark in one.marks
            if mark.low is not None and mark.high is not None and mark.low < mark.high
        )
        if intervals:
            drawn += f'<path class="{"ends of-bar" if one.symbol == "bar" else "ends"}" d="{intervals}"/>'
        return drawn

    def _columns(self, one: PlotSeries) -> str:
        """Return bars, or medians whose tooltips, if they have any, are shown on the whole column."""
        width = 1000 * (self.x.share(one.size) - self.x.share(0))
        bars, lines, hits = "", "", ""
        for mark in one.marks:
            x, y = round(1000 * self.x.share(mark.x) - width / 2), self.down(mark.y)
            top, bottom = sorted((y, self.down(mark.base)))
            place = f'x="{x}" y="{top:g}" width="{width:.3g}" height="{max(1.0, bottom - top):.4g}"'
            bars += f'<rect class="bar" {place}>{_title(mark)}</rect>'
            lines += f"M{x + width / 4:.0f} {y:.0f}h{width / 2:.0f}"
            hits += f'<rect x="{x}">{_title(mark)}</rect>' if mark.text else ""
        if one.symbol == "bar":
            return bars
        tooltips = f'<g class="hits" style="--width:{width:.3g}px">{hits}</g>' if hits else ""
        return f'<path class="median" d="{lines}"/>{tooltips}'


def _scale(axis: Axis, values: Sequence[float]) -> AxisScale:
    """Return the scale of numbers, or of the columns 0, 1, 2, ..., which have equal room."""
    count = len(axis.names)
    if not count:
        return numeric(values, log=axis.log, zero=axis.zero)
    ticks = tuple(Tick((n + 0.5) / count, text) for n, text in enumerate(axis.names))
    return AxisScale(lambda value: (value + 0.5) / count, ticks)


def _numbers(ticks: Sequence[Tick]) -> str:
    """Return the labels of an axis of numbers; a narrow page shows every second."""
    texts = "".join(
        f'<text class="{("first", "second")[n % 2]}" x="{100 * tick.share:.2f}%" y="14">'
        f"{escape(tick.text)}</text>"
        for n, tick in enumerate(ticks)
    )
    return f'<svg class="canvas numbers" height="20">{texts}</svg>'


def _swatch(one: PlotSeries) -> str:
    """Return the line and the mark of a series, for a legend."""
    dashes = f' stroke-dasharray="{one.dash}"' if one.dash else ""
    return (
        f'<svg class="{_paint(one.symbol)}" width="30" height="12" aria-hidden="true" '
        f'style="color:var(--{one.colour})"><path class="line" d="M1 6H29"{dashes}/>'
        f'<use href="#m-{one.symbol.removesuffix("-open")}" x="15" y="6"/></svg>'
    )


def _look(one: PlotSeries) -> str:
    """Return the attributes of everything that belongs to a series: its colour, and what filters it."""
    return f' style="color:var(--{one.colour})"{_variant(one)}'


def _variant(one: PlotSeries) -> str:
    return f' data-variant="{escape(one.variant)}"' if one.variant else ""


def _title(mark: Mark) -> str:
    return f"<title>{escape(mark.text)}</title>" if mark.text else ""


def _paint(symbol: str) -> str:
    """Return the class that says which parts of a symbol have the colour of its series."""
    if symbol in _STROKES:
        return "stroke"
    return "hollow" if symbol.endswith("-open") else "solid"


def _flame(frames: Sequence[FlameFrame]) -> str:
    drawn = []
    for frame in frames:
        words = f'<text x="4" y="13">{escape(frame.label)}</text>' if frame.width >= _NARROWEST else ""
        side = "more" if frame.more > 0 else "less"
        drawn.append(
            f'<svg x="{frame.left:.2f}%" y="{frame.depth * _FRAME_PX}" width="{frame.width:.2f}%" '
            f'height="{_FRAME_PX - 1}"><title>{escape(f"{frame.label}: {frame.text}")}</title>'
            '<rect class="frame" width="100%" height="100%"/>'
            f'<rect class="{side}" width="100%" height="100%" opacity="{abs(frame.more):.2f}"/>{words}</svg>'
        )
    height = _FRAME_PX * (1 + max(frame.depth for frame in frames))
    return f'<svg class="canvas flame" height="{height}">{"".join(drawn)}</svg>'


@cache
def asset(name: str) -> str:
    """Return a file of ``report/page``."""
    return (files("kteardown.report") / "page" / name).read_text(encoding="utf-8").strip()


Form = Literal["svg", "png"]
_MAX_NAMES = 24
_PIXELS = 2
"""Those of a PNG for each CSS pixel, in both directions."""


def choose(charts: Sequence[Chart], wanted: str) -> list[Chart]:
    """Return the charts whose names begin with ``wanted``, or the one with exactly this name; all if it is
    empty.

    Raises InputError with the names if there is no such chart.
    """
    exact = [chart for chart in charts if chart.name == wanted]
    found = exact or [chart for chart in charts if chart.name.startswith(wanted)]
    if not found:
        hint = f"choose one of:\n  {names(charts)}" if charts else "choose a run that compares kernels."
        raise InputError(f"there is no chart {wanted!r} in this report", hint=hint)
    return found


def names(charts: Sequence[Chart]) -> str:
    """Return the names of the charts, one on each line, of many only the first ones."""
    lines = [chart.name for chart in charts[:_MAX_NAMES]]
    if len(charts) > _MAX_NAMES:
        lines.append(f"and {len(charts) - _MAX_NAMES} more with names like the last")
    return "\n  ".join(lines)


def draw(charts: Sequence[Chart], form: Form, into: Path) -> list[Path]:
    """Write each chart to ``into``/NAME.FORM and return the files.

    Raises LabError if a file cannot be written, or for PNG if there are no fonts.
    """
    # Letters are missing silently without a font.
    empty = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>'
    letter = empty.replace("></", f'><text y="8" style="font-family:{FONT}">x</text></')
    if form == "png" and _png(letter) == _png(empty):
        raise LabError(
            "PNG files need a font, and none is installed",
            hint="install one (Debian: apt-get install fonts-dejavu-core), or use --format svg.",
        )
    files = []
    for chart in charts:
        svg, file = svg_file(chart), into / f"{chart.name}.{form}"
        try:
            file.write_bytes(_png(svg) if form == "png" else svg.encode())
        except OSError as error:
            raise LabError(
                f"{file}: cannot be written: {error.strerror}", hint="name another folder."
            ) from error
        files.append(file)
    return files


def _png(svg: str) -> bytes:
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=_PIXELS))
