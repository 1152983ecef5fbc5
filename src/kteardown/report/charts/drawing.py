"""The charts of a page as SVG, without any script: the figures that plotly draws, as wide as their place.

Positions from left to right are percentages and those from top to bottom are pixels, so the text keeps its
size on a phone and on paper. Colours are the page's own properties, so a picture follows the theme.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from kteardown.report.charts.figure import PlotlyFigure, Trace
from kteardown.report.charts.scales import AxisScale, Tick, category, numeric, set_ticks

_FRAME_PX = 18
_NARROWEST = 3.0
"""A frame of a flame graph that is this many percent wide has its name written in it."""
_HEIGHT = 250
_DASHES = {"dash": "7 4", "dashdot": "7 3 2 3", "longdash": "12 5", "dot": "1.5 4"}
_DIGIT_PX = 7.2
_BAR = 0.62
"""The part of its room that a bar takes."""
_INVISIBLE = "skip"


@dataclass(frozen=True)
class _Plot:
    """Both axes, and the height in pixels."""

    x: AxisScale
    y: AxisScale
    height: int

    def at(self, x: Any) -> float:
        """Return the position of ``x``, in percent from the left."""
        return round(100 * self.x.share(x), 2)

    def down(self, y: Any) -> float:
        """Return the position of ``y``, in pixels from the top."""
        return round(self.height * (1 - self.y.share(y)), 1)


def drawing(figure: PlotlyFigure) -> str:
    """Return the figure as markup: an SVG with its axes, and the legend below it."""
    traces: list[Trace] = figure["data"]
    if traces[0]["type"] == "icicle":
        return flame(traces[0])
    layout = figure["layout"]
    plot = _Plot(_scale(traces, layout["xaxis"], "x"), _scale(traces, layout["yaxis"], "y"), _HEIGHT)
    gutter = round(max((len(tick.text) for tick in plot.y.ticks), default=1) * _DIGIT_PX + 12)
    body = "".join((*_grid(plot), *(part for trace in traces for part in _trace(trace, plot))))
    named = plot.x.is_category
    title = layout["xaxis"]["title"]["text"]
    return (
        f'<div class="drawn" style="--gutter:{gutter}px">'
        f'<p class="axis-title">{escape(layout["yaxis"]["title"]["text"])}</p>'
        f'<svg class="canvas" width="100%" height="{plot.height}" aria-hidden="true">{body}</svg>'
        f"{_names(plot.x.ticks) if named else _numbers(plot.x.ticks)}"
        f'{f"""<p class="axis-title x">{escape(title)}</p>""" if title else ""}'
        f"</div>{_legend(traces) if layout.get('showlegend', True) else ''}"
    )


def _scale(traces: Sequence[Trace], axis: Mapping[str, Any], letter: str) -> AxisScale:
    values: list[Any] = []
    for trace in traces:
        own = [value for value in trace[letter] if value is not None]
        if trace["type"] == "bar" and letter == "y":
            values += trace["base"]
            own = [base + height for base, height in zip(trace["base"], own, strict=True)]
        values += [*own, *_ends(trace, letter, own)]
    if axis.get("type") == "category" or any(isinstance(value, str) for value in values):
        return category(list(dict.fromkeys(values)))
    if axis.get("tickvals") is not None:
        return set_ticks(axis["tickvals"], axis["ticktext"])
    return numeric(values, log=axis.get("type") == "log", zero=axis.get("rangemode") == "tozero")


def _ends(trace: Trace, letter: str, values: Sequence[float]) -> list[float]:
    """Return the ends of the intervals around ``values``."""
    error = trace.get(f"error_{letter}")
    if not error or not error.get("visible", True):
        return []
    down = error.get("arrayminus", error["array"])
    pairs = zip(values, error["array"], down, strict=True)
    return [end for value, plus, minus in pairs for end in (value - minus, value + plus)]


def _grid(plot: _Plot) -> Iterator[str]:
    for tick in plot.y.ticks:
        y = round(plot.height * (1 - tick.share), 1)
        zero = " zero" if tick.text == "0" else ""
        yield f'<line class="grid{zero}" x1="0" x2="100%" y1="{y}" y2="{y}"/>'
        yield f'<text class="y" x="-8" y="{y + 4}">{escape(tick.text)}</text>'
    for tick in () if plot.x.is_category else plot.x.ticks:
        x = round(100 * tick.share, 2)
        yield f'<line class="grid" x1="{x}%" x2="{x}%" y1="0" y2="{plot.height}"/>'


def _numbers(ticks: Sequence[Tick]) -> str:
    """Return the labels of a numeric axis; a narrow page shows every second."""
    texts = "".join(
        f'<text class="{("first", "second")[n % 2]}" x="{100 * tick.share:.2f}%" y="14">'
        f"{escape(tick.text)}</text>"
        for n, tick in enumerate(ticks)
    )
    return f'<svg class="canvas numbers" width="100%" height="20" aria-hidden="true">{texts}</svg>'


def _names(ticks: Sequence[Tick]) -> str:
    """Return the labels of an axis of names, each as wide as its column."""
    columns = "".join(
        f"<span>{'<br>'.join(escape(line) for line in tick.text.split('<br>'))}</span>" for tick in ticks
    )
    return f'<div class="names" aria-hidden="true">{columns}</div>'


def _trace(trace: Trace, plot: _Plot) -> Iterator[str]:
    if trace["type"] == "bar":
        yield from _bars(trace, plot)
        return
    variant = trace.get("meta", {}).get("variant")
    yield f'<g data-variant="{escape(variant)}">' if variant else "<g>"
    points = list(zip(trace["x"], trace["y"], strict=True))
    mode, shade = trace["mode"], _colour(trace)
    yield from _intervals(trace, plot)
    if "lines" in mode:
        dash = _DASHES.get(trace["line"].get("dash", "solid"), "")
        yield _stretched(
            plot,
            _path(points, plot),
            f"stroke:{_css(trace['line']['color'])};stroke-width:{trace['line'].get('width', 2)}"
            + (f";stroke-dasharray:{dash}" if dash else ""),
        )
    if "markers" in mode:
        yield from _marks(trace, plot, points, shade)
    yield "</g>"


def _marks(trace: Trace, plot: _Plot, points: Sequence[tuple[Any, Any]], shade: str) -> Iterator[str]:
    marker = trace["marker"]
    if isinstance(marker["symbol"], list):
        # Samples: dots, paler in every second boot.
        for symbol, faint in (("circle", 0.8), ("circle-open", 0.45)):
            mine = [p for p, own in zip(points, marker["symbol"], strict=True) if own == symbol]
            dots = "".join(f"M{10 * plot.at(x):g} {plot.down(y):g}h0" for x, y in mine)
            width = f"{marker['size'] * 0.9:.1f}"
            yield _stretched(plot, dots, f"stroke:{shade};stroke-width:{width};opacity:{faint}")
        return
    sizes = marker["size"] if isinstance(marker["size"], list) else [marker["size"]] * len(points)
    texts = trace.get("text") or [""] * len(points)
    for (x, y), size, text in zip(points, sizes, texts, strict=True):
        if x is None or y is None or not size:
            continue
        place = f'x="{plot.at(x)}%" y="{plot.down(y)}"'
        about = f"<title>{escape(text.replace('<br>', ': ', 1))}</title>" if text else ""
        if marker["symbol"] == "line-ew-open":
            half = round(size / 2, 1)
            bar = f'<path class="median" d="M-{half} 0H{half}">{about}</path>'
            yield f'<svg {place} overflow="visible">{bar}</svg>'
        else:
            yield f'<use href="#m-{marker["symbol"]}" {place} style="color:{shade}">{about}</use>'


def _intervals(trace: Trace, plot: _Plot) -> Iterator[str]:
    error = trace.get("error_y")
    if error and error.get("visible", True):
        down = error.get("arrayminus", error["array"])
        ends = zip(trace["x"], trace["y"], error["array"], down, strict=True)
        path = "".join(
            f"M{10 * plot.at(x):g} {plot.down(y - minus):g}V{plot.down(y + plus):g}"
            for x, y, plus, minus in ends
            if plus or minus
        )
        style = f"stroke:{_css(error['color'])};stroke-width:{error.get('thickness', 1.5)}"
        yield _stretched(plot, path, style)


def _bars(trace: Trace, plot: _Plot) -> Iterator[str]:
    width = round(100 * _BAR / len(trace["x"]), 2)
    colours = trace["marker"]["color"]
    tops = []
    for x, base, height, shade, text in zip(
        trace["x"], trace["base"], trace["y"], colours, trace["text"], strict=True
    ):
        top, bottom = sorted((plot.down(base), plot.down(base + height)))
        tops.append(base + height)
        yield (
            f'<rect class="bar" x="{plot.at(x) - width / 2:.2f}%" y="{top}" width="{width}%" '
            f'height="{max(1.0, round(bottom - top, 1))}" style="fill:{_css(shade)}">'
            f"<title>{escape(text.replace('<br>', ': ', 1))}</title></rect>"
        )
    yield from _intervals({**trace, "y": tops}, plot)


def _path(points: Sequence[tuple[Any, Any]], plot: _Plot) -> str:
    path, draws = [], False
    for x, y in points:
        if x is None or y is None:
            draws = False
            continue
        path.append(f"{'L' if draws else 'M'}{10 * plot.at(x):g} {plot.down(y):g}")
        draws = True
    return "".join(path)


def _stretched(plot: _Plot, path: str, style: str) -> str:
    """Return a path whose places from left to right are thousandths; its line keeps its width."""
    if not path:
        return ""
    box = f'viewBox="0 0 1000 {plot.height}" preserveAspectRatio="none" overflow="visible"'
    line = f'<path class="path" d="{path}" style="{style}"/>'
    return f'<svg width="100%" height="{plot.height}" {box}>{line}</svg>'


def _legend(traces: Sequence[Trace]) -> str:
    """Return the names of the traces with their lines and marks."""
    entries = []
    for trace in traces:
        if not trace.get("name") or not trace.get("showlegend", True) or trace.get("hoverinfo") == _INVISIBLE:
            continue
        dash = _DASHES.get(trace.get("line", {}).get("dash", "solid"), "")
        style = f"stroke:currentColor;stroke-width:2;stroke-dasharray:{dash or 0}"
        entries.append(
            f"<li{_of_variant(trace)}>"
            f'<svg width="30" height="12" aria-hidden="true" style="color:{_colour(trace)}">'
            f'<path class="path" d="M1 6H29" style="{style}"/>'
            f'<use href="#m-{trace["marker"]["symbol"]}" x="15" y="6"/></svg>{escape(trace["name"])}</li>'
        )
    return f'<ul class="legend">{"".join(entries)}</ul>' if entries else ""


def _of_variant(trace: Trace) -> str:
    variant = trace.get("meta", {}).get("variant")
    return f' data-variant="{escape(variant)}"' if variant else ""


def _colour(trace: Trace) -> str:
    found = trace.get("marker", {}).get("color") or trace["line"]["color"]
    return _css(found)


def _css(name: str) -> str:
    return f"var(--{name.removeprefix('$')})"


def flame(trace: Trace) -> str:
    """Return the frames of an icicle, the outermost at the top."""
    places = _places(trace)
    rows = []
    for name, label, text, colour in zip(
        trace["ids"], trace["labels"], trace["text"], trace["marker"]["colors"], strict=True
    ):
        left, width, level = places[name]
        words = f"<text x='4' y='13'>{escape(label)}</text>" if width >= _NARROWEST else ""
        rows.append(
            f'<svg x="{left:.2f}%" y="{level * _FRAME_PX}" width="{width:.2f}%" height="{_FRAME_PX - 1}">'
            f'<rect width="100%" height="100%" style="fill:{_shade(colour)}"/>{words}'
            f"<title>{escape(label)}: {escape(text.replace('<br>', '; '))}</title></svg>"
        )
    height = _FRAME_PX * (1 + max(level for _, _, level in places.values()))
    frames = "".join(rows)
    return f'<svg class="canvas flame" width="100%" height="{height}" aria-hidden="true">{frames}</svg>'


def _places(trace: Trace) -> Mapping[str, tuple[float, float, int]]:
    """Return the left end and the width of each frame in percent, and its depth; parents come first."""
    found: dict[str, tuple[float, float, int]] = {}
    used: dict[str, float] = {}
    whole = trace["values"][0] or 1
    for name, parent, value in zip(trace["ids"], trace["parents"], trace["values"], strict=True):
        width = 100 * value / whole
        left, _, level = found[parent] if parent else (0.0, 0.0, -1)
        found[name] = (left + used.get(parent, 0.0), width, level + 1)
        used[parent] = used.get(parent, 0.0) + width
    return found


def _shade(difference: float) -> str:
    """Return the colour of a difference between -1 (less) and 1 (more)."""
    end = "less" if difference < 0 else "more"
    part = round(100 * abs(difference))
    return f"color-mix(in srgb,var(--flame-{end}) {part}%,var(--flame-none))" if part else "var(--flame-none)"
