"""The tables of an ablation: the effect of each patch of a series, and its share of the whole."""

from collections.abc import Mapping

from kteardown.model.result import Ablation, Part, Result
from kteardown.model.workload import Workload
from kteardown.report.comparison_groups import PointKey, point_key
from kteardown.report.formatting import change_of, decimals, point_text, portion
from kteardown.report.metric_names import metric_name
from kteardown.report.table import Block, Table

_BAR = 10
_EIGHTHS = " ▏▎▍▌▋▊▉"


def largest_ablations(result: Result, workloads: Mapping[str, Workload]) -> list[Ablation]:
    """Return the ablation at the largest point, of each series, metric and setting of other parameters."""
    largest: dict[tuple[str, str, str, PointKey], Ablation] = {}
    for ablation in result.ablations:
        law = workloads[ablation.workload].law
        rest = point_key({name: value for name, value in ablation.point.items() if name != law})
        key = (ablation.variant, ablation.workload, ablation.metric, rest)
        if key not in largest or _size(ablation, law) >= _size(largest[key], law):
            largest[key] = ablation
    return list(largest.values())


def ablation_sentences(result: Result, workloads: Mapping[str, Workload]) -> list[str]:
    """Return which patch has the largest share, for each ablation.

    The form is ``S: patch 2 of 3 accounts for 65% [60, 70] of the change of M at P``.
    """
    lines = []
    for ablation in largest_ablations(result, workloads):
        known = [p for p in ablation.patches if p.step.share is not None]
        if known:
            most = max(known, key=lambda p: p.step.share or 0.0)
            where = f" at {point_text(ablation.point)}" if ablation.point else ""
            lines.append(
                f"{ablation.series}: patch {most.patch} of {len(ablation.patches)} accounts for "
                f"{portion(most.step)} of the change of {_name(ablation, workloads)}{where}"
            )
    return lines


def ablation_tables(
    result: Result, workloads: Mapping[str, Workload], room: tuple[int, int] | None
) -> list[Table]:
    """Return a table for each ablation, with a row per patch.

    ``room`` is the number of characters of a line and between columns if bars can be drawn, else None. Bars
    are drawn only if the table needs no more parts than without them.
    """
    tables = []
    for ablation in largest_ablations(result, workloads):
        name = _name(ablation, workloads)
        plain, drawn = (_table(ablation, name, bars=bars) for bars in (False, True))
        tables.append(drawn if room is not None and _fits(drawn, plain, *room) else plain)
    return tables


def _fits(drawn: Table, plain: Table, width: int, gap: int) -> bool:
    parts = drawn.cut(width, gap)
    return len(parts) == len(plain.cut(width, gap)) and all(part.width(gap) <= width for part in parts)


def _name(ablation: Ablation, workloads: Mapping[str, Workload]) -> str:
    return metric_name(workloads, ablation.workload, ablation.metric)


def _table(ablation: Ablation, metric: str, *, bars: bool) -> Table:
    digits = decimals(part for p in ablation.patches for part in (p.step, p.leave_out))
    patches = ablation.patches
    steps = [(*_texts(p.step, digits), *([_bar(p.step.share)] if bars else [])) for p in patches]
    blocks = (
        Block.of(("added", "share", *(("",) if bars else ())), steps, left=("",)),
        Block.of(("left out", "share"), [_texts(p.leave_out, digits) for p in patches]),
    )
    at = f" at {point_text(ablation.point)}" if ablation.point else ""
    whole = change_of(ablation.ratio, ablation.ci, exact=ablation.exact, decimals=digits)
    title = f"{ablation.variant}: effect of each patch on {metric}{at}; whole series: {whole}"
    keys = Block.of(("patch",), [(str(p.patch),) for p in patches])
    return Table(title, keys, blocks, _notes(ablation))


def _texts(part: Part, digits: int) -> tuple[str, str]:
    alone = "-" if part.ratio is None else change_of(part.ratio, part.ci, exact=part.exact, decimals=digits)
    return alone, portion(part)


def _notes(ablation: Ablation) -> tuple[str, ...]:
    notes = [f"{p.patch}: {p.subject}" for p in ablation.patches if p.subject]
    notes.append(
        "added: change when the patch is added to those before it; left out: change from the series without "
        "the patch to the whole series; share: of the change of the whole series, on the log scale"
    )
    reasons: dict[str, list[str]] = {}
    for p in ablation.patches:
        for how, part in (("added", p.step), ("left out", p.leave_out)):
            if part.reason:
                reasons.setdefault(part.reason, []).append(f"{p.patch} {how}")
    for reason, where in reasons.items():
        everywhere = len(where) == 2 * len(ablation.patches)
        notes.append(f"{'no shares' if everywhere else ', '.join(where)}: {reason}")
    return tuple(notes)


def _size(ablation: Ablation, law: str) -> float:
    size = ablation.point.get(law, 0)
    return size if isinstance(size, int) else 0


def _bar(share: float | None) -> str:
    """Return the share as a bar of blocks, in eighths of a block; a share is limited to the range 0 to 1."""
    eighths = round(max(0.0, min(1.0, share or 0.0)) * _BAR * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()
