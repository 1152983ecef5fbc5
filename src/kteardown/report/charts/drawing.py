"""Charts as SVG: for a page as wide as their place, and as files.

Positions from left to right are percentages and those from top to bottom are pixels, so on a page the text
keeps its size on a phone and on paper. Colours are the properties of the page's theme, so a picture follows
it; a file has the colours of the light theme.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby, pairwise

from kteardown.report.charts.figure import LIGHT, Axis, Chart, Flame, FlameFrame, Mark, Plot, PlotSeries, Rows
from kteardown.report.charts.scales import AxisScale, Tick, columns, numeric
from kteardown.visible import visible

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


def markup(drawn: Plot | Flame | Rows) -> str:
    """Return the markup of a chart in a page: an SVG with its axes, and the legend below it.

    A forest plot has none: its rows are elements of the page.
    """
    if isinstance(drawn, Rows):
        return ""
    if isinstance(drawn, Flame):
        return _flame(drawn.frames)
    plot = _Canvas.of(drawn)
    entries = "".join(
        f"<li{_variant(one)}>{_swatch(one)}{escape(one.name)}</li>" for one in drawn.series if one.in_legend
    )
    legend = f'<ul class="legend">{entries}</ul>' if entries else ""
    labels = _names(drawn.x.names) if drawn.x.names else _numbers(plot.x.ticks)
    x_title = f'<p class="axis-title x">{escape(drawn.x.title)}</p>' if drawn.x.title else ""
    return (
        f'<div class="drawn" style="--gutter:{plot.gutter}px">'
        f'<p class="axis-title">{escape(drawn.y.title)}</p>'
        f"{plot.svg(drawn.series)}{labels}{x_title}</div>{legend}"
    )


def symbols() -> str:
    """Return the symbols that the charts of a page use, as a hidden SVG."""
    return f'<svg width="0" height="0" class="defs" aria-hidden="true">{asset("symbols.svg")}</svg>'


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
        drawn, height = _file_of_rows(chart.drawn, below)
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


def _file_of_plot(plot: Plot, canvas: _Canvas, top: float) -> tuple[list[str], float]:
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


def _file_of_rows(plot: Rows, top: float) -> tuple[list[str], float]:
    """Return the parts below the title, which begin at ``top``, and where they end, in pixels."""
    drawn = list(_key([(f'<svg width="18">{mark}</svg>', text) for mark, text in plot.key], top - _LINE_PX))
    left, width = _EDGE_PX + _LABEL_PX, _WIDTH_PX - _LABEL_PX - _VALUE_PX
    at = top
    for row in plot.rows:
        drawn.append(_text(_EDGE_PX, at + _LINE_PX, row.label, "" if row.verdict else "head"))
        picture = (
            f'<svg class="{"picture" if row.verdict else "ticks"}" height="{_ROW_PX}">{row.picture}</svg>'
        )
        drawn.append(_placed(left, at, width, picture))
        drawn.append(_text(left + width + _EDGE_PX, at + _LINE_PX, f"{row.text} {row.verdict or ''}"))
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
    def of(cls, plot: Plot) -> _Canvas:
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
        paths = "".join(
            f"<g{look}>{''.join(map(self._paths, alike))}</g>" for look, alike in groupby(series, _look)
        )
        symbols = "".join(self._symbols(one) for one in series if one.symbol not in _WITHOUT)
        return (
            f'<svg class="canvas" height="{_HEIGHT}"><g class="y" transform="translate(-8 4)">{labels}</g>'
            f"{box}{self._grid()}{paths}</svg>{symbols}</svg>"
        )

    def _grid(self) -> str:
        zero = f'<path class="zero" d="M0 {self.down(0):g}H1000"/>'
        lines = "".join(f"M0 {_HEIGHT * (1 - tick.share):.4g}H1000" for tick in self.y.ticks)
        if not self.named:
            lines += "".join(f"M{1000 * tick.share:.4g} 0V{_HEIGHT}" for tick in self.x.ticks)
        has_zero = any(tick.text == "0" for tick in self.y.ticks)
        return f'<path class="grid" d="{lines}"/>{zero if has_zero else ""}'

    def _paths(self, one: PlotSeries) -> str:
        places = [f"{10 * self.at(mark.x):g} {self.down(mark.y):g}" for mark in one.marks]
        drawn = ""
        if one.symbol == "dot":
            drawn += f'<path d="{self._dots(one)}" stroke-width="{one.size:.2g}"/>'
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

    def _dots(self, one: PlotSeries) -> str:
        """Return all dots as a path in whole pixels, in which every place is relative to the one before."""
        places = [(round(10 * self.at(mark.x)), round(self.down(mark.y))) for mark in one.marks]
        return "".join(f"m{x - left}{y - top:+}h0" for (left, top), (x, y) in pairwise([(0, 0), *places]))

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

    def _symbols(self, one: PlotSeries) -> str:
        use = f'<use href="#m-{one.symbol.removesuffix("-open")}"'
        drawn = "".join(
            f'{use} x="{self.at(mark.x)}%" y="{self.down(mark.y):g}">{_title(mark)}</use>'
            for mark in one.marks
        )
        return f'<g class="{_paint(one.symbol)}"{_look(one)}>{drawn}</g>'


def _scale(axis: Axis, values: Sequence[float]) -> AxisScale:
    return columns(axis.names) if axis.names else numeric(values, log=axis.log, zero=axis.zero)


def _numbers(ticks: Sequence[Tick]) -> str:
    """Return the labels of an axis of numbers; a narrow page shows every second."""
    texts = "".join(
        f'<text class="{("first", "second")[n % 2]}" x="{100 * tick.share:.2f}%" y="14">'
        f"{escape(tick.text)}</text>"
        for n, tick in enumerate(ticks)
    )
    return f'<svg class="canvas numbers" height="20">{texts}</svg>'


def _names(names: Sequence[str]) -> str:
    """Return the labels of an axis of columns, each as wide as its column."""
    columns = "".join(f"<span>{'<br>'.join(map(escape, name.split(chr(10))))}</span>" for name in names)
    return f'<div class="names">{columns}</div>'


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
