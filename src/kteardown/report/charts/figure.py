"""What every chart shares: its axes and its type, and colours that stand for what they mean.

A figure is plain data in plotly's own schema. Where it has a colour it has the name of one, ``$base`` or
``$better``, which the page fills in from the reader's theme and ``resolve`` from the light one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kteardown.model.result import Verdict
from kteardown.report.charts.palette import LIGHT
from kteardown.report.formatting import percent

Figure = dict[str, Any]
Trace = dict[str, Any]

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
MARKS: Mapping[Verdict, str] = {
    "better": "circle",
    "worse": "diamond",
    "same": "circle-open",
    "inconclusive": "square-open",
}
"""A verdict has a mark as well as a colour: not everybody sees all colours."""
KERNEL_MARKS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
DASHES = ("solid", "solid", "dash", "dashdot", "longdash")
_VARIANTS = 5
_NAMED = re.compile(r'"\$([a-z0-9-]+)"')
_TICKS = (
    *(0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995),
    *(1.005, 1.01, 1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 2, 3, 4, 5, 10, 20, 50, 100, 1000, 10_000, 100_000),
)


@dataclass(frozen=True)
class Chart:
    """One chart. ``about`` says what it shows, for who cannot see it; ``notes`` stand below it.

    ``height`` in CSS pixels, of a chart as wide as the page.
    """

    name: str
    title: str
    about: str
    figure: Figure
    height: int = 380
    notes: tuple[str, ...] = ()
    scales: bool = False
    """Both axes are of numbers: the page offers logarithmic ones, which tell N from N squared."""


@dataclass(frozen=True)
class Gallery:
    """Charts of one kind, of which one is shown at a time: the one that the choices name.

    ``choices`` are lists with a label each; ``charts`` has a chart by the options chosen, or part of them.
    """

    name: str
    choices: tuple[tuple[str, tuple[str, ...]], ...]
    charts: Mapping[tuple[str, ...], Chart]
    first: tuple[str, ...]
    metric: str = ""


def layout(**more: Any) -> dict[str, Any]:
    """A layout with the type and colours of all charts, and ``more`` in it."""
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
    """An axis with a quiet grid; ``more`` in plotly's own words."""
    plain: dict[str, Any] = {
        "gridcolor": "$grid",
        "linecolor": "$line",
        "zeroline": False,
        "ticks": "outside",
        "tickcolor": "$line",
        "ticklen": 4,
        "automargin": True,
        "title": {"text": title, "standoff": 8, "font": {"size": 12, "color": "$muted"}},
        "tickfont": {"size": 12, "color": "$muted"},
    }
    return {**plain, **more}


def colour(kernel: str, kernels: Sequence[str]) -> str:
    """A kernel's colour: base and its twins grey, variants by their place among ``kernels``."""
    if kernel == "base":
        return "$base"
    if kernel.startswith("base-"):
        return "$twin"
    return f"$kernel{_place(kernel, kernels) % _VARIANTS}"


def mark(kernel: str, kernels: Sequence[str]) -> str:
    """A kernel's symbol."""
    return KERNEL_MARKS[0 if kernel == "base" else 1 + _place(kernel, kernels) % (len(KERNEL_MARKS) - 1)]


def dash(kernel: str, kernels: Sequence[str]) -> str:
    """A kernel's line."""
    return DASHES[0 if kernel == "base" else 1 + _place(kernel, kernels) % (len(DASHES) - 1)]


def _place(kernel: str, kernels: Sequence[str]) -> int:
    variants = [name for name in kernels if name != "base" and not name.startswith("base-")]
    return variants.index(kernel) if kernel in variants else 0


def dumps(figure: Figure) -> str:
    """The figure as JSON, the same for the same figure, never a NaN."""
    return json.dumps(figure, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def resolve(figure: Figure, theme: Mapping[str, str] = LIGHT) -> Figure:
    """The figure with the colours of ``theme`` for their names."""
    found: Figure = json.loads(_NAMED.sub(lambda name: json.dumps(theme[name[1]]), dumps(figure)))
    return found


def slug(*words: str) -> str:
    """A name for a file and an anchor: what is no letter, digit, dot or dash becomes a dash."""
    text = "-".join(word for word in words if word).replace(",", "")
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-")


def ratio_range(ratios: Sequence[float]) -> tuple[float, float]:
    """What an axis of ratios shows: all of them and no change, with some room; at least two percent."""
    known = [ratio for ratio in ratios if ratio > 0 and math.isfinite(ratio)]
    low, high = min([*known, 0.99]), max([*known, 1.01])
    room = (high / low) ** 0.04
    return low / room, high * room


def ratio_ticks(low: float, high: float, most: int = 7) -> tuple[list[float], list[str]]:
    """Ticks of a logarithmic axis of ratios, and what they say as changes: ``-50%``, ``0``, ``2x``."""
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
