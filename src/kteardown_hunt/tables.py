"""The tables of a hunt; of each find a C file that needs nothing else, and the text of a report to
a list."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kteardown.paths import data_dir
from kteardown.report.charts import templates, written
from kteardown.report.formatting import number, share
from kteardown.report.table import Block, Table, Text
from kteardown_hunt.catalogue import Cost
from kteardown_hunt.further_tables import COST_WORDS, further_tables
from kteardown_hunt.limits import PREDICTED_AT_MOST, RAISED
from kteardown_hunt.owner_tables import owners_table, what_is_waited_for
from kteardown_hunt.result import (
    CaseResult,
    CostPrediction,
    Find,
    GrowthResult,
    HuntResult,
    OwnersResult,
    Rate,
    predicted_time,
)

_TEXTS = ("kteardown_hunt", "texts")
_COLUMNS = (
    "find",
    "cost",
    "exponent",
    "each, from",
    "to",
    "at",
    "grows",
    "predicted",
    "no interrupts for",
)
_LOCK_COLUMN = ("lock held",)
_LEFT = frozenset(("find", "cost", "grows", "predicted", *_LOCK_COLUMN))


def summary(result: HuntResult) -> str:
    """Return one sentence that says what was found."""
    return written("hunted", result, of=_TEXTS)[0]


def finds_table(result: HuntResult) -> Table:
    """Return the table of the finds, the worst first."""
    columns = (*_COLUMNS, *_LOCK_COLUMN * bool(result.locks), *result.against)
    rows = [_row(find, result) for find in result.finds]
    notes = written("find_columns", result, PREDICTED_AT_MOST, of=_TEXTS)
    return Table("Finds", Block.of(columns, rows, _LEFT | set(result.against)), notes=tuple(notes))


def screened_table(result: HuntResult) -> Table | None:
    """Return the table of what the screen of an unfinished hunt calls superlinear; None if it is
    finished."""
    columns_note = (
        "each: instructions (memory: kB) for one object, at the smallest and at the largest number"
    )
    return _growth_table(
        "Superlinear in the screen, from one seed",
        result.cases if result.unconfirmed else (),
        lambda case, cost, growth: growth.verdict == "superlinear" and not growth.confirmed,
        columns_note,
    )


def undecided_table(result: HuntResult) -> Table | None:
    """Return the table of costs that were confirmed and may still be superlinear; None if there is
    none."""
    # Costs of a kind that has a find of the same sort are left out. So is memory, whose steps are
    # uneven.
    ways = [(way, find.cost) for find in result.finds for way in (find.kind, *find.also)]
    costs_with_finds = {(way.partition(",")[0], cost) for way, cost in ways}
    return _growth_table(
        "Undecided: may grow faster than the number of objects",
        result.cases,
        lambda case, cost, growth: (
            growth.rising
            and growth.confirmed
            and cost != "held"
            and (case.kind, cost) not in costs_with_finds
        ),
        "to decide, hunt these --kinds with a larger --budget; the exponent is measured at the "
        "last doubling",
    )


def _growth_table(
    title: str,
    cases: Sequence[CaseResult],
    is_shown: Callable[[CaseResult, Cost, GrowthResult], bool],
    note: str,
) -> Table | None:
    rows = [
        (f"{case.kind}, {case.way}", *_growth_cells(cost, growth))
        for case in cases
        for cost, growth in case.growth.items()
        if is_shown(case, cost, growth)
    ]
    block = Block.of(("way", *_COLUMNS[1:6]), rows, ("way", "cost"))
    return Table(title, block, notes=(note,)) if rows else None


def _growth_cells(cost: Cost, growth: GrowthResult) -> tuple[str, ...]:
    """Return the cells of the columns from ``cost`` to ``at``."""
    figures = (growth.exponent, *per_object(growth))
    return (COST_WORDS[cost], *map(_number, figures), f"{growth.sizes[-1]:,}")


def failures_table(result: HuntResult) -> Table | None:
    """Return the table of what could not be measured; None if there is nothing."""
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for case in result.cases:
        if case.failures and not any(growth.sizes for growth in case.growth.values()):
            why = case.failed[0].detail if case.failed else case.failures[0]
            reasons.setdefault((case.kind, why, case.needs), []).append(case.way)
    rows = [
        (kind, ", ".join(ways), why, needs) for (kind, why, needs), ways in sorted(reasons.items())
    ]
    columns = ("kind", "ways", "why", "the kernel must have")
    return Table("Not measured", Block.of(columns, rows, columns)) if rows else None


def verdicts_line(result: HuntResult) -> str:
    """Return how many releases have which verdict."""
    counts = Counter(case.growth["sync"].verdict for case in result.cases if "sync" in case.growth)
    return "release: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())


def cases_table(result: HuntResult) -> Table:
    columns = (
        *("part", "kind", "way", "release each", "verdict"),
        *("deferred each", "idle each", "making each", "kB each"),
    )
    rows: list[tuple[Text, ...]] = []
    for case in (case for case in result.cases if case.growth):
        costs = {cost: _number(per_object(growth)[1]) for cost, growth in case.growth.items()}
        sync = case.growth.get("sync")
        idle = case.idle_ns / sync.sizes[-1] if sync and case.idle_ns is not None else None
        verdict: Text = (
            (sync.verdict, "worse" if sync.verdict == "superlinear" else None) if sync else None
        )
        release = (case.part, case.kind, case.way, costs.get("sync"), verdict)
        rows.append(
            (*release, costs.get("deferred"), _number(idle), costs.get("make"), costs.get("held"))
        )
    return Table("All kinds", Block.of(columns, rows, ("part", "kind", "way", "verdict")))


def per_object(growth: GrowthResult) -> tuple[float | None, float | None]:
    """Return the cost divided by the number of objects, at the smallest and at the largest
    number."""
    measured = [
        (size, cost)
        for size, cost in zip(growth.sizes, growth.costs, strict=True)
        if cost is not None
    ]
    if not measured:
        return None, None
    (few, low), (many, high) = measured[0], measured[-1]
    return low / few, high / many


def predicted(prediction: CostPrediction, rate: Rate | None) -> str:
    """Return the predicted cost at the largest number that limits allow."""
    cost = (
        predicted_time(prediction, rate)
        if rate
        else f"{number(prediction.instructions[1] / 1e9)} G instructions"
    )
    return f"{cost} at {prediction.objects:,}"


def _row(find: Find, result: HuntResult) -> tuple[Text, ...]:
    name = f"{find.kind}, {find.way}" + (f" (+{len(find.also)})" if find.also else "")
    growth = find.growth
    if growth is None or find.cost is None:
        others = len(_COLUMNS) + bool(result.locks) + len(result.against) - 2
        failure = find.failed.brief if find.failed else find.failure
        return (name, (failure, "broken"), *[""] * others)
    cost, exponent, *rest = _growth_cells(find.cost, growth)
    case = result.case_of(find)
    assert case is not None
    off = " (interrupts off)" if find.function and find.function.no_interrupts > 0.5 else ""
    locks = (
        f"{lock.name}{' (shared)' if lock.reading else ''} {share(lock.share)}, "
        f"{number(lock.longest_ns)}"
        for lock in find.locks
    )
    return (
        name,
        cost,
        (exponent, "worse"),
        *rest,
        f"{find.function.place} {share(find.function.share)}{off}" if find.function else "",
        predicted(find.prediction, result.rate) if find.prediction else "",
        # The bystanders were there while the objects were released.
        _number(case.bystanders.get("irqs_off_ns")) if find.cost in ("sync", "deferred") else "",
        *("; ".join(locks),) * bool(result.locks),
        *(_elsewhere(find, source) for source in result.against),
    )


def _number(value: float | None) -> str:
    return "-" if value is None else number(value)


def _elsewhere(find: Find, source: str) -> str:
    """Return the verdict and the cost, at which number if it is another one, and what failed
    there."""
    growth = find.elsewhere.get(source)
    failed = find.failed_elsewhere.get(source)
    words = []
    if growth is not None:
        at = find.growth.sizes[-1] if find.growth else 0
        other = f" at {growth.sizes[-1]:,}" if growth.sizes[-1] != at else ""
        words.append(f"{growth.verdict}, {_number(growth.costs[-1])}{other}")
    if failed is not None:
        words.append(f"{failed.brief}: {failed.detail}")
    return "; ".join(words) or "not measured"


def shown_tables(result: HuntResult, *, everything: bool) -> Sequence[Table]:
    """Return the tables of a hunt, with ``everything`` also that of all cases."""
    tables = [finds_table(result)] if result.finds else []
    others = (
        screened_table(result),
        undecided_table(result),
        *further_tables(result, everything=everything),
        owners_table(result, everything=everything),
        failures_table(result),
    )
    tables += [table for table in others if table]
    return [*tables, cases_table(result)] if everything else tables


_INCLUDE = re.compile(r'^#include "([^"]+)"\n', re.MULTILINE)
_SYSCTL = re.compile(r"[a-z]\.[a-z0-9_-]")
_SPDX = re.compile(r"^(// SPDX.*|/\* SPDX.*\*/)\n")
_DELAYS = ("objects_count", "irqs_off_ns", "realtime_ns", "probe_ns")


def program(kind: str, user_kinds: Sequence[Path] = ()) -> str:
    """Return a C program that makes and releases the objects of a kind, and prints how long that
    takes.

    ``user_kinds``: the files of the user's own kinds. ``gcc -O2 -o PROGRAM FILE`` builds the
    program.
    """
    files = {path.name: path for path in user_kinds}
    folder = data_dir("agent")
    first = files.get(f"{kind}.c", folder / "hunt" / "kinds" / f"{kind}.c")
    included: set[Path] = set()
    parts = [_inlined(path, folder, files, included) for path in (first, folder / "hunt/owner.c")]
    parts.append(_inlined(folder / "hunt/reproducer.c", folder, files, included))
    how = f"/* gcc -O2 -o {kind} {kind}.c && ./{kind} 1000 */\n"
    return "// SPDX-License-Identifier: GPL-2.0\n" + how + "\n".join(parts)


def report_text(of: Find | OwnersResult, result: HuntResult) -> str:
    """Return a report in plain text of a find, or of processes that wait when they release at
    once."""
    words = templates(*_TEXTS, keep_trailing_newline=True)
    words.globals.update(predicted_time=predicted_time, most_predicted=PREDICTED_AT_MOST)
    case = result.case_of(of)
    growth = of.growth if isinstance(of, Find) else None
    delays = [case.bystanders.get(name) for name in _DELAYS] if case else []
    function = of.function if isinstance(of, Find) else None
    chain = [f"{name}()" for name in (function.name, *function.callers)] if function else []
    limit = of.prediction.limit if isinstance(of, Find) and of.prediction else ""
    return words.get_template("report.txt.j2").render(
        find=of,
        owners=isinstance(of, OwnersResult),
        waits_for=what_is_waited_for(of) if isinstance(of, OwnersResult) else "",
        result=result,
        case=case,
        points=[(n, c) for n, c in zip(growth.sizes, growth.costs, strict=True) if c is not None]
        if growth
        else [],
        callers=chain[chain.index(function.place) + 1 :] if function else [],
        delays=[f"{value:,.0f}" for value in delays if value is not None]
        if None not in delays
        else [],
        # A sysctl limits the number, and the program does not raise it.
        limited=limit not in RAISED and _SYSCTL.search(limit) is not None,
    )


def _inlined(path: Path, folder: Path, user_files: Mapping[str, Path], included: set[Path]) -> str:
    """Return the text of a file with each of the project's headers in it once, where it is first
    included."""
    included.add(path)

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        shipped = [
            place for place in (path.parent / name, folder / name) if _is_below(place, folder)
        ]
        places = (user_files.get(Path(name).name), *shipped)
        header = next((place for place in places if place is not None and place.is_file()), None)
        if header is None:  # A file of the host is not copied into what is given to others.
            return match[0]
        return "" if header in included else _inlined(header, folder, user_files, included)

    return _INCLUDE.sub(replace, _SPDX.sub("", path.read_text()))


def _is_below(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())
