"""The verdicts as a picture: for each variant and headline metric a strip of its changes, on one axis.

The pictures are SVG in the page itself, so they are visible before any script runs.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from kteardown.model.result import Comparison, MetricVerdict, Verdict
from kteardown.report.charts.forest import RatioAxis
from kteardown.report.comparison_groups import (
    Group,
    headlines,
    leading,
    metric_interval,
    metric_sentence,
    points_of,
    variants,
    verdict_of,
)
from kteardown.report.formatting import VERDICTS, change, interval, percent, point_text, tone
from kteardown.report.material import Material
from kteardown.report.sections.fault_lines import is_broken

_ROW_PX, _LEAST_PX, _MOST_PX = 9, 30, 76


@dataclass(frozen=True)
class Strip:
    """One headline metric of one variant; ``picture`` has its changes in SVG, ``height`` is in pixels."""

    group: Group
    verdict: Verdict
    text: str
    picture: str
    height: int


@dataclass(frozen=True)
class Card:
    """The verdict on one variant.

    ``figure`` is its change of the first headline metric over all points, and ``where`` says so. ``verdict``
    is the verdict on this change; ``counts`` has the verdicts of all headline metrics.
    """

    variant: str
    verdict: Verdict
    counts: tuple[tuple[Verdict, int], ...]
    figure: str
    where: str
    strips: tuple[Strip, ...]
    axis: RatioAxis


def cards(material: Material) -> list[Card]:
    """Return a card for each variant that was compared and is not broken, all on the same axis."""
    result, found = material.result, headlines(material.result, material.workloads)
    axis = RatioAxis.of(c for group in found for c in group.comparisons if c.ratio is not None)
    made = []
    for variant in variants(result):
        groups = [group for group in found if group.of(variant)]
        if groups and not is_broken(result, variant):
            metrics = [verdict_of(result, group, variant) for group in groups]
            verdict, figure, where = _first(groups[0], groups[0].of(variant), metrics[0])
            counts = Counter(metric.verdict for metric in metrics if metric is not None)
            strips = [_strip(g, g.of(variant), m, axis) for g, m in zip(groups, metrics, strict=True)]
            shown = tuple((one, counts[one]) for one in VERDICTS if counts[one])
            made.append(Card(variant, verdict, shown, figure, where, tuple(strips), axis))
    return made


def _first(
    group: Group, rows: Sequence[Comparison], metric: MetricVerdict | None
) -> tuple[Verdict, str, str]:
    """Return a verdict, its change, and where that is: over all points, or at the last with this verdict."""
    if metric is not None and metric.planned > 1:
        where = f"{group.name} over {points_of(metric)} {metric_interval(metric)}".rstrip()
        verdict, ratio = metric.verdict, metric.ratio
    else:
        verdict = tone(rows)
        last = next(c for c in reversed(rows) if c.verdict == verdict)
        at = f" at {point_text(last.point)}" if last.point else ""
        ends = "" if last.ci is None or last.exact else f" {interval(last.ci)}"
        where = f"{group.name}{at}{f': {change(last)}' if verdict == 'inconclusive' else ends}"
        ratio = last.ratio
    return verdict, percent(ratio) if ratio and verdict != "inconclusive" else "", where


def _strip(group: Group, rows: Sequence[Comparison], metric: MetricVerdict | None, axis: RatioAxis) -> Strip:
    height = max(_LEAST_PX, min(_MOST_PX, _ROW_PX * len(rows) + 8))
    step = height / (len(rows) + 1)
    whole = leading(metric, rows)
    words = metric_sentence(group, rows, metric).removeprefix(f"{rows[0].variant}: ")
    words = words.replace(f" points of {group.name}", " points").replace(f" on {group.name}", "")
    picture = "".join(
        f"<g><title>{escape(f'{point_text(c.point)}: {change(c)}, {c.verdict}')}</title>"
        f"{axis.svg(c, round(step * (number + 1), 1))}</g>"
        for number, c in enumerate(rows)
        if c.ratio is not None
    )
    return Strip(group, whole, words, picture, height)
