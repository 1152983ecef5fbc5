"""The table of the headline metrics over all their points: a row for each metric and variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kteardown.model.result import MetricVerdict, Result
from kteardown.model.workload import Workload
from kteardown.report.comparison_groups import headlines, variants
from kteardown.report.formatting import detectable, interval, probability, with_remedy
from kteardown.report.metric_words import leading, metric_change, points_of, verdict_of
from kteardown.report.sections.fault_lines import is_broken
from kteardown.report.table import Block, Table, Text

_COLUMNS = ("metric", "variant", "points", "boots", "change", "A/A", "layout", "mde", "p", "verdict")
_EXPLAINED = ("inconclusive", "mixed")
_CORRECTED = (
    "geometric mean over points and boots of changed / base (points compare medians over boots); p: after "
    "the correction over headline metrics and variants"
)


def brief_table(result: Result, workloads: Mapping[str, Workload]) -> Table | None:
    """Return a row for each headline metric and variant that is not broken, without tests; None if empty."""
    rows = []
    for group in headlines(result, workloads):
        for variant in variants(result):
            mine, metric = group.of(variant), verdict_of(result, group, variant)
            if mine and not is_broken(result, variant):
                verdict = leading(metric, mine)
                size = metric_change(metric, mine) if metric else "-"
                points = points_of(metric) if metric else f"{len(mine)} points"
                rows.append((group.name, variant, (size, verdict), points, (verdict, verdict)))
    columns = ("metric", "variant", "change", "points", "verdict")
    return Table("Headline metrics", Block.of(columns, rows, left=columns)) if rows else None


def metric_tables(result: Result, workloads: Mapping[str, Workload]) -> list[Table]:
    """Return the table; empty if no headline metric has more than one point."""
    found = [
        (group.name, metric, metric_change(metric, rows))
        for group in headlines(result, workloads)
        for variant in variants(result)
        if (rows := group.of(variant)) and (metric := verdict_of(result, group, variant)) is not None
    ]
    if not any(metric.planned > 1 for _, metric, _ in found):
        return []
    cells = [_row(*one) for one in found]
    used = [n for n in range(len(_COLUMNS)) if any(row[n] for row in cells)]

    def block(first: int, last: int) -> Block:
        mine = [n for n in used if first <= n < last]
        rows = [[row[n] for n in mine] for row in cells]
        return Block.of([_COLUMNS[n] for n in mine], rows, left=("metric", "variant", "verdict"))

    reasons = dict.fromkeys(m.reason for _, m, _ in found if m.verdict in _EXPLAINED)
    words = tuple(
        f"{m}: {with_remedy(reason)}" for reason in reasons for m in [_which(reason, found)] if reason
    )
    confidence = f"{found[0][1].confidence * 100:.4g}%"
    title = f"Headline metrics over all their points, change with {confidence} interval"
    blocks = tuple(one for one in (block(2, 5), block(5, 7), block(7, 10)) if one.columns)
    return [Table(title, block(0, 2), blocks, (_CORRECTED, *words))]


def _which(reason: str, found: list[tuple[str, MetricVerdict, str]]) -> str:
    mine = [name for name, m, _ in found if m.reason == reason and m.verdict in _EXPLAINED]
    return ", ".join(dict.fromkeys(mine))


def _row(name: str, metric: MetricVerdict, change: str) -> Sequence[Text]:
    planned = f"{metric.points}" + ("" if metric.points == metric.planned else f" of {metric.planned}")
    twins = [interval(ci) if ci else None for ci in (metric.null_ci, metric.layout_ci)]
    mde = None if metric.exact or metric.mde is None else detectable(metric.mde)
    p = None if metric.exact or metric.p_corrected is None else probability(metric.p_corrected)
    verdict = metric.verdict
    first = (name, metric.variant, planned, str(metric.boots), (change, verdict))
    return (*first, *twins, mde, p, (verdict, verdict))
