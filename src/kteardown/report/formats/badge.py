"""The result as a badge: a small SVG with the verdict and the first change, as on the page of a project."""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape, quoteattr

from kteardown.model.result import Verdict
from kteardown.report.material import BothMaterial, Material
from kteardown.report.sentence import ALARMING, in_brief, sentence, tone_of
from kteardown.report.sentence_of_both import sentence_of_both

_COLOURS: Mapping[Verdict, str] = {
    "broken": "#a01010",
    "worse": "#b3261e",
    "mixed": "#8a3ea8",
    "better": "#1a7f37",
    "same": "#0f6e84",
    "inconclusive": "#6b5d00",
}
"""Dark enough for white text."""
_LABEL = "kteardown"
_HEIGHT = 20
_PER_CHARACTER = 6.6
_PADDING = 12


def render(material: Material) -> str:
    """Return the badge, with a newline at the end."""
    result = material.result
    text = in_brief(result, material.workloads)
    return _svg(text, tone_of(result), sentence(result, material.workloads))


def render_both(material: BothMaterial) -> str:
    """Return the badge of a run on both clocks: that of the clock with the more alarming result."""
    tones = {tone_of(one.result): one for one in reversed(material.clocks)}
    tone = min(tones, key=ALARMING.index)
    workloads = material.instructions.workloads
    return _svg(in_brief(tones[tone].result, workloads), tone, sentence_of_both(material.both, workloads))


def _svg(text: str, tone: Verdict, title: str) -> str:
    left, right = _width(_LABEL), _width(text)
    whole = left + right
    words = (
        f'<text x="{x:.0f}" y="14" textLength="{width - _PADDING:.0f}">{escape(word)}</text>'
        for x, width, word in ((left / 2, left, _LABEL), (left + right / 2, right, text))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole:.0f}" height="{_HEIGHT}" role="img" '
        f"aria-label={quoteattr(f'{_LABEL}: {text}')}><title>{escape(title)}</title>"
        f'<rect width="{whole:.0f}" height="{_HEIGHT}" rx="3" fill="{_COLOURS[tone]}"/>'
        f'<path d="M3 0h{left - 3:.0f}v{_HEIGHT}H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="#3b3f45"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f"{''.join(words)}</g></svg>\n"
    )


def _width(text: str) -> float:
    return len(text) * _PER_CHARACTER + _PADDING
