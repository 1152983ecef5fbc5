"""A flame graph as SVG without a script: widths in percent, rows in pixels."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from kteardown.report.charts.figure import Trace

_ROW_PX = 18
_NARROWEST = 3.0
"""A frame of this many percent has its name written in it."""


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
            f'<svg x="{left:.2f}%" y="{level * _ROW_PX}" width="{width:.2f}%" height="{_ROW_PX - 1}">'
            f'<rect width="100%" height="100%" style="fill:{_shade(colour)}"/>{words}'
            f"<title>{escape(label)}: {escape(text.replace('<br>', '; '))}</title></svg>"
        )
    height = _ROW_PX * (1 + max(level for _, _, level in places.values()))
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
