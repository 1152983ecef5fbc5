"""The tables of a hunt and the reports of its finds, from recorded boots."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown_hunt import finds as finds_module
from kteardown_hunt import limits
from kteardown_hunt.catalogue import Cost
from kteardown_hunt.functions import place_of
from kteardown_hunt.result import CostPrediction, Find, HuntResult, Rate
from kteardown_hunt.tables import finds_table, program, report_text, shown_tables, summary
from unit.hunt.recorded import (
    KINDS,
    ZOMBIES,
    confirmed_cases,
    find_of,
    kind,
    recorded_finds,
    result_of,
    stage,
)


@pytest.fixture(scope="module")
def finds() -> list[Find]:
    return recorded_finds()


def test_the_tables_and_the_sentence(finds: list[Find]) -> None:
    result = result_of(confirmed_cases(), finds)
    assert summary(result).startswith("2 kinds in 2 ways of release on 6.12.117: ")
    table = finds_table(result)
    assert len(table.keys.rows) == len(finds)
    assert table.keys.columns[-1] == "debian-image:7.3"
    assert [shown.title for shown in shown_tables(result, everything=True)] == [
        "Finds",
        "All kinds",
    ]
    assert HuntResult.model_validate_json(result.model_dump_json()) == result


def test_what_may_still_be_superlinear_is_listed_unless_it_is_found_in_another_way(
    finds: list[Find],
) -> None:
    cases = confirmed_cases()
    rising = (
        cases[0]
        .growth["make"]
        .model_copy(update={"verdict": "unknown", "rising": True, "confirmed": True})
    )
    other = cases[0].model_copy(update={"kind": "other", "growth": {"make": rising}})
    same = cases[0].model_copy(update={"way": "oldest", "growth": {"sync": rising}})
    tables = shown_tables(result_of([*cases, other, same], finds), everything=False)
    (undecided,) = [table for table in tables if table.title.startswith("Undecided")]
    assert [row[0].text for row in undecided.keys.rows] == ["other, exit"]


def test_before_the_confirmation_the_screen_is_shown() -> None:
    cases = finds_module.case_results(KINDS, stage("screen"), {}, {}, {})
    result = result_of(cases, []).model_copy(update={"unconfirmed": 2})
    assert summary(result).endswith("on 6.12.117: not finished, 2 ways are to be confirmed")
    (table,) = shown_tables(result, everything=False)
    assert table.title == "Superlinear in the screen, from one seed"
    shown = {(row[0].text, row[1].text) for row in table.keys.rows}
    assert shown == {("flocks, exit", "release"), ("flocks, exit", "making")}
    assert not shown_tables(result_of(cases, []), everything=False)


def test_what_fits_into_memory_is_predicted() -> None:
    """The kind has no other limit: 16 GiB of objects that take 32 kB each."""
    zombies = kind(ZOMBIES, "processes", "memory")
    confirmed = stage("confirm")
    figures = confirmed[ZOMBIES].figures
    figures["held_kb"] = {at: 32.0 * at[1] for at in figures["sync_ns"]}
    cases = finds_module.case_results([zombies], stage("screen"), confirmed, {}, {})
    find = next(
        find for find in finds_module.finds_of(cases, confirmed, [zombies]) if find.cost == "sync"
    )
    assert find.prediction
    assert (find.prediction.objects, find.prediction.limit) == (524_288, "16 GiB of memory")


@pytest.mark.parametrize(
    ("cost", "user", "sentence"),
    [
        ("sync", "root", "The program flocks.c shows it without any other file, run as root:"),
        (
            "make",
            "ordinary",
            "The program flocks.c shows it without any other file, run as an ordinary user:",
        ),
        (
            "deferred",
            "root",
            "The program flocks.c makes and releases the objects, run as root; the program does ",
        ),
    ],
)
def test_the_report_says_what_the_program_shows_and_which_user_runs_it(
    cost: Cost, user: str, sentence: str
) -> None:
    find = find_of("flocks", "walk", 0.5).model_copy(update={"cost": cost, "user": user})
    text = report_text(find, result_of([], [find]))
    assert sentence in text
    of = {"sync": "release", "make": "making", "deferred": "deferred work"}[cost]
    assert f"walk() has 50% of the samples of the {of} of 20 objects; this time grows with" in text
    # It makes four times as many in the end, as many as were measured.
    assert "./flocks 5 exit\n" in text


@pytest.mark.parametrize(
    ("name", "callers", "off", "sentence"),
    [
        (
            "_raw_write_unlock_irq",
            ("do_exit", "do_group_exit"),
            0.9,
            "do_exit(), called by do_group_exit(), has 50% of the samples of the release of 20 "
            "objects; this time grows with the exponent 2.0. Interrupts were off; such samples are "
            "taken where they are enabled, in _raw_write_unlock_irq().",
        ),
        (
            "kfree",
            ("free_fib_info_rcu",),
            0.0,
            "free_fib_info_rcu() has 50% of the samples of the release of 20 objects, taken in "
            "kfree(); this time grows with the exponent 2.0.",
        ),
    ],
)
def test_the_report_names_the_function_that_the_table_names(
    name: str, callers: tuple[str, ...], off: float, sentence: str
) -> None:
    find = find_of("flocks", "walk", 0.5)
    assert find.function
    update = {
        "name": name,
        "callers": callers,
        "no_interrupts": off,
        "place": place_of(name, callers),
    }
    function = find.function.model_copy(update=update)
    find = find.model_copy(update={"function": function})
    assert f"\n{sentence}\n" in report_text(find, result_of([], [find]))


@pytest.mark.parametrize(
    ("objects", "limit", "acceleration", "sentences"),
    [
        (
            1_000_000,
            "fs.inotify.max_user_instances, fs.nr_open",
            "mttcg",
            (
                "For 1,000,000 objects (fs.inotify.max_user_instances and fs.nr_open allow more) "
                "that is 5,000 thousand million instructions, 2.8 h (up to 4.2 h) of an emulated "
                "CPU on the host that was used, if the cost goes on growing as it did.",
                "The number of objects is limited by fs.inotify.max_user_instances and fs.nr_open: "
                "raise each of them first if it is lower than 20.",
            ),
        ),
        (
            65_536,
            "fs.aio-max-nr",
            "kvm",
            (
                "For 65,536 objects (as many as fs.aio-max-nr allows) that is 5,000 thousand "
                "million instructions, 2.8 h (up to 4.2 h) on the host that was used, if the cost "
                "goes on growing as it did.",
                "The number of objects is limited by fs.aio-max-nr: raise it first if it is lower "
                "than 20.",
            ),
        ),
    ],
)
def test_the_report_says_what_is_predicted_and_what_limits_it(
    objects: int, limit: str, acceleration: str, sentences: tuple[str, ...]
) -> None:
    prediction = CostPrediction(objects=objects, limit=limit, instructions=(4e12, 5e12, 7.5e12))
    find = find_of("flocks", "walk", 0.5).model_copy(update={"prediction": prediction})
    rate = Rate(ns=2.0, deviation=0.1, acceleration=acceleration, cases=3)
    result = result_of([], [find])
    text = report_text(find, result.model_copy(update={"rate": rate}))
    assert all(f"\n{sentence}\n" in text for sentence in sentences)
    assert " s on " not in report_text(find, result)


@pytest.mark.parametrize("name", ["memory", "inotify_events", "nothing"])
def test_no_sysctl_is_to_be_raised_where_none_limits_or_the_program_does_it(name: str) -> None:
    limit = limits.LIMITS[name].set_by if name in limits.LIMITS else "16 GiB of memory"
    prediction = CostPrediction(objects=500_000, limit=limit, instructions=(4e12, 5e12, None))
    find = find_of("flocks", "walk", 0.5).model_copy(update={"prediction": prediction})
    text = report_text(find, result_of([], [find]))
    assert "For 500,000 objects (as many as " in text
    assert "is limited by" not in text


def test_the_report_lists_the_other_kinds_and_ways_and_names_the_call() -> None:
    also = ("flocks, oldest", "leases, exit", "flocks, call")
    find = find_of("flocks", "walk", 0.5).model_copy(update={"also": also, "way": "call"})
    (case, _) = confirmed_cases()
    case = case.model_copy(update={"way": "call", "call": "munmap()"})
    text = report_text(find, result_of([case], [find]))
    assert "\nRelease: one call releases all of them: munmap().\n" in text
    assert "in other kinds and ways, too: flocks (call, oldest), leases (exit).\n" in text
    assert "\nRelease: one call releases all of them.\n" in report_text(find, result_of([], [find]))


def test_a_case_has_the_call_of_its_kind_only_if_it_is_released_by_it() -> None:
    kinds = [each.model_copy(update={"call": "kill()"}) for each in KINDS]
    cases = finds_module.case_results(kinds, stage("screen"), stage("confirm"), {}, {})
    assert {case.way: case.call for case in cases} == {"exit": "", "call": "kill()"}


def test_the_report_says_how_long_others_waited(finds: list[Find]) -> None:
    result = result_of(confirmed_cases(), finds)
    zombies = next(find for find in finds if (find.kind, find.cost) == ("zombies_group", "sync"))
    text = report_text(zombies, result)
    assert (
        "During the release of 1,152 objects and shortly after it, interrupts are off for up to "
        "37,4" in text
    )
    making = zombies.model_copy(update={"cost": "make"})
    assert "shortly after it" not in report_text(making, result)


@pytest.mark.parametrize("name", ["{folder}/secret", "../secret", "nowhere.h"])
def test_a_program_has_no_file_of_the_host_but_kinds(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("secret_of_the_user\n")
    (tmp_path / "kinds").mkdir()
    kind, shared = tmp_path / "kinds/mine.c", tmp_path / "kinds/mine.h"
    include = name.format(folder=tmp_path)
    kind.write_text(
        f'#include "hunt/kind.h"\n#include "mine.h"\n#if 0\n#include "{include}"\n#endif\n'
    )
    shared.write_text("enum { SHARED };\n")
    text = program("mine", [kind, shared])
    assert "secret_of_the_user" not in text
    assert "SHARED" in text and f'#include "{include}"' in text
