"""The result in lines, with which every report begins: one for each variant, in a fixed form.

``VARIANT: worse: METRIC CHANGE; better: METRIC CHANGE and 2 more; undecided: METRIC; 6 points (wall)``

``unconfirmed`` are figures that the kernel or the script made itself, which would be better.

The clauses are in the order of ``_TONES``. ``worse`` and ``better`` are always there, with ``none`` if
nothing is; of a broken variant nothing else is said. A metric has its key, and the smallest and the largest
change of the points with this verdict; on both clocks, the mean change on each. What does not fit into a line
is counted.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kteardown.analysis.failing import Direction, points_that_turned
from kteardown.model.clock import Clock
from kteardown.model.record import BASE
from kteardown.model.result import (
    BothClocks,
    Comparison,
    FaultStatus,
    MetricVerdict,
    Result,
    Uncompared,
    Verdict,
)
from kteardown.model.workload import Workload
from kteardown.report.diff import revisions_in
from kteardown.report.formatting import counted, share, size_of, tone, with_remedy
from kteardown.report.metrics import groups, is_headline, variants, verdict_of
from kteardown.visible import on_one_line

WIDTH = 100
_TONES: Mapping[str, Verdict] = {
    "broken": "broken",
    "maybe broken": "broken",
    "worse": "worse",
    "not compared": "inconclusive",
    "unconfirmed": "inconclusive",
    "better": "better",
    "undecided": "inconclusive",
    "the same": "same",
    "no effect": "same",
}
"""The clauses in their order, with the tone of a line whose first clause it is."""
_ALWAYS: tuple[Direction, ...] = ("worse", "better")
_SAME = ("the same", "no effect")
_FAULTS = ("broken", "maybe broken", "not compared")
_OWN = "unconfirmed"
_NEVER_LEFT_OUT = (*_FAULTS, "worse", _OWN)
_LONGEST_NAME = 24
"""Clauses are left out before the name of a variant is cut to less."""
_STEPS = (
    *((label, 1, False) for label in (*_ALWAYS, _OWN, "undecided")),
    ("", 0, False),
    *((label, 3, True) for label in _FAULTS),
    *((label, 1, True) for label in (*_ALWAYS, _OWN)),
    ("", 1, False),
    *((label, named, True) for named in (2, 3) for label in (*_ALWAYS, _OWN)),
    *((label, named, False) for label in ("undecided", *_SAME) for named in (0, 1, 2, 3)),
    ("undecided", 1, True),
    *(("", number, False) for number in (2, 3, 4, 5)),
)
"""What a line has if there is room, the most important first: a clause, how many metrics of it are named, and
whether with all that is said of them. Without a clause: the end with this number."""
_KINDS = {"oom": "out of memory", "agent-error": "agent error", "invariant": "failed invariant"}


class VariantLine(NamedTuple):
    """What is said of one kernel, and the verdict that its colour shows."""

    tone: Verdict
    text: str


class _Item(NamedTuple):
    """A metric or a fault of a clause: what is said of it if there is room, and if there is not."""

    long: str
    short: str
    size: float = 0.0
    headline: bool = True


def sentence(result: Result | BothClocks, workloads: Mapping[str, Workload]) -> str:
    """Return the lines of a result as one text."""
    return "\n".join(line.text for line in lines(result, workloads))


def lines(result: Result | BothClocks, workloads: Mapping[str, Workload]) -> list[VariantLine]:
    """Return a line for each variant, and one for base if it fails: what alarms most is first."""
    results = [result] if isinstance(result, Result) else list(result.results.values())
    absent = dict.fromkeys(name for one in results for name in one.not_built)
    asked = dict.fromkeys(name for one in results for name in one.requested or variants(one))
    found = [_of_variant(results, workloads, name) for name in asked if name not in absent]
    if base := _faults(results, BASE, "base"):
        found.append(_line(BASE, {"broken": base}))
    found.sort(key=lambda line: list(_TONES.values()).index(line.tone))
    if not asked:
        found.append(VariantLine("inconclusive", f"{BASE}: there is nothing to compare it with"))
    nothing = [_cut(name, "nothing of it is in the kernel that was built") for name in absent]
    return [VariantLine("inconclusive", text) for text in nothing] + found


def _of_variant(results: Sequence[Result], workloads: Mapping[str, Workload], variant: str) -> VariantLine:
    left = sum(one.boots_left for one in results)
    unfinished = any(one.unfinished for one in results)
    so_far = f"so far{f', {left} boots left' if left else ''}: " if unfinished else ""
    if broken := _faults(results, variant, "broken"):
        return _line(variant, {"broken": broken}, so_far)
    rows = [c for one in results for c in one.asked_for if c.variant == variant]
    suspected = _faults(results, variant, "suspected")
    lost = _lost(results, workloads, variant, rows)
    if not rows and not suspected and not lost:
        sound = all(one.boots.get("ok") == sum(one.boots.values()) and not one.voids for one in results)
        nothing = "no fault, and no metric is compared" if sound else "not compared with base"
        return VariantLine("inconclusive", _cut(variant, so_far + nothing))
    clauses = {"worse": [], "better": [], **_metrics(results, workloads, variant)}
    clauses |= {"maybe broken": suspected, "not compared": lost}
    end = counted(len(set(map(_place, rows))), "point")
    clocks = results[0].clock if len(results) == 1 else "both clocks"
    ends = [end, f"{end} ({clocks})"]
    for text in _endings(results, workloads, variant, rows):
        end = f"{text}; {end}"
        ends += [end, f"{end} ({clocks})"]
    return _line(variant, clauses, so_far, ends)


def _metrics(
    results: Sequence[Result], workloads: Mapping[str, Workload], variant: str
) -> dict[str, list[_Item]]:
    """Return the metrics of each clause: first the headline metrics, then the largest changes."""
    found: dict[str, dict[tuple[str, str], dict[Clock, _Item]]] = {}
    for result in results:
        every = [(group, rows) for group in groups(result, workloads) if (rows := group.of(variant))]
        # Of a workload that this version does not know, all metrics count.
        known = any(is_headline(workloads, group.workload, group.metric) for group, _ in every)
        for group, rows in every:
            headline = not known or is_headline(workloads, group.workload, group.metric)
            for label, item in _labels(rows, verdict_of(result, group, variant), headline=headline):
                # Equal to the digit is a word of one clock.
                clause = "the same" if label in _SAME and len(results) > 1 else label
                mine = found.setdefault(clause, {}).setdefault((group.workload, group.key), {})
                mine[result.clock] = item
    return {
        label: sorted(
            (_on_clocks(key, items, both=len(results) > 1) for (_, key), items in mine.items()),
            key=lambda item: (not item.headline, -item.size),
        )
        for label, mine in found.items()
    }


def _labels(
    rows: Sequence[Comparison], metric: MetricVerdict | None, *, headline: bool
) -> Iterator[tuple[str, _Item]]:
    """Yield each clause in which a metric is, on one clock, with what is said of it there."""
    whole, named = (metric.verdict if metric else tone(rows)), False
    for label in _ALWAYS:
        mine = points_that_turned(metric, rows, label)
        if mine or whole == label:
            named = True
            yield label, _change_item(label, mine, rows, metric)._replace(headline=headline)
    own = [c for c in rows if c.outside == "contradicts"]
    if own:
        named = True
        yield _OWN, _change_item(_OWN, own, rows, metric)._replace(headline=headline)
    if whole == "same" and headline:
        equal = all(c.exact and c.ratio == 1 for c in rows)
        yield "no effect" if equal else "the same", _Item("", "")
    elif headline and ((whole == "inconclusive" and not own) or (whole == "mixed" and not named)):
        mde = metric.mde if metric else None
        yield "undecided", _Item(f"(smallest detectable {share(mde)})" if mde else "", "")


def _change_item(
    label: str, mine: Sequence[Comparison], rows: Sequence[Comparison], metric: MetricVerdict | None
) -> _Item:
    """Return the span of the changes at the points ``mine``; in short, the mean of all or the largest."""
    ratios = sorted((c.ratio for c in mine if c.ratio is not None), key=size_of)
    at = f" at {len(mine)} of {len(rows)}" if 0 < len(mine) < len(rows) else ""
    mean = metric.ratio if metric and metric.verdict == label else None
    ends = list(dict.fromkeys(map(_change, ratios[:1] + ratios[-1:] if ratios else [mean])))
    long = " to ".join(ends) + at
    short = f"mean {_change(mean)}" if mean is not None else f"up to {ends[-1]}{at}"
    size = max(map(size_of, ratios), default=0.0 if mean is None else size_of(mean))
    return _Item(long, min(short, long, key=len), size)


def _on_clocks(key: str, items: Mapping[Clock, _Item], *, both: bool) -> _Item:
    """Return what is said of a metric; if there are two clocks, in short and with the clock of each."""
    first, *others = items.values()
    said = [first.long, first.short]
    if both and {other.short for other in others} == {first.short}:
        said = [first.short] * 2
    elif both:
        texts = [f"{item.short.removeprefix('mean ')} {clock}".lstrip() for clock, item in items.items()]
        said = ["/".join(texts)] * 2
    long, short = (f"{key} {text}".rstrip() for text in said)
    return _Item(long, short, max(item.size for item in items.values()), first.headline)


def _faults(results: Sequence[Result], kernel: str, status: FaultStatus) -> list[_Item]:
    """Return the faults of a kernel, those in the same words once, with their clock if there are two."""
    found: dict[_Item, None] = {}
    for result in results:
        clock = f", {result.clock}" if len(results) > 1 else ""
        for fault in result.faults:
            if fault.kernel == kernel and fault.status == status:
                short = f"{_KINDS.get(fault.kind, fault.kind)} in {len(fault.boots)} of {fault.of} boots"
                base = "" if kernel == BASE else f"base in {fault.base_boots} of {fault.base_of}"
                inside = f"{base}{clock}".lstrip(", ")
                found[_Item(f"{short} ({inside})" if inside else short, short)] = None
    return list(found)


def _lost(
    results: Sequence[Result], workloads: Mapping[str, Workload], variant: str, rows: Sequence[Comparison]
) -> list[_Item]:
    """Return at how many points the variant was not compared, on any clock."""
    silent = {n for n, known in workloads.items() if not any(m.compare for m in known.metrics.values())}
    missing = [u for one in results for u in one.uncompared if u.variant == variant]
    lost = {_place(u) for u in missing if u.workload not in silent}
    total = len(lost | set(map(_place, rows)))
    texts = (f"{len(lost)} of {counted(total, 'point')}", f"{len(lost)} of {total}")
    return [_Item(*texts)] if lost else []


def _place(of: Comparison | Uncompared) -> tuple[object, ...]:
    return of.workload, *sorted(of.point.items())


def _endings(
    results: Sequence[Result], workloads: Mapping[str, Workload], variant: str, rows: Sequence[Comparison]
) -> list[str]:
    """Return what makes the next run decide, and what a revision keeps of the one before, without figures.

    Each is there only if one text is right for all points and clocks.
    """
    reasons = {c.reason for c in rows if c.verdict == "inconclusive"}
    options = {with_remedy(text, one.clock).removeprefix(f"{text}, ") for text in reasons for one in results}
    about = f"{variant} "
    texts = [text for one in results for text in revisions_in(one, workloads) if text.startswith(about)]
    kept = {re.sub(r" \([^()]*\)", "", text).removeprefix(about) for text in texts}
    return [found.pop() for found in (options - reasons, kept) if len(found) == 1]


def _line(
    kernel: str, clauses: Mapping[str, Sequence[_Item]], so_far: str = "", ends: Sequence[str] = ()
) -> VariantLine:
    """Return a line of at most ``WIDTH`` columns, with as many of ``_STEPS`` as there is room for.

    ``ends``: what may be its end, the shortest first.
    """
    name = on_one_line(kernel)
    shown = [label for label in _TONES if clauses.get(label) or (label in clauses and label in _ALWAYS)]
    tone: Verdict = next((_TONES[label] for label in shown if clauses[label]), "inconclusive")
    form: dict[str, tuple[int, bool]] = {label: (0, False) for label in shown if label not in _SAME}

    def text(form: Mapping[str, tuple[int, bool]]) -> str:
        texts = [f"{one}: {_listed(one, clauses[one], *form[one])}" for one in shown if one in form]
        left_out = ["..."] if not set(shown) <= {*form, *_SAME} else []
        return so_far + "; ".join([*texts, *left_out, *([ends[form[""][0]]] if "" in form else [])])

    room = WIDTH - 2 - min(len(name), _LONGEST_NAME)
    for label in [label for label in reversed(form) if label not in _NEVER_LEFT_OUT]:
        if len(text(form)) > room:
            del form[label]
    if len(text(form)) > room and "maybe broken" in form:
        form["maybe broken"] = (-1, False)
    for label, named, long in _STEPS:
        known = named < len(ends) if not label else label in form or (label in _SAME and label in shown)
        more = {**form, label: (named, long)}
        if label == "worse" and clauses.get(label) and len(text(more)) + 2 + len(name) > WIDTH:
            more.pop("undecided", None)  # What is worse is named before what is undecided.
        if known and len(text(more)) + 2 + len(name) <= WIDTH:
            form = more
    return VariantLine(tone, _cut(kernel, text(form)))


def _listed(label: str, items: Sequence[_Item], named: int, long: bool) -> str:
    """Return the first items and how many more there are; ``none`` without one."""
    texts = [item.long if long else item.short for item in items]
    if named < 0:
        return counted(len(texts), "fault")
    named = max(named, 1) if label in _FAULTS else named
    if len(texts) <= named or not texts:
        return ", ".join(texts) or "none"
    if not named:
        return counted(len(texts), "metric")
    return f"{', '.join(texts[:named])} and {len(texts) - named} more"


def _cut(kernel: str, text: str) -> str:
    """Return the line of a kernel, whose name is cut where the line would be too long."""
    name, room = on_one_line(kernel), WIDTH - len(text) - 2
    return f"{name if len(name) <= room else name[: max(room - 3, 0)] + '...'}: {text}"


def _change(ratio: float | None) -> str:
    """Return a change: ``-61%``, ``+5.8%``; one decimal below 10%, and where nearly everything is saved."""
    if ratio is None:
        return "(no ratio)"
    whole = 0.0995 <= (size := abs(ratio - 1)) < 0.995 or ratio > 1.1
    return f"{'+' if ratio >= 1 else '-'}{f'{size:,.0%}' if whole else f'{size:.1%}'}"
