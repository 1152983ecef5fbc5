"""A card for each variant: its verdict, and a strip of changes for each headline metric.

The strips are SVG in the page itself, so they need no script to be filtered, printed and read
aloud.
"""

from collections import Counter
from typing import NamedTuple

from kteardown.judge.answer import MetricAnswer
from kteardown.judge.metrics import Group, variants
from kteardown.judge.verdicts import VERDICTS, most_alarming
from kteardown.model.judged import Verdict
from kteardown.report.charts import draw_as
from kteardown.report.formatting import change, interval, percent, point_text
from kteardown.report.material import Material
from kteardown.report.metrics import metric_sentence, points_text
from kteardown.report.ratio_axis import RatioAxis

_ROW_PX = 9
_LEAST_PX = 30
_MOST_PX = 76


class Strip(NamedTuple):
    """One headline metric of one variant; ``picture`` has its changes in SVG, ``height`` is in
    pixels."""

    group: Group
    verdict: Verdict
    text: str
    picture: str
    height: int


class Card(NamedTuple):
    """The verdict on one variant.

    ``figure`` is its change of the first headline metric over all points, and ``where`` says so.
    ``verdict`` is the verdict on this change; ``counts`` has the verdicts of all headline metrics.
    """

    variant: str
    verdict: Verdict
    figure: str
    where: str
    counts: list[tuple[Verdict, int]]
    strips: list[Strip]
    axis: RatioAxis


def cards(material: Material) -> list[Card]:
    """Return a card for each variant that was compared and is not broken, all on the same axis."""
    result = material.result
    by_name = {variant.name: variant.headlines for variant in material.answer.variants}
    compared = {name: findings for name in variants(result) if (findings := by_name.get(name, ()))}
    axis = RatioAxis.of(
        c for findings in compared.values() for finding in findings for c in finding.points
    )
    made = []
    for variant, findings in compared.items():
        if not result.broken(variant):
            number = Counter(
                finding.whole.verdict for finding in findings if finding.whole is not None
            )
            counts = [(verdict, number[verdict]) for verdict in VERDICTS if number[verdict]]
            strips = [_strip(finding, axis) for finding in findings]
            made.append(Card(variant, *_first(findings[0]), counts, strips, axis))
    return made


def _first(finding: MetricAnswer) -> tuple[Verdict, str, str]:
    """Return a verdict, its change, and where that is: over all points, or at the last with this
    verdict."""
    group = finding.group
    metric = finding.whole
    if metric is not None and metric.planned > 1:
        ends = "" if metric.ci is None or metric.exact else f" {interval(metric.ci)}"
        where = f"{group.name} over {points_text(metric)}{ends}"
        verdict = metric.verdict
        ratio = metric.ratio
    else:
        verdict = most_alarming(c.verdict for c in finding.points)
        last = next(c for c in reversed(finding.points) if c.verdict == verdict)
        at = f" at {point_text(last.point)}" if last.point else ""
        ends = "" if last.ci is None or last.exact else f" {interval(last.ci)}"
        where = f"{group.name}{at}{f': {change(last)}' if verdict == 'inconclusive' else ends}"
        ratio = last.ratio
    return verdict, percent(ratio) if ratio and verdict != "inconclusive" else "", where


def _strip(finding: MetricAnswer, axis: RatioAxis) -> Strip:
    group = finding.group
    rows = finding.points
    height = max(_LEAST_PX, min(_MOST_PX, _ROW_PX * len(rows) + 8))
    step = height / (len(rows) + 1)
    words = metric_sentence(finding).removeprefix(f"{finding.variant}: ")
    words = words.replace(f" points of {group.name}", " points").replace(f" on {group.name}", "")
    rows_of = [
        (round(step * (number + 1), 1), f"{point_text(c.point)}: {change(c)}, {c.verdict}", c)
        for number, c in enumerate(rows)
        if c.ratio is not None
    ]
    return Strip(group, finding.verdict, words, draw_as("strip", axis, rows_of), height)
