"""The common parts of all charts: axes, fonts, and colours by meaning.

A figure is plain data in plotly's schema. Its colours are names such as ``$base`` or ``$better``, which the
page replaces with those of the reader's theme, and ``resolve`` with those of the light one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kteardown.model.result import Comparison, Verdict
from kteardown.report.charts.palette import LIGHT
from kteardown.report.formatting import percent

PlotlyFigure = dict[str, Any]
Trace = dict[str, Any]

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
MARKS: Mapping[Verdict, str] = {
    "broken": "x",
    "better": "circle",
    "worse": "diamond",
    "mixed": "triangle-up",
    "same": "circle-open",
    "inconclusive": "square-open",
}
"""The mark of each verdict. Verdicts have a mark as well as a colour, for readers with colour blindness."""
KERNEL_MARKS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
DASHES = ("solid", "solid", "dash", "dashdot", "longdash")
_VARIANTS = 5
_FURTHER, _LEAST_REACH = 1 / 3, 1.1
_COLOUR_NAME = re.compile(r'"\$([a-z0-9-]+)"')
_TICKS = (
    *(0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995),
    *(1.005, 1.01, 1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 2, 3, 4, 5, 10, 20, 50, 100, 1000, 10_000, 100_000),
)


@dataclass(frozen=True)
class Chart:
    """One chart. ``about`` describes it for screen readers; ``notes`` are shown below it.

    ``height`` is in CSS pixels, for a chart as wide as the page.
    """

    name: str
    title: str
    about: str
    figure: PlotlyFigure
    height: int = 380
    notes: tuple[str, ...] = ()
    scales: bool = False
    """Both axes are numeric, so the page offers logarithmic ones, which distinguish N from N squared."""


@dataclass(frozen=True)
class Gallery:
    """Charts of one kind, of which the page shows the one that the selected options name.

    ``choices`` are lists of options, each with a label. ``charts`` has the charts by the selected options.
    ``first`` is the initial selection.
    """

    name: str
    choices: tuple[tuple[str, tuple[str, ...]], ...]
    charts: Mapping[tuple[str, ...], Chart]
    first: tuple[str, ...]
    metric: str = ""


def layout(**more: Any) -> dict[str, Any]:
    """Return a layout with the fonts and colours of all charts, updated with ``more``."""
    plain: dict[str, Any] = {
        "font": {"family": FONT, "size": 13, "color": "$ink"},
        "paper_bgcolor": "$panel",
        "plot_bgcolor": "$panel",
        "margin": {"l": 64, "r": 18, "t": 34, "b": 52},
        "hovermode": "closest",
        "hoverlabel": {"bgcolor": "$raised", "bordercolor": "$line", "font": {"color": "$ink", "size": 12}},
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1.0,
            "yanchor": "bottom",
            "font": {"size": 12},
        },
        "showlegend": True,
    }
    return {**plain, **more}


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    """Return an axis with a light grid, updated with ``more``, which is in plotly's terms."""
    plain: dict[str, Any] = {
        "gridcolor": "$grid",
        "linecolor": "$line",
        "zeroline": False,
        "ticks": "outside",
        "tickcolor": "$line",
        "ticklen": 4,
        "automargin": True,
        # As `scales` writes the numbers of the same axis without plotly.
        "exponentformat": "SI",
        "minexponent": 2 if more.get("type") == "log" else 4,
        "separatethousands": True,
        "title": {"text": title, "standoff": 8, "font": {"size": 12, "color": "$muted"}},
        "tickfont": {"size": 12, "color": "$muted"},
    }
    return {**plain, **more}


def colour(kernel: str, kernels: Sequence[str]) -> str:
    """Return the colour of a kernel: grey for base and its twins, by position in ``kernels`` for variants."""
    if kernel == "base":
        return "$base"
    if kernel.startswith("base-"):
        return "$twin"
    return f"$kernel{_position(kernel, kernels) % _VARIANTS}"


def mark(kernel: str, kernels: Sequence[str]) -> str:
    """Return the symbol of a kernel."""
    return KERNEL_MARKS[0 if kernel == "base" else 1 + _position(kernel, kernels) % (len(KERNEL_MARKS) - 1)]


def dash(kernel: str, kernels: Sequence[str]) -> str:
    """Return the line style of a kernel."""
    return DASHES[0 if kernel == "base" else 1 + _position(kernel, kernels) % (len(DASHES) - 1)]


def _position(kernel: str, kernels: Sequence[str]) -> int:
    variants = [name for name in kernels if name != "base" and not name.startswith("base-")]
    return variants.index(kernel) if kernel in variants else 0


def dumps(figure: PlotlyFigure) -> str:
    """Return the figure as JSON, without NaN. Equal figures give equal text."""
    return json.dumps(figure, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def resolve(figure: PlotlyFigure, theme: Mapping[str, str] = LIGHT) -> PlotlyFigure:
    """Return the figure with the names of colours replaced by the colours of ``theme``."""
    found: PlotlyFigure = json.loads(_COLOUR_NAME.sub(lambda name: json.dumps(theme[name[1]]), dumps(figure)))
    return found


def slug(*words: str) -> str:
    """Return a name for a file or an anchor, with dashes instead of special characters."""
    text = "-".join(word for word in words if word).replace(",", "")
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-")


def ratio_range(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the range of an axis of ratios: all of them and 1, with a margin; at least 1% to either side."""
    known = [ratio for ratio in ratios if ratio > 0 and math.isfinite(ratio)]
    low, high = min([*known, 0.99]), max([*known, 1.01])
    room = (high / low) ** 0.04
    return low / room, high * room


def shared_span(comparisons: Iterable[Comparison]) -> tuple[float, float]:
    """Return one range for the ratios of all ``comparisons``, so that pictures of them can be compared.

    A very wide interval does not decide it: what lies further out than a third of the span of the ratios that
    have a verdict is outside, and is drawn with an arrow.
    """
    every = [c for c in comparisons if c.ratio is not None and c.ratio > 0]
    firm = [c for c in every if c.verdict != "inconclusive"] or every
    ratios = [math.log(c.ratio or 1.0) for c in firm]
    low, high = min([*ratios, 0.0]), max([*ratios, 0.0])
    reach = max(_FURTHER * (high - low), math.log(_LEAST_REACH))
    ends = [end for c in every for end in (c.ratio or 1.0, *(c.ci or ())) if end > 0]
    return ratio_range([min(max(end, math.exp(low - reach)), math.exp(high + reach)) for end in ends])


def ratio_ticks(low: float, high: float, most: int = 7) -> tuple[list[float], list[str]]:
    """Return ticks of a logarithmic axis of ratios, and their labels: ``-50%``, ``0``, ``2x``."""
    apart = math.log(high / low) / most
    chosen = [1.0]
    for step in sorted(_TICKS, key=lambda step: (abs(math.log(step)), step)):
        if low <= step <= high and all(abs(math.log(step / other)) >= apart * 0.8 for other in chosen):
            chosen.append(step)
    chosen.sort()
    return chosen, [_change(step) for step in chosen]


def _change(ratio: float) -> str:
    if ratio == 1:
        return "0"
    if ratio >= 3:
        return f"{ratio:,.0f}x"
    return percent(ratio, 0 if abs(round(ratio * 100) - ratio * 100) < 1e-6 else 1)
