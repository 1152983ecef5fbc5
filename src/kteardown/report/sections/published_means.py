"""Published means next to ours: mean (standard deviation) of each side, and a change in percent.

A change is positive if changed is better. Published figures get a verdict too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kteardown.inputs.published import Figure as PublishedFigure
from kteardown.inputs.published import Posted, PostedRow, Posting
from kteardown.model.record import ParamValue
from kteardown.model.result import Comparison, Result, Summary
from kteardown.model.workload import Better
from kteardown.report.formatting import Scale, number, parameter, scale
from kteardown.report.table import Block, Cell

if TYPE_CHECKING:
    from kteardown.analysis.estimate.from_means import MeanVerdict

Judgements = Mapping[tuple[str, ParamValue], "MeanVerdict"]
"""Verdicts by figure (the key of base's values) and value of the parameter."""

_MARGIN = 0.02
_TIMES = {"ns": Scale(1, "ns"), "us": Scale(1e3, "us"), "ms": Scale(1e6, "ms"), "s": Scale(1e9, "s")}
NOTE = (
    "changes are of means, and positive if changed is better; verdicts on our figures are over boots, as "
    "in the tables above; verdicts on posted figures are from their means and standard deviations alone "
    "(Welch's test, Holm's correction over all posted rows)"
)


def judge_posted(result: Result, reference: Posting) -> Judgements:
    """Return verdicts on the published means with a known number of runs, of metrics that we have."""
    ours = {c.metric: c for c in result.comparisons}
    rows = [
        (figure, row, ours[figure.metric])
        for figure in reference.figures
        if figure.means and figure.runs and figure.metric in ours
        for row in reference.rows(figure)
    ]
    if not rows:
        return {}
    # Importing scipy takes most of a second, which commands that compare nothing must not spend.
    from kteardown.analysis.estimate.from_means import Mean, judge_means
    from kteardown.analysis.estimate.verdict import Rules

    def mean(value: Posted, runs: int) -> Mean:
        return Mean(value.value, value.sd or 0.0, runs)

    first = rows[0][2]
    rules = Rules(first.confidence, first.same_within or _MARGIN)
    pairs = [
        (mean(row.base, figure.runs), mean(row.changed, figure.runs), c.better) for figure, row, c in rows
    ]
    names = [(figure.base, row.at) for figure, row, _ in rows]
    return dict(zip(names, judge_means(pairs, rules), strict=True))


def posted_block(
    figure: PublishedFigure, posted: Sequence[PostedRow], better: Better, judged: Judgements
) -> Block:
    """Return the published figures, with a row for each value of the parameter."""
    judgements = [judged.get((figure.base, row.at)) for row in posted]
    return Block(
        columns=(
            figure.param,
            "posted base",
            "posted changed",
            "change",
            *(("verdict",) if any(judgements) else ()),
        ),
        rows=tuple(
            (
                Cell(parameter(row.at)),
                Cell(_posted(row.base)),
                Cell(_posted(row.changed)),
                Cell(improvement(row.base.value, row.changed.value, better)),
                *((Cell(one.verdict, one.verdict),) if one else ()),
            )
            for row, one in zip(posted, judgements, strict=True)
        ),
        left=frozenset(("verdict",)),
    )


def our_blocks(
    result: Result,
    figure: PublishedFigure,
    posted: Sequence[PostedRow],
    rest: str,
    ours: Sequence[Comparison],
) -> list[Block]:
    """Return our base, changed, change and verdict of each variant, in the published unit of time."""
    blocks = []
    for variant, mine in by_variant(figure, ours).items():
        means = [side.mean for c in mine.values() for side in (c.base, c.changed)]
        unit = scale(next(iter(mine.values())).unit, result.clock, means)
        if unit.unit in _TIMES:
            unit = _TIMES.get(figure.unit, unit)
        base = f"here: base, {unit.unit} {rest}".rstrip()
        cells = [mine.get(row.at) for row in posted]
        columns = (base, variant, "change", "verdict")
        blocks.append(Block(columns, tuple(_ours(c, unit) for c in cells), left=frozenset(("verdict",))))
    return blocks


def by_variant(
    figure: PublishedFigure, ours: Sequence[Comparison]
) -> dict[str, dict[ParamValue, Comparison]]:
    """Return the comparisons of each variant by the value of the parameter that the figure varies."""
    groups: dict[str, dict[ParamValue, Comparison]] = {}
    for c in ours:
        groups.setdefault(c.variant, {})[c.point[figure.param]] = c
    return groups


def improvement(base: float, changed: float, better: Better) -> str:
    """Return the change of a mean in percent, positive if changed is better: ``-13.33%``."""
    if not base:
        return "-"
    change = (changed / base - 1) * (1 if better == "higher" else -1)
    # Adding 0.0 turns -0.0, a possible result of rounding, into 0.0.
    return f"{round(change * 100, 2) + 0.0:+.2f}%"


def _ours(c: Comparison | None, unit: Scale) -> tuple[Cell, ...]:
    if c is None:
        return (Cell("-"),) * 4
    return (
        Cell(_summary(c.base, unit)),
        Cell(_summary(c.changed, unit)),
        Cell(improvement(c.base.mean, c.changed.mean, c.better)),
        Cell(c.verdict, c.verdict),
    )


def _summary(side: Summary, unit: Scale) -> str:
    return f"{unit.text(side.mean)} ({number(side.sd / unit.divisor)})"


def _posted(value: Posted) -> str:
    return f"{value.value:,.2f}" + ("" if value.sd is None else f" ({value.sd:,.2f})")
