"""The result of a run on both clocks in one sentence.

What both clocks say of a metric is said once; where they differ, each has a clause. A disagreement is first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from kteardown.model.both_clocks import BothClocks, ClockReading
from kteardown.model.clock import CLOCKS
from kteardown.model.record import BASE
from kteardown.model.result import FaultStatus, Result
from kteardown.model.workload import Workload
from kteardown.report.comparison_groups import is_headline
from kteardown.report.formatting import point_text
from kteardown.report.metric_names import metric_name
from kteardown.report.revision import revisions_in
from kteardown.report.sentence import (
    BASE_ALONE,
    FULL,
    UNHURT,
    beside_counted,
    counted,
    faults,
    not_built_texts,
    not_compared,
    nothing,
    requested_of,
    sort_of,
)
from kteardown.report.verdict_clauses import (
    Found,
    beside_worse,
    changes,
    exceptions,
    few,
    found_of,
    no_changes,
    nothing_worse,
    worst_beside,
)

_BOTH = "on both clocks"
_IN_PARENTHESES = re.compile(r" \([^()]*\)")
_OPPOSITE = ({"better", "worse"}, {"better", "mixed"}, {"worse", "mixed"})
_Parts = list[tuple[str, str]]
"""Clauses, each with the clocks that it is of; these are empty where the clause itself says them."""


def sentence_of_both(both: BothClocks, workloads: Mapping[str, Workload]) -> str:
    """Return the sentence, which ends with a full stop."""
    results = [both.results["instructions"], both.results["wall"]]
    requested = tuple(dict.fromkeys(v for result in results for v in requested_of(result)))
    base = [f"base itself fails {text}" for text in _faults(results, BASE, "base")]
    absent = not_built_texts(tuple(dict.fromkeys(v for result in results for v in result.not_built)))
    if not requested and not absent:
        return "; ".join([BASE_ALONE, *base]) + "."
    texts = (
        [_of_variant(results, workloads, variant) for variant in requested]
        if len(requested) <= FULL
        else _of_many(results, workloads, requested)
    )
    whole = (
        _unfinished(results)
        + _disagreement(both, workloads)
        + "; ".join([*absent, *texts, *_revisions(results, workloads), *base])
    )
    # The name of a variant is as the user wrote it.
    return f"{whole if whole.startswith(requested) else whole[:1].upper() + whole[1:]}."


def _unfinished(results: Sequence[Result]) -> str:
    unfinished = [result for result in results if result.unfinished]
    if not unfinished:
        return ""
    left = sum(result.boots_left for result in unfinished)
    where = "" if len(unfinished) > 1 else f" {_on(unfinished[0])}"
    return f"so far (the run{where} is not finished{f'; boots left: {left}' if left else ''}): "


def _disagreement(both: BothClocks, workloads: Mapping[str, Workload]) -> str:
    """Return that the clocks disagree, and at which point if they do not over all points."""
    broken = {v for result in both.results.values() for v in result.requested if result.broken(v)}

    def opposite(readings: Iterable[ClockReading]) -> list[ClockReading]:
        return [
            r
            for r in readings
            if r.reading == "disagree"
            and r.variant not in broken
            and is_headline(workloads, r.workload, r.metric)
        ]

    points = opposite(both.readings)
    if not points and not opposite(both.metrics):
        return ""
    if opposite(both.metrics) or not points[0].point:
        return "the clocks disagree: "
    first = points[0]
    name = metric_name(workloads, first.workload, first.metric, first.statistic)
    more = f" and {len(points) - 1} more points" if len(points) > 1 else ""
    return f"the clocks disagree on {name} with {first.variant} at {point_text(first.point)}{more}; "


def _of_variant(results: Sequence[Result], workloads: Mapping[str, Workload], variant: str) -> str:
    broken = _faults(results, variant, "broken")
    if broken:
        return f"{variant} is broken {' and '.join(broken)}"
    found = [found_of(result, workloads, variant) for result in results]
    suspected = _faults(results, variant, "suspected")
    missing = [
        f"could not be compared {_on(result)} {text}"
        for result, own in zip(results, found, strict=True)
        if (text := not_compared(result, workloads, variant, own))
    ]
    headlines = [[f for f in own if f.headline] for own in found]
    parts: _Parts = [("", f"may be broken {text}") for text in suspected]
    parts += _of_metrics(results, headlines)
    parts += _same_once(results, [exceptions(own) for own in headlines])
    parts += [("", text) for text in missing]
    parts += _beside(results, found)
    parts = parts or _same_once(results, [[nothing(result)] for result in results])
    gains = any(f.verdict == "better" for own in headlines for f in own)
    unhurt = gains and not suspected and not missing and all(map(nothing_worse, found))
    return "; ".join([_joined(variant, parts), *([UNHURT] if unhurt else [])])


def _of_metrics(results: Sequence[Result], headlines: Sequence[Sequence[Found]]) -> _Parts:
    """Return what both clocks say of the headline metrics, and what only one of them says."""
    exact, wall = ({f.key: f for f in own} for own in headlines)
    pairs = {key: wall[key].on_both(exact.get(key)) for key in wall}
    agreed = [f for f in pairs.values() if f is not None]
    apart = [[f for f in own if pairs.get(f.key) is None] for own in headlines]
    both: _Parts = [(_BOTH, text) for text in _clauses(agreed, alone=not any(apart))]
    each: _Parts = [
        (_on(result), text)
        for result, own in zip(results, apart, strict=True)
        for text in _clauses(own, alone=not agreed)
    ]
    opposite = any({exact[f.key].verdict, f.verdict} in _OPPOSITE for f in apart[1] if f.key in exact)
    return each + both if opposite else both + each


def _beside(results: Sequence[Result], found: Sequence[Sequence[Found]]) -> _Parts:
    """Return what is worse beside the headline metrics, of both clocks with the figures of the wall clock."""
    exact, wall = map(worst_beside, found)
    if exact and wall and exact.key == wall.key:
        return [(_BOTH, text) for text in beside_worse(found[1])]
    return _same_once(results, [beside_worse(own) for own in found])


def _clauses(found: Sequence[Found], *, alone: bool) -> list[str]:
    changed = changes(found)
    return changed + no_changes(found, alone=alone and not changed)


def _same_once(results: Sequence[Result], texts: Sequence[Sequence[str]]) -> _Parts:
    """Return the clauses of each clock, those of both only once."""
    if texts[0] == texts[1]:
        return [(_BOTH, text) for text in texts[0]]
    return [(_on(result), text) for result, own in zip(results, texts, strict=True) for text in own]


def _joined(variant: str, parts: _Parts) -> str:
    """Return the clauses with their subject, and with their clocks where these change."""
    texts: list[str] = []
    before, subject = None, variant
    for where, text in parts:
        texts.append(text if where == before else f"{where} {subject} {text}".lstrip())
        before, subject = where, "it"
    return "; ".join(texts)


def _of_many(
    results: Sequence[Result], workloads: Mapping[str, Workload], requested: Sequence[str]
) -> list[str]:
    """Return what each variant is whose clocks differ, then how many others there are of each sort."""
    found = [{v: found_of(result, workloads, v) for v in requested} for result in results]
    exact, wall = (
        {v: sort_of(result, own[v], v) for v in requested} for result, own in zip(results, found, strict=True)
    )
    # A variant that is broken on one clock is broken.
    sorts = {v: next((s for s in (exact[v], wall[v]) if s == "broken"), wall[v]) for v in requested}
    agreed = {v: sort for v, sort in sorts.items() if sort in (exact[v], "broken")}
    texts = [
        f"{v} is {exact[v]} on the instruction clock and {wall[v]} on the wall clock"
        for v in requested
        if v not in agreed
    ]
    if agreed:
        texts.append(f"{_BOTH} (changes: wall clock): {counted(agreed, found[1])}")
    return [f"of {len(requested)} variants, {texts[0]}", *texts[1:], *beside_counted(results, sorts)]


def _revisions(results: Sequence[Result], workloads: Mapping[str, Workload]) -> list[str]:
    """Return what each revision of a series keeps, without figures where both clocks say the same."""
    exact, wall = (revisions_in(result, workloads) for result in results)
    short = [[_IN_PARENTHESES.sub("", text) for text in texts] for texts in (exact, wall)]
    if short[0] == short[1]:
        return [f"{_BOTH} {text}" for text in short[0]]
    return [f"{_on(r)} {text}" for r, texts in zip(results, (exact, wall), strict=True) for text in texts]


def _faults(results: Sequence[Result], kernel: str, status: FaultStatus) -> list[str]:
    """Return the faults of a kernel, with their clocks: ``on the wall clock: it panics in 1 of 2 boots``."""
    texts = {
        _on(result): few(mine, "fault") for result in results if (mine := faults(result, kernel, status))
    }
    if len(texts) == len(results) and len(set(texts.values())) == 1:
        return [f"{_BOTH}: {next(iter(texts.values()))}"]
    return [f"{where}: {text}" for where, text in texts.items()]


def _on(result: Result) -> str:
    return f"on {CLOCKS[result.clock]}"
