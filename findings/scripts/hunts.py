"""The tables of hunts, from ``findings/results/HUNT/hunt.json``.

A text can show two tables of a hunt: ``short``, how many finds it has and which of them other
kernels do not have, and ``processes``, the releases in which several processes wait for each other.
The page of the result has everything. If ``reproducers.py HUNT`` ran the programs of the finds, a
column says by how much their times grew.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from claims import AGENT, RESULTS, Evidence
from kteardown.report.table import Table
from kteardown_hunt.further_tables import COST_WORDS, further_tables
from kteardown_hunt.owner_tables import owners_table
from kteardown_hunt.result import Find, HuntResult
from kteardown_hunt.tables import (
    cases_table,
    finds_table,
    summary,
    undecided_table,
    verdicts_line,
)
from markdown_table import markdown

_PROGRAMS = (
    "its program: by how much the time of the same cost grows when the number is doubled for the "
    "last time, if only the program of `--reproducers` runs on this kernel, without the lab; it "
    "does not measure what is deferred"
)

_ABOUT = {"sync": "the release", "deferred": "deferred work", "make": "making", "held": "memory"}


@dataclass(frozen=True)
class Hunt(Evidence):
    """The result of a hunt."""

    @cached_property
    def result(self) -> HuntResult:
        """The result."""
        return HuntResult.model_validate_json((self.folder / "hunt.json").read_bytes())

    @property
    def command(self) -> str:
        """The command of the hunt."""
        return self.result.command

    @property
    def inputs(self) -> tuple[str, ...]:
        """The agent of the hunt, its kinds, and the series that it compares."""
        sources = {
            source.partition(" on ")[0] for source in (self.result.source, *self.result.against)
        }
        series = {path for source in sources for path in (f"series/{source}", source)}
        kinds = {f"agent/hunt/kinds/{case.kind}.c" for case in self.result.cases}
        hunt = {
            str(file.relative_to(self.root))
            for file in (self.root / "agent" / "hunt").glob("*.[ch]")
            if file.stem not in ("list", "reproducer")
        }
        paths = {*AGENT, *hunt, "agent/hunt/lib", *kinds, *series}
        return tuple(sorted(path for path in paths if (self.root / path).exists()))


def hunts(root: Path) -> list[Hunt]:
    """Every hunt that is kept, by name."""
    return [Hunt(root, file.parent.name) for file in sorted(root.glob(f"{RESULTS}/*/hunt.json"))]


@dataclass(frozen=True)
class ProgramRun:
    """One run of the program of a find: three numbers of objects, each twice the one before, and
    times.

    The program measures the time of making and that of the release, and no other cost.
    """

    objects: tuple[int, ...] = ()
    made_ms: tuple[float, ...] = ()
    released_ms: tuple[float, ...] = ()
    failure: str = ""

    def growth(self, cost: str | None) -> float | None:
        """By which factor the time of the last doubling grew; None if it failed, or has no such
        cost."""
        measured = {"make": self.made_ms, "sync": self.released_ms, None: self.released_ms}
        times = measured.get(cost, ())
        return times[-1] / times[-2] if len(times) > 1 else None


def programs(root: Path, name: str) -> dict[str, ProgramRun]:
    """What the programs of a hunt's finds showed outside the lab, by ``KIND, WAY``; empty before
    they ran."""
    file = root / RESULTS / name / "reproducers.json"
    return (
        {key: ProgramRun(**run) for key, run in json.loads(file.read_bytes()).items()}
        if file.is_file()
        else {}
    )


def keep_programs(root: Path, name: str, runs: dict[str, ProgramRun]) -> None:
    """Keep what the programs of a hunt's finds showed."""
    text = json.dumps({key: asdict(run) for key, run in sorted(runs.items())}, indent=1)
    (root / RESULTS / name / "reproducers.json").write_text(text + "\n")


def tables(root: Path) -> dict[tuple[str, str], list[str]]:
    """The paragraphs that a text can show of each hunt, by the names of the hunt and of the
    table."""
    found = {}
    for hunt in hunts(root):
        found[hunt.name, "short"] = [_short(hunt.result)]
        found[hunt.name, "processes"] = [*_processes(hunt.result), _caption(hunt)]
        for table in further_tables(hunt.result, everything=False):
            name = _NAMES.get(table.title)
            if name:
                shown = [markdown(*_cells(table)), _notes(table), _caption(hunt)]
                found[hunt.name, name] = shown
    return found


_NAMES = {
    "Pays for what stays": "stays",
    "Waits for each object": "waits",
    "Interrupts other CPUs for each object": "interrupts",
}
"""By the title of a table, what a text calls it."""


def _notes(table: Table) -> str:
    return _sentence("; ".join(table.notes)) if table.notes else ""


def page(root: Path, name: str) -> list[str]:
    """The paragraphs of everything that a hunt shows, finds first."""
    hunt = Hunt(root, name)
    result = hunt.result
    parts = [f"{summary(result)}. {_sentence(verdicts_line(result))}", _caption(hunt)]
    if result.finds:
        parts += _finds(result.finds, finds_table(result), programs(root, name))
    for table in further_tables(result, everything=False):
        parts += [f"## {table.title}", markdown(*_cells(table)), _notes(table)]
    if result.owners:
        parts += ["## Several processes", *_processes(result)]
    for title, table_or_none in (
        ("May be superlinear", undecided_table(result)),
        ("All kinds", cases_table(result)),
    ):
        if table_or_none:
            note = (
                "; ".join(table_or_none.notes)
                or "each: instructions or kB for one object, at the largest number"
            )
            parts += [f"## {title}", markdown(*_cells(table_or_none)), _sentence(note)]
    return parts


def lines(data: dict[str, Any]) -> str:
    """JSON with a line for each value and for each member of a list, as diffs show whole
    lines."""
    parts = []
    for key, value in data.items():
        objects = isinstance(value, list) and value and isinstance(value[0], dict)
        members = [json.dumps(member) for member in value] if objects else []
        text = "[\n " + ",\n ".join(members) + "\n]" if objects else json.dumps(value)
        parts.append(f"{json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _caption(hunt: Hunt) -> str:
    """Return how it was measured."""
    if hunt.measured is None:
        return "**Not measured** yet."
    when = f"{hunt.measured.date} at {hunt.measured.commit}"
    took = f"{hunt.result.measured_s / 60:.0f} min of guests"
    return f"Measured with `{hunt.result.command}` ({hunt.result.release}, {when}, {took})."


def _finds(finds: tuple[Find, ...], table: Table, ran: dict[str, ProgramRun]) -> list[str]:
    """Return the table of the finds with its notes, and the other kinds and ways of each."""
    cells, keys, to_left = _cells(table)
    if ran:
        _add_programs(cells, finds, ran)
    notes = (*table.notes, *(_PROGRAMS,) * bool(ran))
    same = [f"- {find.kind}, {find.way}: {find.others}" for find in finds if find.also]
    title = ["The same find in other kinds and ways:"] * bool(same)
    return [markdown(cells, keys, to_left), _sentence("; ".join(notes)), *title, "\n".join(same)]


def _processes(result: HuntResult) -> list[str]:
    """Return the table of the releases in which several processes wait for each other, with its
    notes."""
    table = owners_table(result, everything=False)
    if table is None:
        return ["The releases of this hunt were measured by one process only."]
    cells = _cells(table)
    return [markdown(*cells) if len(cells[0]) > 1 else "", _sentence("; ".join(table.notes))]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _cells(table: Table) -> tuple[list[list[str]], int, set[int]]:
    """Return the texts of a table, its header first, the number of key columns, and those set to
    the left."""
    cells = [list(table.keys.columns), *([cell.text for cell in row] for row in table.keys.rows)]
    return (
        cells,
        1,
        {number for number, column in enumerate(table.keys.columns) if column in table.keys.left},
    )


def _add_programs(
    cells: list[list[str]], finds: tuple[Find, ...], ran: dict[str, ProgramRun]
) -> None:
    """Add the column with the growth that the program of each find shows."""
    cells[0].append("its program")
    for row, find in zip(cells[1:], finds, strict=True):
        run = ran.get(f"{find.kind}, {find.way}", ProgramRun(failure="not run"))
        growth = run.growth(find.cost)
        row.append(run.failure or (f"{growth:.2f} times" if growth else ""))


def _short(result: HuntResult) -> str:
    """Return how many finds there are, and a table of those that another kernel does not have."""
    steep = [find for find in result.finds if find.cost]
    by_cost = Counter(find.cost for find in steep)
    counts = ", ".join(
        f"{count} about {_ABOUT[cost]}" for cost, count in by_cost.most_common() if cost
    )
    releases = sum(
        "sync" in case.growth and case.growth["sync"].verdict == "superlinear"
        for case in result.cases
    )
    costs = sum(1 + len(find.also) for find in steep)
    text = (
        f"Finds: {len(steep)} ({counts}), merged from {costs} superlinear costs. "
        f"Superlinear releases: {releases} of {len(result.cases):,} ways."
    )
    if not result.against:
        return text
    others = [
        find
        for find in steep
        if any(each.verdict != "superlinear" for each in find.elsewhere.values())
    ]
    text += (
        f" Superlinear on {', '.join(result.against)} too, as far as that could be measured: "
        f"{len(steep) - len(others)} of the {len(steep)} finds."
    )
    if not others:
        return text
    rows = [
        [
            f"{find.kind}, {find.way}",
            COST_WORDS[find.cost or "sync"],
            *(
                find.elsewhere[each].verdict if each in find.elsewhere else "not measured"
                for each in result.against
            ),
        ]
        for find in others
    ]
    header = ["find", "cost", *result.against]
    return f"{text} The others:\n\n{markdown([header, *rows], 1, left=set(range(len(header))))}"
