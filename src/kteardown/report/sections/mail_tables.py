"""The figures of a run as plain text for a mail: the most telling tables in few lines of 72
columns, and what the words in them mean."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kteardown.judge.answer import judge
from kteardown.judge.metrics import Group, headline_rows, name_of
from kteardown.judge.verdicts import VERDICTS
from kteardown.model.clock import Clock
from kteardown.model.judged import Comparison, Judged, MetricVerdict
from kteardown.model.laws import Law
from kteardown.model.record import BASE
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import Result
from kteardown.model.workload import Parameter, Workload
from kteardown.report.formatting import (
    Scale,
    change,
    change_of,
    decimals,
    number,
    percent,
    point_text,
    scale,
    verdict_counts,
)
from kteardown.report.metrics import metric_change, point_cells, points_text
from kteardown.report.table import Block
from kteardown.visible import on_one_line

TABLES = 3
"""So many tables are in a mail; of the others only the change over all points is."""
ROWS: Mapping[int, int] = {1: 8, 2: 6, 3: 4}
"""By the number of tables, so many rows each of them has."""
_GAP = 2
_INSTRUCTIONS_OF_A_LONG_NUMBER = 1e7
_MILLION = 1e6
_SETTINGS = 3
"""For so many settings of the other parameters, the growth is shown."""
_MACHINE: Mapping[str, str] = {
    "cpus": "CPUs of the guest",
    "possible_cpus": "CPUs for which the kernel provides, of which only cpus are online",
    "numa_nodes": "NUMA nodes of the guest",
}
_IN_TIMES = 10
"""From this ratio on, a table has ratios and no percentages."""
_GROWS: Mapping[str, str] = {
    "constant": "does not grow",
    "linear": "grows linearly",
    "nlogn": "grows as N log N",
    "quadratic": "grows as N squared",
    "power": "grows as a power of N",
}


@dataclass(frozen=True)
class Figures:
    """A headline metric of one variant, at all its points."""

    result: Result
    workload: Workload | None
    group: Group
    variant: str
    rows: tuple[Comparison, ...]
    whole: MetricVerdict | None

    @property
    def title(self) -> str:
        """Return the variant and the metric."""
        return f"{on_one_line(self.variant)}: {self.group.name}"

    @property
    def over_all(self) -> str:
        """Return the change over all points with its verdict; empty if there is none."""
        if self.whole is None:
            return ""
        missing = f" ({points_text(self.whole)})" if self.whole.points < self.whole.planned else ""
        size = metric_change(self.whole, self.rows)
        if self.in_times and self.whole.ratio is not None:
            size = f"{_times(self.whole)} times base"
        return f"{size}, {self.whole.verdict}{missing}"

    @property
    def in_times(self) -> bool:
        """Return whether changes are so large that a ratio is easier to read than a percentage."""
        ends = (c.ci[1] if c.ci else c.ratio for c in self.rows)
        return any(end is not None and end >= _IN_TIMES for end in ends)


@dataclass(frozen=True)
class MailTable:
    """A table under its title, and the lines below it."""

    title: str
    block: Block
    notes: tuple[str, ...]


def figures(result: Result, workloads: Mapping[str, Workload]) -> list[Figures]:
    """Return the headline metrics of each variant that is not broken, in the order of the
    report."""
    return [
        Figures(result, workloads.get(group.workload), group, variant, tuple(rows), whole)
        for group, variant, rows, whole in headline_rows(result, workloads)
        if not result.broken(variant)
    ]


def chosen(found: Sequence[Figures]) -> tuple[list[Figures], list[Figures]]:
    """Return what has a table, and what has none: a metric has the tables of all its variants, or
    none.

    Only the first metric can have too many variants for that.
    """
    by_metric: dict[tuple[str, str], list[Figures]] = {}
    for item in found:
        by_metric.setdefault((item.group.workload, item.group.key), []).append(item)
    shown: list[Figures] = []
    for items in by_metric.values():
        if shown and len(shown) + len(items) > TABLES:
            break
        shown += items[:TABLES]
    return shown, [item for item in found if item not in shown]


def table_of(item: Figures, width: int, most_rows: int) -> MailTable:
    """Return the table of a metric and variant.

    Without room for both, the column of the change stays and that of the changed figure goes.
    """
    unit = _unit(item.rows, item.result.clock)
    kept = kept_rows([c.verdict == "worse" for c in item.rows], most_rows)
    names, keys, settings = _points([c.point for c in item.rows])
    digits = decimals(item.rows)
    cells = [
        (
            *key,
            unit.text(c.base.compared),
            unit.text(c.changed.compared),
            _times(c) if item.in_times else change(c, digits),
            c.verdict,
        )
        for n, (key, c) in enumerate(zip(keys, item.rows, strict=True))
        if n in kept
    ]
    size = "changed / base" if item.in_times else "change"
    columns = (*names, "base", "changed", size, "verdict")
    block = Block.of(columns, cells, left=("verdict",))
    if block.width(_GAP) > width:
        place = len(names) + 1
        cells = [(*row[:place], *row[place + 1 :]) for row in cells]
        narrow = Block.of((*columns[:place], *columns[place + 1 :]), cells, left=("verdict",))
        block = narrow if narrow.width(_GAP) <= width else block
    at = f" ({settings})" if settings else ""
    of_unit = "" if unit.unit == "count" else f"in {unit.unit}, "
    title = f"{item.title}{at}, {of_unit}{item.group.better} is better"
    others = [c for n, c in enumerate(item.rows) if n not in kept]
    notes = [f"{_more(others)}."] if others else []
    if item.over_all and len(item.rows) > 1:
        notes.append(f"On average: {item.over_all}.")
    return MailTable(title, block, (*notes, *_growth(item)))


def _times(judged: Judged) -> str:
    """Return a ratio with its interval: ``5.107 [5.055, 5.160]``."""
    if judged.ratio is None:
        return "no ratio"
    if judged.exact or judged.ci is None:
        return f"{number(judged.ratio)}{' exact' * judged.exact}"
    return f"{number(judged.ratio)} [{', '.join(map(number, judged.ci))}]"


def _unit(rows: Sequence[Comparison], clock: Clock) -> Scale:
    values = [side.compared for c in rows for side in (c.base, c.changed)]
    unit = scale(rows[0].unit, clock, values)
    if unit.unit == "instructions" and max(values) / unit.divisor >= _INSTRUCTIONS_OF_A_LONG_NUMBER:
        return Scale(unit.divisor * _MILLION, "million instructions")
    return unit


def kept_rows(alarming: Sequence[bool], most: int) -> set[int]:
    """Return the numbers of the rows that are shown: those that are ``alarming``, and the last
    ones.

    A table that has one row more than ``most`` is whole.
    """
    if len(alarming) <= most + 1:
        return set(range(len(alarming)))
    first = [n for n, is_alarming in enumerate(alarming) if is_alarming][-most:]
    others = [n for n in range(len(alarming)) if n not in first]
    room = most - len(first)
    return {*first, *(others[-room:] if room else ())}


def _points(
    points: Sequence[Mapping[str, ParamValue]],
) -> tuple[tuple[str, ...], list[tuple[str, ...]], str]:
    """Return the parameters that have a column, their values in each row, and what holds for all
    rows: a parameter has no column if it is the same everywhere, or always that of another one."""
    names, keys = point_cells(points)
    columns = dict(zip(names, zip(*keys, strict=True), strict=True))
    firsts: dict[tuple[str, ...], str] = {}
    equal = {}
    for name, column in columns.items():
        first = firsts.setdefault(column, name)
        if first != name and len(set(column)) > 1:
            equal[name] = first
    left = tuple(name for name in names if name not in equal)
    rows = [tuple(columns[name][n] for name in left) for n in range(len(points))]
    same = {name: value for name, value in points[0].items() if name not in names}
    settings = [point_text(same), *(f"{name}={first}" for name, first in equal.items())]
    return left, rows, " ".join(filter(None, settings))


def _more(rows: Sequence[Comparison]) -> str:
    """Return what the rows say that are not shown: how many have each verdict, and their
    changes."""
    counts = Counter(c.verdict for c in rows)
    parts = [
        f"{counts[verdict]} {verdict}{_span([c for c in rows if c.verdict == verdict])}"
        for verdict in VERDICTS
        if counts[verdict]
    ]
    return f"{len(rows)} more row{'s' * (len(rows) > 1)}: {', '.join(parts)}"


def _span(rows: Iterable[Comparison]) -> str:
    ratios = [c.ratio for c in rows if c.ratio is not None]
    ends = dict.fromkeys(percent(ratio) for ratio in (min(ratios), max(ratios))) if ratios else ()
    return f" ({' to '.join(ends)})" if ends else ""


def _growth(item: Figures) -> Iterator[str]:
    """Yield what one more object costs on both sides, for each setting of the other parameters."""
    if item.group.statistic != "median":
        return
    laws = [
        law
        for law in item.result.laws
        if (law.workload, law.metric) == (item.group.workload, item.group.metric)
    ]
    of_base = {point_text(law.point): law for law in laws if law.kernel == BASE}
    pairs = [
        (base, law)
        for law in laws
        if law.kernel == item.variant and (base := of_base.get(point_text(law.point)))
    ]
    varying = {name for _, law in pairs for name in law.point if _varies(name, pairs)}
    texts = [_slopes(item.result.clock, base, law, varying) for base, law in pairs]
    told = [text for text in texts if text]
    yield from told[-_SETTINGS:]
    if len(told) > _SETTINGS:
        yield f"{len(told) - _SETTINGS} more such settings got better or worse."


def _varies(name: str, pairs: Sequence[tuple[Law, Law]]) -> bool:
    return len({law.point.get(name) for _, law in pairs}) > 1


def _slopes(clock: Clock, base: Law, law: Law, varying: Iterable[str]) -> str:
    """Return both slopes with their ratio; empty if it is no better or worse, or a law is not
    known."""
    if law.verdict not in ("better", "worse") or "unknown" in (base.model, law.model):
        return ""
    if base.per_unit is None or law.per_unit is None:
        return ""
    unit = scale(law.unit, clock, [base.per_unit, law.per_unit])
    sides = [number(side / unit.divisor) for side in (base.per_unit, law.per_unit)]
    place = point_text({name: law.point[name] for name in law.point if name in varying})
    at = f" at {place}" if place else ""
    text = (
        f"Cost of one more ({law.param}){at}: base {sides[0]}, changed {sides[1]}"
        f"{'' if unit.unit == 'count' else f' {unit.unit}'}, "
        f"{change_of(law.ratio, law.ratio_ci)}, {law.verdict}"
    )
    if base.model != law.model:
        text += f"; base {_GROWS[base.model]}, changed {_GROWS[law.model]}"
    return f"{text}."


def definitions(shown: Sequence[Figures]) -> list[str]:
    """Return what each metric and each parameter of some tables is, in the words of the
    workloads."""
    texts: dict[str, None] = {}
    for item in shown:
        spec = item.workload.metrics.get(item.group.metric) if item.workload else None
        if spec and spec.help:
            # The percentiles of a metric have one explanation.
            name = name_of(item.group.metric, spec)
            own = f" (as the {spec.reporter} reports it)" if spec.reporter != "agent" else ""
            texts[f"{_explained(name, spec.help)}{own}"] = None
    for item in shown:
        parameters = item.workload.parameters if item.workload else {}
        used: dict[str, dict[str, None]] = {}
        for c in item.rows:
            for name, value in c.point.items():
                used.setdefault(name, {})[str(value)] = None
        for name, values in used.items():
            spec_of = parameters.get(name)
            help_text = _of_choices(spec_of, values) if spec_of else _MACHINE.get(name, "")
            if help_text:
                texts[_explained(name, help_text)] = None
    return list(texts)


def _explained(name: str, help_text: str) -> str:
    """Return a name with its explanation, which may itself begin with the name."""
    text = on_one_line(help_text).rstrip(".;")
    if re.match(rf"{re.escape(name)}\b.*: ", text):
        return text
    return f"{name}: {text.removeprefix(f'the {name}: ')}"


def _of_choices(spec: Parameter, used: Collection[str]) -> str:
    """Return what a parameter is, without what it says of the choices that are not used.

    What is said of a choice begins with its name and a colon: ``none: no other process runs``.
    """
    kept = []
    is_kept = True
    for part in re.split(r"(?<=[.;]) ", spec.help):
        head, colon, _ = part.partition(": ")
        words = head.split(", ")
        if colon and all(word in spec.choices or word.startswith("...") for word in words):
            ends = tuple(word.removeprefix("...") for word in words if word.startswith("..."))
            is_kept = any(value in words or value.endswith(ends or ("\n",)) for value in used)
        if is_kept:
            kept.append(part)
    text = " ".join(kept)
    return text if text.count("(") == text.count(")") else spec.help


def legend(shown: Sequence[Figures]) -> str:
    """Return what the verdicts mean that occur; empty without figures."""
    judged = [judged for item in shown for judged in (*item.rows, item.whole) if judged]
    verdicts = {one.verdict for one in judged}
    margins = [one.same_within for one in judged if one.same_within]
    margin = f"{100 * max(margins):g}%" if margins else "a margin"
    is_shared = any(item.result.clock == "contention" for item in shown)
    both = ", and at both costs of a moved line" * is_shared
    meanings = {
        "better, worse": (
            f"the whole interval is on one side of no change, also after a correction for the "
            f"number of tests{both}",
            {"better", "worse", "inconclusive"},
        ),
        "same": (
            f"the whole interval is within {margin} of no change, on whichever side",
            {"same", "inconclusive"},
        ),
        "inconclusive": ("none of these; more boots could decide", {"inconclusive"}),
        "mixed": ("better in some rows and worse in others", {"mixed"}),
    }
    texts = [
        f"{word}: {meaning}" for word, (meaning, which) in meanings.items() if verdicts & which
    ]
    if any(c.exact for c in judged):
        texts.append("exact: all boots of a kernel have the same figure")
    return f"{'. '.join(texts)}." if texts else ""


def other_metrics(result: Result, workloads: Mapping[str, Workload], most: int) -> list[str]:
    """Return the smallest and the largest change of each metric that has no verdict over all
    points and got better or worse at a point: what got worse is first, and ``most`` are named."""
    found: list[tuple[bool, str]] = []
    variants = [v for v in judge(result, workloads).variants if not v.with_status("broken")]
    for variant in variants:
        whose = f"{on_one_line(variant.name)}: " * (len(variants) > 1)
        for finding in variant.findings:
            verdicts = [c.verdict for c in finding.points]
            if not finding.headline and {"better", "worse"} & {*verdicts}:
                text = f"{whose}{finding.group.name}{_span(finding.points)}"
                found.append(("worse" not in verdicts, f"{text}: {verdict_counts(verdicts)}"))
    texts = [text for _, text in sorted(found, key=lambda item: item[0])]
    left = len(texts) - most
    return [*texts[:most], *([f"and {left} more"] if left > 0 else [])]
