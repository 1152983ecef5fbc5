from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kteardown.coverage.changed import ChangedFunction
from kteardown.coverage.executed import PathCost
from kteardown.errors import NotExercisedError
from kteardown.model.events import EventFigure
from kteardown.model.judged import Verdict
from kteardown.patches.config_of_series import SeriesConfig, TouchedFile
from kteardown.patches.posted import PostedSeries
from kteardown.patches.tried_source import Base, TriedSource
from kteardown.report import formats
from kteardown.report.material import Material
from kteardown.report.table import Block, Table
from kteardown.report.try_page import (
    Chosen,
    Exercise,
    MeasuredWorkload,
    Tried,
    layout_of_few,
    page,
    plan,
    publication,
)
from unit.report.contexts import instructions

POSTED = PostedSeries(
    name="skip",
    title="freezer: skip exited tasks, which are many after a build that was interrupted",
    revision="v2",
    message_id="a-1@example.org",
    author="A. Author <author@example.org>",
    date="2026-03-05",
    base_commit="0123456789abcdef",
    patches=(Path("1.patch"), Path("2.patch")),
    subjects=("one", "two"),
    cover="",
    notes=("left out: 2 patches of revision v1",),
)
ATTEMPTS = (
    TriedSource("debian:7.3", "debian:7.3.4-1", "fails", hunks=9),
    TriedSource("debian:7.2", "debian:7.2.12-1", "merged"),
)


def tried(exercised: bool | None = True, material: Material | None = None) -> Tried:
    files = (
        TouchedFile("kernel/a.c", True),
        TouchedFile("drivers/b.c", False, ("B", "C")),
        TouchedFile("arch/arm64/c.c", False, reason="is for arm64"),
    )
    exercise = Exercise(("zombies executed changed lines of f() 5 times.",), exercised)
    measured = MeasuredWorkload(
        "zombies", "named with --workload", "run", material or instructions(), exercise
    )
    base = Base(
        "debian:7.2", "debian:7.2.12-1", "merged", POSTED.patches, ATTEMPTS, ("MAINTAINERS",)
    )
    command = "kteardown try ./thread.mbox"
    chosen = Chosen(not_executed=("g (mm/g.c)",))
    return Tried(POSTED, base, SeriesConfig(files), chosen, command, (measured,), ("kernel/a.o",))


def facts_of(one: Tried) -> dict[str, Any]:
    """Return what a script reads: the details, with the headline."""
    output = json.loads(formats.render("json", publication(one, "")))
    details: dict[str, Any] = output["details"]
    return {**details, "headline": output["headline"]}


def test_the_page_has_the_answer_first_and_72_columns() -> None:
    text = page(tried())
    assert text.startswith("v2: freezer: skip exited tasks")
    assert all(len(line) <= 72 for line in text.splitlines())
    assert text.isascii()
    for part in (
        "<a-1@example.org>",
        "DOES NOT APPLY AS POSTED; merged (three-way)",
        "Not used: debian:7.3.4-1: 0 of 9 hunks fail.",
        "kteardown left out these files, since no kernel is built from them: MAINTAINERS.",
        "drivers/b.c needs CONFIG_B, CONFIG_C, which are added to base and to the series.",
        "arch/arm64/c.c is for arm64.",
        "Left out: 2 patches of revision v1.",
        "No workload executes these: g (mm/g.c).",
        "To repeat it, with kteardown: kteardown try ./thread.mbox",
    ):
        assert part in " ".join(text.split()), part


def test_a_page_shows_what_is_hostile_on_its_own_line() -> None:
    evil = replace(
        POSTED,
        title="nice\x1b]52;c;eA==\x07",
        message_id="x1@\n\tBcc: e@example.org",
        author="E\x1b[2J",
    )
    for made in (page(replace(tried(), posted=evil)), plan(replace(tried(), posted=evil))):
        assert made.splitlines()[:3] == [
            r"v2: nice\u001b]52;c;eA==\u0007",
            r"  E\u001b[2J, 2026-03-05, 2 patches",
            "  <x1@  Bcc: e@example.org>",
        ]


def test_what_no_metric_can_show_is_only_counted() -> None:
    cost = PathCost("tasks", (1204.0,), (1131.0,))
    error = NotExercisedError(
        "workloads execute the change, but none of them can measure it: it is 0.5%",
        hint="a script.",
    )
    measured = MeasuredWorkload(
        "pipechain", "executes f", exercise=Exercise((), True, 0.005, cost), only_counted=True
    )
    whole = replace(tried(), measured=(measured,), error=error)
    answer = facts_of(whole)
    assert answer["costs"][0].startswith("pipechain: 1,204 -> 1,131 instructions")
    assert (
        answer["headline"]
        == "Workloads execute the change, but none of them can measure it: it is 0.5%."
    )
    assert page(whole).index("1,204") < page(whole).index("Workloads execute the change, but none")
    assert "would only count the change in pipechain: executes f" in plan(whole)


def same_everywhere() -> Material:
    whole = instructions()
    verdict: Verdict = "same"
    update = {
        "comparisons": tuple(
            c.model_copy(update={"verdict": verdict}) for c in whole.result.comparisons
        ),
        "metric_verdicts": tuple(
            m.model_copy(update={"verdict": verdict, "reason": ""})
            for m in whole.result.metric_verdicts
        ),
    }
    return replace(whole, result=whole.result.model_copy(update=update))


def with_cost(cost: PathCost, exercised: bool | None = True) -> Tried:
    whole = tried(exercised)
    exercise = replace(whole.measured[0].exercise, cost=cost)
    return replace(whole, measured=(replace(whole.measured[0], exercise=exercise),))


def test_the_cost_of_the_changed_functions_comes_first() -> None:
    cost = PathCost("zombies", (68.0, 68.5, 67.5), (21.0, 21.0, 21.0), 0.25)
    answer = facts_of(with_cost(cost))
    assert answer["costs"] == [
        "zombies: 68.00 -> 21.00 instructions for one more of zombies in the changed functions and "
        "what they call (-69.1%; 3 seeds: 67.50 to 68.50 -> 21.00 to 21.00)."
    ]
    assert "68.00" not in answer["headline"]
    assert answer["workloads"][0]["cost"] == {
        "objects": "zombies",
        "base": [68.0, 68.5, 67.5],
        "changed": [21.0, 21.0, 21.0],
        "share": 0.25,
        "inside": [],
        "later": [],
    }
    assert page(with_cost(cost)).split("\n\n")[1].startswith("zombies: 68.00 -> 21.00 instructions")
    # A function that only the series has costs base nothing.
    assert "0 -> 21.00 instructions in a stretch in" in page(
        with_cost(PathCost("", (0.0,), (21.0,)))
    )
    assert "they call (1 seed)." in " ".join(page(with_cost(PathCost("", (0.0,), (21.0,)))).split())
    assert "instructions for one more" not in page(with_cost(cost, exercised=False))


def test_work_that_is_only_done_later_is_named() -> None:
    cost = PathCost(
        "zombies", (68.0,) * 3, (21.0,) * 3, 0.25, (-91.0, -90.0, -89.0), (89.0, 92.0, 90.5)
    )
    assert facts_of(with_cost(cost))["costs"][1] == (
        "zombies: for one more of zombies, the whole kernel executes 90.00 instructions fewer in "
        "the stretch and 90.50 instructions more afterwards, until the guest is quiet (3 seeds: "
        "-91.00 to -89.00, and 89.00 to 92.00)."
    )
    # What differs by no more than the seeds is no difference.
    same = replace(cost, later=(-4.0, 5.0, 4.5))
    assert "and the same number of instructions afterwards" in facts_of(with_cost(same))["costs"][1]
    assert len(facts_of(with_cost(replace(cost, later=())))["costs"]) == 1


@pytest.mark.parametrize(("exercised", "said"), [(False, True), (True, False), (None, False)])
def test_same_is_not_said_of_what_was_not_exercised(exercised: bool | None, said: bool) -> None:
    answer = facts_of(tried(exercised, same_everywhere()))
    assert answer["headline"].startswith("Not exercised: zombies ran") == said
    assert ("does not change" in page(tried(exercised, same_everywhere()))) == (not said)


def test_the_plan_says_that_there_is_no_workload() -> None:
    error = NotExercisedError("no workload executes f", hint="write one.")
    text = plan(replace(tried(), measured=(), error=error))
    assert "Workloads:" not in text
    assert "\nNo workload executes f.\n" in text
    assert "- kteardown chooses the workloads after the build" in plan(
        replace(tried(), measured=())
    )
    assert "Builds:" not in text
    assert "Builds:\n- The base kernel is not in the cache" in plan(
        replace(tried(), builds=("The base kernel is not in the cache.",))
    )


def test_the_plan_says_once_what_no_workload_executes() -> None:
    error = NotExercisedError("no workload executes f", hint="write one.")
    changed = ChangedFunction("mm/f.c", "f")
    outside = "f (only outside of the measured stretch, such as that of zombies)"

    def of(*not_executed: str, with_answer: bool = True) -> str:
        chosen = Chosen((changed,), not_executed=not_executed)
        whole = replace(tried(), measured=(), error=error, chosen=chosen)
        return plan(whole, with_answer=with_answer)

    assert "Not executed by any workload:" not in of("f (mm/f.c)")
    assert "only outside" in of(outside)
    assert "No workload executes f" not in of("f (mm/f.c)", with_answer=False)


def test_a_diff_without_a_mail_has_a_whole_heading() -> None:
    one = replace(POSTED, title="plain", revision="", patches=POSTED.patches[:1])
    plain = replace(one, author="", date="", message_id="")
    for made in (plan(replace(tried(), posted=plain)), page(replace(tried(), posted=plain))):
        assert made.startswith("plain\n  a diff without a mail\n\n")
    dated = replace(plain, date="2026-03-05", author="A. Author <author@example.org>")
    assert "  A. Author <author@example.org>, 2026-03-05\n" in plan(replace(tried(), posted=dated))


def test_a_long_table_is_cut_to_what_tells_and_counts_the_rest() -> None:
    rows = [(n, 10, 10, "+0.0%", "inconclusive" if n % 2 else "same") for n in range(27)]
    rows[3] = (3, 10, 20, "+100.0%", "worse")
    columns = ("processes", "base", "changed", "change", "verdict")
    table = Table("reaping", Block.of(columns, [[str(cell) for cell in row] for row in rows]))
    text = layout_of_few(table)
    kept = [line.split() for line in text.splitlines()[3:-1]]
    assert [line[0] for line in kept] == ["3", *map(str, range(19, 27))]
    assert text.endswith("and 18 more points: 10 same, 8 inconclusive.")
    short = Table("reaping", Block.of(columns, [[str(cell) for cell in row] for row in rows[:9]]))
    assert "more points" not in layout_of_few(short)


def test_a_workload_that_was_counted_is_not_named_as_another() -> None:
    one = tried()
    (measured,) = one.measured
    chosen = replace(one.chosen, others=(measured.workload, "crowd"))
    assert "functions too: crowd." in " ".join(page(replace(one, chosen=chosen)).split())


def test_a_wait_that_is_gone_stands_before_the_figures_of_the_metrics() -> None:
    whole = tried()
    waits = EventFigure(
        event="rcu",
        label="grace periods (RCU)",
        unit="grace periods",
        objects="zombies",
        afterwards=False,
        base=(1.0,),
        changed=(0.0,),
        differs=True,
    )
    quiet = waits.model_copy(
        update={"event": "work", "label": "work items queued", "changed": (1.0,), "differs": False}
    )
    exercise = replace(whole.measured[0].exercise, events=(waits, quiet))
    answer = replace(whole, measured=(replace(whole.measured[0], exercise=exercise),))
    text = page(answer)
    row = next(line for line in text.splitlines() if line.startswith("grace periods (RCU)"))
    assert row.split()[-2:] == ["1.00", "0"]
    assert "work items" not in text
    assert text.index(row) < text.index("freeze_user_ns")
    assert "waits, callbacks" not in page(whole)
    # A script reads all of them.
    events = facts_of(answer)["workloads"][0]["events"]
    assert [event["event"] for event in events] == ["rcu", "work"]
    assert events[0]["base"] == [1.0]
