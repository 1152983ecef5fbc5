"""The verdicts as a picture: for each variant and headline metric a strip of its changes, on one axis.

The pictures are SVG in the page itself, so they are visible before any script runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from kteardown.model.result import Comparison, MetricVerdict, Result, Verdict
from kteardown.model.workload import Better
from kteardown.report.charts.ratio_axis import RatioAxis
from kteardown.report.comparison_groups import Group, headlines, variants
from kteardown.report.formatting import VERDICTS, change, interval, percent, point_text, tone
from kteardown.report.material import Material
from kteardown.report.metric_words import leading, metric_interval, metric_sentence, points_of, verdict_of
from kteardown.report.sections.fault_lines import is_broken

_ROW_PX, _LEAST_PX, _MOST_PX = 9, 30, 76


@dataclass(frozen=True)
class Strip:
    """One headline metric of one variant. ``anchor``: where the page explains it; ``height`` is in pixels.

    ``picture`` has its changes in SVG.
    """

    name: str
    anchor: str
    metric: str
    better: Better
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
    found = headlines(material.result, material.workloads)
    rows = [c for group in found for c in group.comparisons if c.ratio is not None]
    axis = RatioAxis.of(rows)
    sound = [v for v in variants(material.result) if not is_broken(material.result, v)]
    every = [_card(material.result, variant, found, axis) for variant in sound]
    return [card for card in every if card.strips]


def _card(result: Result, variant: str, found: Sequence[Group], axis: RatioAxis) -> Card:
    mine = [(group, rows) for group in found if (rows := group.of(variant))]
    metrics = [verdict_of(result, group, variant) for group, _ in mine]
    strips = tuple(
        _strip(group, rows, metric, axis) for (group, rows), metric in zip(mine, metrics, strict=True)
    )
    first, rows = mine[0] if mine else (None, [])
    lead = _lead(rows)
    figure = percent(lead.ratio) if lead and lead.ratio and lead.verdict != "inconclusive" else ""
    where = _where(first, lead) if first and lead else ""
    verdict = lead.verdict if lead else "inconclusive"
    whole = metrics[0] if metrics else None
    if first is not None and whole is not None and whole.planned > 1:
        verdict = whole.verdict
        figure = percent(whole.ratio) if whole.ratio and verdict != "inconclusive" else ""
        where = f"{first.name} over {points_of(whole)} {metric_interval(whole)}".rstrip()
    counts = Counter(metric.verdict for metric in metrics if metric is not None)
    return Card(
        variant=variant,
        verdict=verdict,
        counts=tuple((verdict, counts[verdict]) for verdict in VERDICTS if counts[verdict]),
        figure=figure,
        where=where,
        strips=strips,
        axis=axis,
    )


def _lead(rows: Sequence[Comparison]) -> Comparison | None:
    """Return the comparison at the last point whose verdict is the one of all comparisons together."""
    whole = tone(rows)
    return next((c for c in reversed(rows) if c.verdict == whole), None)


def _where(group: Group, c: Comparison) -> str:
    at = f" at {point_text(c.point)}" if c.point else ""
    if c.verdict == "inconclusive":
        return f"{group.name}{at}: {change(c)}"
    ends = "" if c.ci is None or c.exact else f" {interval(c.ci)}"
    return f"{group.name}{at}{ends}"


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
    return Strip(group.name, group.anchor, group.metric, group.better, whole, words, picture, height)
