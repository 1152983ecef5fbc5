"""The tables of an ablation: what each patch of a series does, and how much of the whole it carries."""

from __future__ import annotations

from collections.abc import Mapping

from kteardown.model.result import Ablation, Part, Result
from kteardown.model.workload import Workload
from kteardown.report.formatting import change_of, decimals, place, portion
from kteardown.report.table import Block, Cell, Table

_BAR = 10
_EIGHTHS = " ▏▎▍▌▋▊▉"


def shown(result: Result, workloads: Mapping[str, Workload]) -> list[Ablation]:
    """Of each series, metric, and set of the other parameters: the one at the largest point."""
    largest: dict[tuple[str, str, str, str], Ablation] = {}
    for ablation in result.ablations:
        law = workloads[ablation.workload].law
        rest = place({name: value for name, value in ablation.point.items() if name != law})
        key = (ablation.variant, ablation.workload, ablation.metric, rest)
        if key not in largest or _size(ablation, law) >= _size(largest[key], law):
            largest[key] = ablation
    return list(largest.values())


def sentences(result: Result, workloads: Mapping[str, Workload]) -> list[str]:
    """Which patch carries most: ``S: patch 2 carries 65% [60, 70] of the change of M at P``."""
    lines = []
    for ablation in shown(result, workloads):
        told = [p for p in ablation.patches if p.step.share is not None]
        if told:
            most = max(told, key=lambda p: p.step.share or 0.0)
            where = f" at {place(ablation.point)}" if ablation.point else ""
            lines.append(
                f"{ablation.series}: patch {most.patch} of {len(ablation.patches)} carries "
                f"{portion(most.step)} of the change of {ablation.metric}{where}"
            )
    return lines


def ablation_tables(
    result: Result, workloads: Mapping[str, Workload], room: tuple[int, int] | None
) -> list[Table]:
    """A row per patch. ``room``: the characters of a line and between columns, where bars can be drawn.

    They are drawn where they take no further part of a table.
    """
    tables = []
    for ablation in shown(result, workloads):
        plain, drawn = (_table(ablation, bars=bars) for bars in (False, True))
        tables.append(drawn if room is not None and _fits(drawn, plain, *room) else plain)
    return tables


def _fits(drawn: Table, plain: Table, width: int, gap: int) -> bool:
    parts = drawn.cut(width, gap)
    return len(parts) == len(plain.cut(width, gap)) and all(part.width(gap) <= width for part in parts)


def _table(ablation: Ablation, *, bars: bool) -> Table:
    digits = decimals(part for p in ablation.patches for part in (p.step, p.leave_out))
    keys = Block(("patch",), tuple((Cell(str(p.patch)),) for p in ablation.patches))
    steps = tuple(
        (*_cells(p.step, digits), *((Cell(_bar(p.step.share)),) if bars else ())) for p in ablation.patches
    )
    blocks = (
        Block(("added", "of the whole", *(("",) if bars else ())), steps, left=frozenset(("",))),
        Block(("left out", "of the whole"), tuple(_cells(p.leave_out, digits) for p in ablation.patches)),
    )
    at = f" at {place(ablation.point)}" if ablation.point else ""
    whole = change_of(ablation.ratio, ablation.ci, exact=ablation.exact, decimals=digits)
    title = f"{ablation.variant}: what each patch carries of {ablation.metric}{at}; the whole: {whole}"
    return Table(title, keys, blocks, _notes(ablation))


def _cells(part: Part, digits: int) -> tuple[Cell, Cell]:
    alone = "-" if part.ratio is None else change_of(part.ratio, part.ci, exact=part.exact, decimals=digits)
    return Cell(alone), Cell(portion(part))


def _notes(ablation: Ablation) -> tuple[str, ...]:
    notes = [f"{p.patch}: {p.subject}" for p in ablation.patches if p.subject]
    notes.append("added: to the patches before it; left out: the whole against the whole without it")
    why: dict[str, list[str]] = {}
    for p in ablation.patches:
        for how, part in (("added", p.step), ("left out", p.leave_out)):
            if part.reason:
                why.setdefault(part.reason, []).append(f"{p.patch} {how}")
    for reason, where in why.items():
        everywhere = len(where) == 2 * len(ablation.patches)
        notes.append(f"{'no shares' if everywhere else ', '.join(where)}: {reason}")
    return tuple(notes)


def _size(ablation: Ablation, law: str) -> float:
    size = ablation.point.get(law, 0)
    return size if isinstance(size, int) else 0


def _bar(share: float | None) -> str:
    """The share in blocks of eighths; nothing below zero, and no longer than the whole."""
    eighths = round(max(0.0, min(1.0, share or 0.0)) * _BAR * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()
