"""The contents of a report in order: verdicts, tables and facts, and how its time was made.

The text and Markdown formats only lay them out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from kteardown.analysis.timing import NO_LIMIT
from kteardown.judge.metrics import groups, headlines, is_headline, metric_name, variants
from kteardown.judge.verdicts import most_alarming
from kteardown.model.faults import VoidTrials
from kteardown.model.result import Outlier, Result
from kteardown.model.timing import Timing
from kteardown.model.workload import Workload
from kteardown.report.charts import written
from kteardown.report.formatting import (
    WORDS,
    counted,
    percent,
    point_text,
    size_of,
    verdict_counts,
    with_remedy,
)
from kteardown.report.material import Material
from kteardown.report.revisions import revisions_in
from kteardown.report.sections.ablation import ablation_sentences, ablation_tables
from kteardown.report.sections.changes import headline_table, metric_tables
from kteardown.report.sections.events import counted_events
from kteardown.report.sections.fault_lines import (
    detail_in_words,
    fault_lines,
    fault_sentence,
    uncompared_sentences,
    unconfirmed_sentences,
)
from kteardown.report.sections.growth import law_tables
from kteardown.report.sections.levels import level_tables, wait_tables, waited_tables
from kteardown.report.sections.profile import profile_tables
from kteardown.report.sections.published import published_tables
from kteardown.report.sections.samples import distribution_tables
from kteardown.report.sections.sharing import sharing_tables
from kteardown.report.table import Block, Cell, Table, Text

_HASH = 10
_LONG_FACT = 160
_OUTLIERS = 10


def verdicts(material: Material) -> list[Cell]:
    """Return what failed or was not compared, what revisions keep, the ablations, and the stop."""
    result = material.result
    workloads = material.workloads
    lines = fault_lines(result)
    if len(result.kernels) == 1:
        return lines
    if not lines and not any(headlines(result, workloads)):
        boots = sum(result.boots.values())
        lost = sum(void.count for void in result.voids)
        is_comparable = any(
            spec.compare for workload in workloads.values() for spec in workload.metrics.values()
        )
        return [
            Cell(text, "inconclusive")
            for text in written("nothing", result, boots, lost, is_comparable)
        ]
    lines += [Cell(text) for text in revisions_in(result, workloads)]
    lines += [Cell(text) for text in ablation_sentences(result, workloads)]
    if result.stopping is not None:
        unit = "boots" if result.clock == "wall" else "seeds"
        lines += map(Cell, written("stopped", result.stopping, unit))
    return lines


def tables(material: Material, room: tuple[int, int] | None = None) -> dict[str, list[Table]]:
    """Return every table except the one of the kernels, by the part of the report that it is in.

    ``room`` is the number of characters of a line and between columns if bars can be drawn, else
    None.
    """
    result = material.result
    workloads = material.workloads
    points = [headline_table(result, group) for group in headlines(result, workloads)]
    return {
        "changes": [
            *metric_tables(result, workloads),
            *points,
            *level_tables(result, workloads),
        ],
        "patches": ablation_tables(material, room),
        "growth": law_tables(material),
        "sharing": sharing_tables(result),
        "profile": [
            *counted_events(result),
            *waited_tables(result),
            *wait_tables(result),
            *profile_tables(result),
        ],
        "posting": published_tables(material),
        "tail": distribution_tables(material),
        "run": [*other_metrics(result, workloads), *outliers_table(result, workloads)],
    }


def all_tables(material: Material, room: tuple[int, int] | None = None) -> list[Table]:
    """Return the same in the order of a text."""
    return [table for part in tables(material, room).values() for table in part]


def other_metrics(result: Result, workloads: Mapping[str, Workload]) -> list[Table]:
    """Return the table of the metrics that have no table of their own: a row for each metric and
    variant.

    Empty if all have one.
    """
    rows: list[list[Text]] = []
    for group in groups(result, workloads):
        if is_headline(workloads, group.workload, group.metric):
            continue
        for variant in variants(result):
            mine = group.of(variant)
            points = verdict_counts(c.verdict for c in mine)
            alarm = most_alarming(c.verdict for c in mine)
            changes = _span([c.ratio, c.ratio] for c in mine if c.ratio is not None)
            intervals = [(c.null_ci, c.layout_ci) for c in mine]
            twins = [_span(filter(None, cis)) for cis in zip(*intervals, strict=True)]
            if mine:
                rows.append(
                    [
                        f"{group.name} ({group.key})",
                        variant,
                        (points, alarm),
                        changes,
                        *twins,
                    ]
                )
    if not rows:
        return []
    names = ("metric", "variant", "points", "change", "A/A", "layout")
    used = [n for n, _ in enumerate(names) if n < 4 or any(row[n] for row in rows)]
    columns = [names[n] for n in used]
    cells: list[list[Text]] = [[row[n] for n in used] for row in rows]
    return [Table("Other metrics", Block.of(columns, cells, left=columns))]


def _span(intervals: Iterable[Sequence[float]]) -> str:
    """Return the lowest and the highest end of the intervals, as changes."""
    ends = [end for interval in intervals for end in interval]
    return f"{percent(min(ends))} to {percent(max(ends))}" if ends else ""


def outliers_table(result: Result, workloads: Mapping[str, Workload]) -> list[Table]:
    """Return the table of the outlier boots, the most distant first; empty without one."""
    boots: dict[tuple[str, int], list[Outlier]] = {}
    for outlier in result.outliers:
        boots.setdefault((outlier.kernel, outlier.block), []).append(outlier)
    if not boots:
        return []
    farthest = [
        (
            kernel,
            block,
            len(of),
            max(of, key=lambda outlier: size_of(outlier.value / outlier.median)),
        )
        for (kernel, block), of in boots.items()
    ]
    farthest.sort(key=lambda row: -size_of(row[3].value / row[3].median))
    rows = []
    for kernel, block, count, far in farthest:
        name = metric_name(workloads, far.workload, far.metric, far.statistic)
        place = f"{name} {point_text(far.point)}".rstrip()
        rows.append((kernel, str(block), str(count), f"{far.value / far.median:.2f}x", place))
    columns = ("kernel", "block", "values", "farthest / median", "metric and point")
    notes = [WORDS["outliers"]]
    if len(rows) > _OUTLIERS:
        notes.append(f"result.json has {len(rows) - _OUTLIERS} more boots")
    shown = Block.of(columns, rows[:_OUTLIERS], left=("kernel", "metric and point"))
    return [Table("Outlier boots", shown, notes=tuple(notes))]


def kernels_table(result: Result) -> Table:
    """Return the table of the kernels that were booted, with the hashes of their inputs."""
    rows = [
        (name, facts.release, facts.source, facts.config_hash[:_HASH], facts.image_hash[:_HASH])
        for name, facts in result.kernels.items()
    ]
    columns = ("kernel", "release", "source", "config", "image")
    compilers = dict.fromkeys(facts.compiler for facts in result.kernels.values())
    arches = dict.fromkeys(facts.arch for facts in result.kernels.values())
    made = [f"{', '.join(arches)}; {'; '.join(compilers)}"] if rows else []
    notes = (*made, *_script_modules(result))
    return Table("Kernels", Block.of(columns, rows, left=columns), notes=notes)


def _script_modules(result: Result) -> Iterator[str]:
    """Yield which modules of prebuilt kernels were loaded before a script."""
    kernels: dict[tuple[str, ...], list[str]] = {}
    for name, facts in result.kernels.items():
        modules = tuple(dict.fromkeys(chain(*facts.script_modules.values())))
        kernels.setdefault(modules, []).append(name)
    for modules, names in kernels.items():
        if modules:
            of = f" of {', '.join(names)}" if len(kernels) > 1 else ""
            yield f"modules of its package{of}, loaded before the script: {', '.join(modules)}"


def facts(result: Result, *, alone: bool = True) -> list[tuple[str, str]]:
    """Return names and values of the conditions of the run: clock, boots, unusable trials, host.

    ``alone``: only this clock was measured, so a line says what the other one would add.
    """
    boots = ", ".join(f"{count} {outcome}" for outcome, count in result.boots.items() if count)
    lines = [("clock", f"{result.clock}: {WORDS['clocks'][result.clock]}")]
    # It counts, and the guest's clock is the sum over its CPUs.
    if result.clock != "contention":
        lines += [("time", text) for text in timing_lines(result.timing)]
    if alone:
        lines.append(("other clock", WORDS["other_clock"][result.clock]))
    if result.clock == "wall" and result.comparisons:
        lines.append(("columns", WORDS["columns"]))
    named = dict.fromkeys(c.workload for c in result.comparisons)
    if named:
        shown = ", ".join(f"`kteardown show workload {name}`" for name in named)
        lines.append(("metrics", f"what each of them is: {shown}"))
    lines.append(("boots", boots or "none"))
    lines += [("unusable trials", text) for text in _unusable_trials(result)]
    lines += [("note", note) for note in result.notes]
    lines += [
        (f"host {name}", text) for name, value in result.machine.items() if (text := _fact(value))
    ]
    return lines


def further_commands(result: Result, *, alone: bool) -> list[tuple[str, str]]:
    """Return what a further measurement would add, and its command: what sentences have options
    for.

    ``alone``: only this clock was measured.
    """
    commands = []
    if any(with_remedy(c.reason) != c.reason for c in result.asked_for):
        more = "--boots" if result.clock == "wall" else "--seeds"
        commands.append(("With intervals", f"{result.command} {more} 2"))
    if any(NO_LIMIT in note for note in result.notes):
        unlimited = f"{result.command} {NO_LIMIT}"
        commands.append(("Without a limit on the time that a trial may lose", unlimited))
    if alone and result.clock != "contention":
        other = re.sub(r" --clock[ =]\S+", "", result.command)
        commands.append(("On both clocks, side by side", f"{other} --clock both"))
    return commands


def _unusable_trials(result: Result) -> list[str]:
    """Return a line for the unusable trials of each kernel, workload and reason."""
    by_reason: dict[tuple[str, str, str, str], list[VoidTrials]] = {}
    for void in result.voids:
        by_reason.setdefault((void.kernel, void.workload, void.status, void.detail), []).append(
            void
        )
    lines = []
    for (kernel, workload, status, detail), voids in by_reason.items():
        lost = (
            f"{counted(sum(void.count for void in voids), 'trial')} "
            f"{status.replace('missing', 'lost')}"
        )
        at = (
            f"{len(voids)} points"
            if len(voids) > 1
            else point_text(voids[0].point) or "the only point"
        )
        lines.append(f"{kernel}: {lost} at {at} of {workload}: {detail_in_words(detail)}")
    return lines


def _fact(value: Any) -> str:
    """Return a fact of the host on one line. Long facts are only in result.json."""
    if isinstance(value, Mapping):
        entries = {name: text for name, entry in value.items() if (text := _fact(entry))}
        text = ", ".join(f"{name} {entry}" for name, entry in entries.items())
        return text if len(text) <= _LONG_FACT else f"{len(entries)} entries, in result.json"
    return "" if value is None else str(value)


def limits(result: Result, *, alone: bool = True) -> list[str]:
    """Return what the figures are based on and what they do not show, one sentence each.

    ``alone``: only this clock was measured, so a sentence says what the other one would add.
    """
    boots = max((side.boots for c in result.asked_for for side in (c.base, c.changed)), default=0)
    against_itself = _span(c.null_ci for c in result.asked_for if c.null_ci)
    faults = [
        fault_sentence(f)
        for f in result.faults
        if f.status != "broken" and result.is_asked_for(f.kernel)
    ]
    faults += (*uncompared_sentences(result), *unconfirmed_sentences(result))
    values = (result, boots, timing_lines(result.timing), against_itself, faults, alone)
    return written("limits", *values) + [as_sentence(note, result.kernels) for note in result.notes]


def as_sentence(note: str, names: Iterable[str] = ()) -> str:
    """Return a note as a sentence of its own. One of ``names`` at its begin is unchanged."""
    first = note[:1] if note.startswith(tuple(names)) else note[:1].upper()
    return f"{first}{note[1:].rstrip('.')}."


def timing_lines(timing: Timing | None) -> list[str]:
    """Return how the time was made as one line, and a warning for each way that distorts it.

    Empty for a result that did not record it.
    """
    if timing is None:
        return []
    parts = dict.fromkeys(written("timing", timing))
    distorted = WORDS["distorted"]
    warnings = [f"warning: {distorted[made]}" for made in timing.made if made in distorted]
    return ["; ".join(parts), *warnings]
