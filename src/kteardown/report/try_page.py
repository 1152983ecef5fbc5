"""The answer of ``kteardown try``: one page about a posted series, in 72 columns, for a reply on
the list."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any

from kteardown.coverage.changed import ChangedFunction
from kteardown.coverage.executed import PathCost
from kteardown.errors import KteardownError
from kteardown.judge.answer import outcome_of_error
from kteardown.judge.verdicts import OUTCOME_OF, VERDICTS, Outcome, worst
from kteardown.kernels.request import KernelImage
from kteardown.kernels.source_name import with_short_commit
from kteardown.model.events import EventFigure
from kteardown.model.record_fields import ParamValue
from kteardown.patches.config_of_series import SeriesConfig, why
from kteardown.patches.posted import PostedSeries
from kteardown.patches.tried_source import Base
from kteardown.report import charts
from kteardown.report.contents import limits
from kteardown.report.formats.cover import layout, tables, wrapped
from kteardown.report.formats.text import LINES
from kteardown.report.formatting import percent
from kteardown.report.material import Material, Measured
from kteardown.report.publication import Publication
from kteardown.report.sections.events import event_tables
from kteardown.report.sentence import VariantLine, lines
from kteardown.report.table import Table
from kteardown.visible import on_one_line, visible

_MANY = 8
_ROWS = 9
"""A longer table is not for a reply."""
_IN_ANSWER = 3
_CALM = ("same", "inconclusive")
_OF_SERIES = (
    *("name", "title", "revision", "message_id", "author", "date", "base_commit"),
    *("subjects", "missing", "notes"),
)
_OF_KERNEL = ("name", "source", "release", "compiler", "config_hash")


@dataclass(frozen=True)
class Exercise:
    """What a workload executes of a series: in sentences, and whether any changed line was
    executed."""

    sentences: tuple[str, ...] = ()
    exercised: bool | None = None
    """None if nothing was counted."""
    share: float = 0.0
    """Of the changed functions in what the kernel executes in the stretch."""
    cost: PathCost | None = None
    events: tuple[EventFigure, ...] = ()


@dataclass(frozen=True, eq=False)
class MeasuredWorkload:
    """A workload that was run, or is to be run, on base and on the series, and why."""

    workload: str
    why: str
    run: str = ""
    material: Measured | None = None
    exercise: Exercise = field(default_factory=Exercise)
    only_counted: bool = False
    """Whether its metrics are too noisy to show the change, whose cost is only counted."""
    params: dict[str, ParamValue] = field(default_factory=dict)
    """The small point at which its executions are counted."""
    smallest: float = 0.0
    """The smallest change that its metrics show; 0 if it is not known."""
    metrics: tuple[str, ...] = ()
    """Those that can show the change; empty: its headline metrics."""
    choices: dict[str, tuple[ParamValue, ...]] = field(default_factory=dict)
    """The choices of a parameter with which it executes enough of the change, of those that were
    counted."""

    def shows(self, share: float) -> bool:
        """Return whether its metrics can show that ``share`` of its instructions is saved."""
        return share >= self.smallest / (1 + self.smallest)

    @property
    def materials(self) -> tuple[Material, ...]:
        """The material of each clock that was measured."""
        return self.material.clocks if self.material else ()


@dataclass(frozen=True)
class Chosen:
    """What a series changes by its diffs, the workloads to run, and what no workload executes."""

    changed: tuple[ChangedFunction, ...] = ()
    workloads: tuple[MeasuredWorkload, ...] = ()
    spare: tuple[MeasuredWorkload, ...] = ()
    """What is counted, one after the other, if none of the workloads executes a changed line."""
    others: tuple[str, ...] = ()
    """The names of the workloads that execute changed functions and were not chosen."""
    not_executed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    maps_exist: bool = True
    """Whether there is a coverage map, which says what the workloads execute."""
    unmeasured: str = ""
    """How workloads execute what is changed, if that is too seldom to be measured."""
    after_build: bool = False
    """Whether the code of the kernels has to say first which functions use what the diffs
    change."""


@dataclass(frozen=True)
class Tried:
    """A series, what it was tried on, and what was found."""

    posted: PostedSeries
    base: Base
    config: SeriesConfig
    chosen: Chosen
    command: str
    measured: tuple[MeasuredWorkload, ...] = ()
    """What was run; before that, what is to be run."""
    changed_objects: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    """Which kernels have to be built as a whole, and how long that takes."""
    time: str = ""
    """How long the builds and the boots take, in a sentence of a dry run."""
    next_command: str = ""
    """What to type after a dry run."""
    kernels: tuple[KernelImage, ...] = ()
    """Base and the series, once they are built."""
    error: KteardownError | None = None
    """Why nothing says what the series does: with what the command ends after it has written its
    files."""


def page(tried: Tried) -> str:
    """Return the page, with a newline at the end."""
    exercised = [text for measurement in tried.measured for text in measurement.exercise.sentences]
    if tried.changed_objects:
        exercised.append(f"Objects of the kernel that differ: {_few(tried.changed_objects)}.")
    if tried.chosen.not_executed:
        exercised.append(f"No workload executes these: {_few(tried.chosen.not_executed)}.")
    limit_texts = [
        text
        for measurement in tried.measured
        for material in measurement.materials
        for text in limits(material.result, alone=len(measurement.materials) == 1)
    ]
    parts = [_heading(tried.posted), *map(wrapped, [*costs(tried), *sentence(tried).splitlines()])]
    parts += map(layout, event_tables((m.workload, m.exercise.events) for m in tried.measured))
    parts += [
        layout_of_few(table)
        for measurement in tried.measured
        if measurement.material
        for table in tables(measurement.material)
    ]
    parts.append(_section("What was exercised:", exercised))
    parts.append(_section("What was compared:", compared(tried)))
    parts.append(_section("Limits:", list(dict.fromkeys([*limit_texts, *notes(tried)]))))
    parts.append(f"To repeat it, with kteardown:\n\n  {on_one_line(tried.command)}")
    return visible("\n\n".join(filter(None, parts)) + "\n")


def notes(tried: Tried) -> list[str]:
    """Return what was noted, and which workloads execute changed functions and are not used."""
    used = {measurement.workload for measurement in tried.measured}
    others = [name for name in tried.chosen.others if name not in used]
    text = f"Other workloads execute changed functions too: {', '.join(others)}."
    return [*tried.chosen.notes, *([text] if others else [])]


def layout_of_few(table: Table) -> str:
    """Return the table under its title with at most 9 of its rows: those that are better or worse,
    then the last ones. A line says what the others are."""
    rows = table.keys.rows
    if len(rows) <= _ROWS:
        return layout(table)
    verdicts = [row[-1].text for row in rows]
    calm = [number for number, text in enumerate(verdicts) if text in _CALM]
    alarming = [number for number in range(len(rows)) if number not in calm]
    room = max(_ROWS - len(alarming), 0)
    kept = sorted([*alarming[:_ROWS], *(calm[-room:] if room else [])])
    few = replace(table.keys, rows=tuple(rows[number] for number in kept))
    left_out = Counter(verdicts[number] for number in range(len(rows)) if number not in kept)
    others = ", ".join(f"{count} {text}" for text, count in left_out.items())
    more = wrapped(f"and {len(rows) - len(kept)} more points: {others}.")
    return f"{layout(replace(table, keys=few))}\n{more}"


def first_page(tried: Tried, page: str) -> str:
    """Return the parts of the page that fit on a terminal, and where the rest is."""
    kept: list[str] = []
    parts = page.rstrip("\n").split("\n\n")
    for part in parts:
        if "\n\n".join([*kept, part]).count("\n") < LINES - 3:
            kept.append(part)
    if len(kept) < len(parts):
        runs = " and ".join(
            f"kteardown report {measurement.run}"
            for measurement in tried.measured
            if measurement.run
        )
        kept.append(
            f"The page has {len(parts) - len(kept)} more parts: add --markdown FILE, or see {runs}"
        )
    return "\n\n".join(kept) + "\n"


def plan(tried: Tried, *, with_answer: bool = True) -> str:
    """Return what would be done, before anything is built.

    ``with_answer``: with why there is nothing to do, unless an error below the page says it.
    """
    steps = [
        f"would {'only count the change in' if measurement.only_counted else 'run'} "
        f"{measurement.workload}: {measurement.why}"
        for measurement in tried.measured
    ]
    none = [] if tried.error else ["kteardown chooses the workloads after the build"]
    # The answer has the names of few functions that no workload executes.
    functions = [change for change in tried.chosen.changed if change.kind == "function"]
    plain = {f"{change.name} ({change.file})" for change in functions[:_IN_ANSWER]}
    is_said = tried.error and {*tried.chosen.not_executed} <= plain
    parts = [
        _heading(tried.posted),
        wrapped(sentence(tried)) if tried.error and with_answer else "",
        _section("What would be compared:", compared(tried)),
        _section("Builds:", tried.builds),
        _section("Workloads:", steps or none),
        ""
        if is_said
        else _section("Not executed by any workload:", listed(tried.chosen.not_executed)),
        _section("Notes:", notes(tried)),
        _section("Time:", [tried.time] if tried.time else []),
        f"To measure:\n\n  {on_one_line(tried.next_command)}" if tried.next_command else "",
    ]
    return visible("\n\n".join(filter(None, parts)) + "\n")


def publication(tried: Tried, page: str) -> Publication:
    """Return what the command says; ``page`` is for a mail."""
    return Publication(
        "try",
        sentence(tried),
        outcome(tried),
        tuple(
            measurement.material
            for measurement in tried.measured
            if measurement.material is not None
        ),
        page=page,
        is_plain=True,
        details=details(tried),
        unmeasured=tried.error.message if tried.error else "",
    )


def details(tried: Tried) -> dict[str, Any]:
    """Return everything that is known besides the runs, for scripts."""
    return {
        "series": {name: getattr(tried.posted, name) for name in _OF_SERIES},
        "base": {
            "source": tried.base.source,
            "id": tried.base.id,
            "how": tried.base.how,
            "warnings": tried.base.warnings,
        },
        "tried": [
            {"source": a.source, "how": a.how, "failing_hunks": len(a.failing), "hunks": a.hunks}
            | {"present": a.present}
            for a in tried.base.attempts
        ],
        "left_out": tried.base.left_out,
        "files": {file.name: "built" if file.built else why(file) for file in tried.config.files},
        "symbols": tried.config.symbols,
        "changed": [
            {"file": change.file, "name": change.name, "kind": change.kind}
            for change in tried.chosen.changed
        ],
        "changed_objects": tried.changed_objects,
        "kernels": [
            {name: getattr(kernel, name) for name in _OF_KERNEL} for kernel in tried.kernels
        ],
        "workloads": [
            {
                "name": measurement.workload,
                "why": measurement.why,
                "run": measurement.run,
                "exercised": measurement.exercise.exercised,
                "exercise": measurement.exercise.sentences,
                "cost": asdict(measurement.exercise.cost) if measurement.exercise.cost else None,
                "events": [figure.model_dump() for figure in measurement.exercise.events],
            }
            for measurement in tried.measured
        ],
        "not_executed": tried.chosen.not_executed,
        "costs": costs(tried),
        "repeat": tried.command,
    }


def sentence(tried: Tried) -> str:
    """Return the answer in lines, or why there is none."""
    if answer := answers(tried):
        return "\n".join(line.text for line in answer)
    reason = tried.error.message if tried.error else "nothing was measured"
    return f"{reason[:1].upper()}{reason[1:]}."


def outcome(tried: Tried) -> Outcome:
    """Return what the series means for a gate: the worst of its workloads, or why it was not
    measured."""
    outcomes: list[Outcome] = []
    for measurement in tried.measured:
        if measurement.material is not None:
            measured = measurement.material.answer.outcome
            # It is not claimed that a change that was not executed changes nothing.
            is_idle = measurement.exercise.exercised is False and measured == "pass"
            outcomes.append("unsure" if is_idle else measured)
    if tried.error is not None:
        outcomes.append(outcome_of_error(tried.error))
    return worst(outcomes)


def costs(tried: Tried) -> list[str]:
    """Return in sentences what the changed functions cost in each workload that executes them."""
    counted = [
        measurement
        for measurement in tried.measured
        if measurement.exercise.exercised is not False and measurement.exercise.cost
    ]
    paragraphs = (
        charts.written(
            "path_cost", measurement.workload, measurement.exercise.cost, median, percent
        )
        for measurement in counted
    )
    return [text for texts in paragraphs for text in texts]


def answers(tried: Tried) -> list[VariantLine]:
    """Return the lines of the answer, those that alarm most first; none if nothing was measured."""
    answer_lines: list[VariantLine] = []
    for measurement in tried.measured:
        if measurement.material is not None:
            answer = lines(measurement.material.whole, measurement.material.workloads)
            if measurement.exercise.exercised is False:
                text = (
                    f"Not exercised: {measurement.workload} ran, and executed no line that the "
                    "series changes. Its figures say nothing about the series."
                )
                answer = [line for line in answer if OUTCOME_OF[line.tone] in ("broken", "fail")]
                answer.append(VariantLine("inconclusive", text))
            answer_lines += answer
    return sorted(answer_lines, key=lambda line: VERDICTS.index(line.tone))


def compared(tried: Tried) -> list[str]:
    """Return the base, how the series applies to it, and which symbols and files it needs, in
    sentences."""
    config = tried.config
    files = [file for file in config.files if file.symbols or (not file.built and file.reason)]
    about = (tried.base, tried.posted, files, config.symbols, _MANY, why, with_short_commit)
    return charts.written("compared", *about)


def _heading(posted: PostedSeries) -> str:
    count = f", {len(posted.patches)} patches" if len(posted.patches) > 1 else ""
    heading = [wrapped(f"{posted.revision + ': ' if posted.revision else ''}{posted.title}")]
    origin = ", ".join(filter(None, (posted.author, posted.date))) or "a diff without a mail"
    heading.append(wrapped(f"{origin}{count}", "  "))
    if posted.message_id:
        heading.append(f"  <{on_one_line(posted.message_id)}>")
    return "\n".join(heading)


def _section(title: str, texts: Sequence[str]) -> str:
    return "\n".join([title, *(wrapped(line, "- ") for line in texts)]) if texts else ""


def listed(names: Sequence[str], most: int = _MANY) -> list[str]:
    """Return the first ``most`` of ``names``, and how many more there are."""
    return [*names[:most], *([f"and {len(names) - most} more"] if len(names) > most else [])]


def _few(names: Sequence[str]) -> str:
    return ", ".join(listed(names))
