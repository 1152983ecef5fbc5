"""The tables of what releases pay for what stays, what they wait for, and whom they interrupt."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from kteardown.report.charts import templates
from kteardown.report.formatting import number, share
from kteardown.report.table import Block, Table, Text
from kteardown_hunt.result import (
    BroadcastResult,
    HuntResult,
    StayResult,
    WaitResult,
    predicted_time,
)
from kteardown_hunt.stay_plan import DECLARED

COST_WORDS = {"sync": "release", "deferred": "deferred", "make": "making", "held": "memory"}
"""What the costs are called in tables."""
_Result = TypeVar("_Result", StayResult, WaitResult, BroadcastResult)


def further_tables(result: HuntResult, *, everything: bool) -> list[Table]:
    """Return all of these tables that have a row."""
    tables = (
        stays_table(result, everything=everything),
        waits_table(result),
        broadcasts_table(result),
        stay_failures_table(result),
    )
    return [table for table in tables if table]


def _grouped(
    results: Iterable[_Result], same: Callable[[_Result], object]
) -> list[tuple[_Result, int]]:
    """Return the first of all results that are the same, and how many more of these there are."""
    groups: dict[object, list[_Result]] = {}
    for result in results:
        groups.setdefault(same(result), []).append(result)
    return [(group[0], len(group) - 1) for group in groups.values()]


def _way(result: StayResult | WaitResult | BroadcastResult, more: int) -> str:
    return f"{result.kind}, {result.way}" + (f" (+{more})" if more else "")


def stays_table(result: HuntResult, *, everything: bool) -> Table | None:
    """Return the table of costs that grow with what stays; with ``everything`` also of unknown
    ones."""
    shown = (
        stay for stay in result.stays if stay.is_find or (everything and stay.verdict == "unknown")
    )
    groups = _grouped(shown, lambda stay: (stay.kind, stay.stay, stay.cost, stay.verdict))
    rows = [_stay_row(stay, more, result) for stay, more in groups]
    if not rows:
        return None
    columns = (
        *("way", "cost", "beside", "each pair", "exponents", "at", "grows", "predicted"),
        *result.against,
    )
    left = {"way", "cost", "beside", "grows", "predicted", *result.against}
    notes = [
        "(+2): two more ways of the same kind",
        "each pair: instructions that the release of one object costs more for one resident more; "
        "(once): that all objects together cost more",
        "exponents: of the number of residents, then of the number of objects",
        "grows: the function that has most of what is paid for residents, with its share",
        "predicted: what this adds for as many objects as limits allow, beside as many residents, "
        "100,000 at most",
        f"{result.free} other costs are the same whatever stays",
    ]
    if result.residents:
        what = ", ".join(f"{name}={count:,}" for name, count in result.residents.items())
        notes.append(f"each release was measured beside {what}")
    return Table("Pays for what stays", Block.of(columns, rows, left), notes=tuple(notes))


def _stay_row(stay: StayResult, more: int, result: HuntResult) -> tuple[Text, ...]:
    once = "" if stay.for_each_object else " (once)"
    pair = "-" if stay.instructions is None else f"{number(stay.instructions)}{once}"
    exponents = ", ".join(
        "-" if value is None else f"{value:.2f}"
        for value in (stay.residents_exponent, stay.objects_exponent)
    )
    function = stay.function
    return (
        _way(stay, more),
        COST_WORDS[stay.cost],
        stay.resident,
        (pair, "worse" if stay.is_find else None),
        exponents if stay.is_find else stay.verdict,
        f"{stay.objects:,} x {stay.residents:,}",
        f"{function.place} {share(function.share)}" if function else "",
        _stay_prediction(stay, result),
        *(_elsewhere(stay, source) for source in result.against),
    )


def _stay_prediction(stay: StayResult, result: HuntResult) -> str:
    if stay.predicted is None:
        return ""
    cost = (
        predicted_time(stay.predicted, result.rate)
        if result.rate
        else f"{number(stay.predicted.instructions[1] / 1e9)} G instructions"
    )
    return f"{cost} at {stay.predicted.objects:,} x {stay.predicted_residents:,}"


def _elsewhere(stay: StayResult, source: str) -> str:
    if source not in stay.elsewhere:
        return "not measured"
    instructions = stay.elsewhere[source]
    return "free" if instructions is None else number(instructions)


def waits_table(result: HuntResult) -> Table | None:
    """Return the table of releases that wait once for each object; None if there is none."""
    if not result.waits:
        return None
    groups = _grouped(
        result.waits,
        lambda wait: (wait.kind, wait.part, wait.functions[0].name if wait.functions else wait.way),
    )
    rows = [_wait_row(wait, more, result) for wait, more in groups]
    columns = ("way", "waits", "asleep each", "in all", "at", "for", "in", *result.against)
    notes = (
        "(+2): two more ways of the same kind that wait in the same function",
        "asleep each: for one object more, by the guest's clock; in all: for the largest number",
        "waits: in the release itself, or deferred: a kernel thread waits after it",
        "for: what is waited for, if it has a name",
        "in: the functions that sleep, with how many waits one object more adds",
    )
    left = ("way", "waits", "for", "in")
    return Table("Waits for each object", Block.of(columns, rows, left), notes=notes)


def _wait_row(wait: WaitResult, more: int, result: HuntResult) -> tuple[Text, ...]:
    functions = "; ".join(
        f"{function.name}() {function.count_each:.2g}" for function in wait.functions
    )
    return (
        _way(wait, more),
        wait.part,
        (_ms(wait.each_ns), "worse"),
        f"{wait.asleep_ns[-1] / 1e9:.3g} s",
        f"{wait.sizes[-1]:,}",
        ", ".join(dict.fromkeys(function.event for function in wait.functions if function.event)),
        functions,
        *(
            _ms(wait.elsewhere[source]) if source in wait.elsewhere else "not measured"
            for source in result.against
        ),
    )


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3g} ms"


def broadcasts_table(result: HuntResult) -> Table | None:
    """Return the table of releases that interrupt another CPU for each object; None if there is
    none."""
    if not result.broadcasts:
        return None
    groups = _grouped(result.broadcasts, lambda broadcast: broadcast.kind)
    rows = [_broadcast_row(broadcast, more, result) for broadcast, more in groups]
    columns = ("way", "calls each", "flushes each", "at", *result.against)
    notes = (
        "(+2): two more ways of the same kind",
        "in guests with two CPUs, the least and the most of "
        f"{max(broadcast.seeds for broadcast in result.broadcasts)} boots",
        "calls: functions that the other CPU had to run; flushes: of its TLB",
        "to wake a task on another CPU interrupts it, too: releases with no more interrupts than "
        "switches of tasks are left out",
        "on other kernels: calls, then flushes",
    )
    table = Block.of(columns, rows, ("way",))
    return Table("Interrupts other CPUs for each object", table, notes=notes)


def _broadcast_row(broadcast: BroadcastResult, more: int, result: HuntResult) -> tuple[Text, ...]:
    there = (broadcast.elsewhere.get(source) for source in result.against)
    return (
        _way(broadcast, more),
        _between(broadcast.calls_each),
        _between(broadcast.flushes_each),
        f"{broadcast.objects:,}",
        *(f"{counts[0]:.2f}, {counts[1]:.2f}" if counts else "not measured" for counts in there),
    )


def _between(counts: tuple[float, float]) -> str:
    low, high = counts
    return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"


def stay_failures_table(result: HuntResult) -> Table | None:
    """Return the table of what could not be measured beside residents; None if there is nothing."""
    rows = [
        (f"{stay.kind}, {stay.way}", stay.resident, stay.reason)
        for stay in result.stays
        if stay.verdict == "failed"
    ]
    columns = ("way", "beside", "why")
    return Table("Not measured beside", Block.of(columns, rows, columns)) if rows else None


def further_reports(result: HuntResult) -> list[tuple[str, tuple[str, ...], str]]:
    """Return a report in plain text for each of these finds: its name, the kinds whose programs it
    needs, and its text."""
    words = templates("kteardown_hunt", "texts", keep_trailing_newline=True)
    words.filters["zip"] = zip
    template = words.get_template("further.txt.j2")

    def text(what: str, of: StayResult | WaitResult | BroadcastResult) -> str:
        key = (of.kind, of.way, of.user)
        case = next(
            (case for case in result.cases if (case.kind, case.way, case.user) == key), None
        )
        return template.render(what=what, of=of, result=result, case=case)

    reports: list[tuple[str, tuple[str, ...], str]] = []
    for stay in (stay for stay in result.stays if stay.is_find):
        kinds = (stay.kind,) if stay.stay == DECLARED else (stay.kind, stay.stay)
        name = f"{stay.kind}-{stay.way}-{stay.cost}-beside-{stay.stay}"
        reports.append((name, kinds, text("stay", stay)))
    for wait in result.waits:
        name = f"{wait.kind}-{wait.way}-{wait.part}-waits"
        reports.append((name, (wait.kind,), text("wait", wait)))
    for broadcast in result.broadcasts:
        name = f"{broadcast.kind}-{broadcast.way}-interrupts"
        reports.append((name, (broadcast.kind,), text("broadcast", broadcast)))
    return reports
