"""The tables of a kernel that is compared with nothing."""

from __future__ import annotations

import pytest

from kteardown.model.judged import Summary
from kteardown.model.levels import Level
from kteardown.model.result import Result
from kteardown.model.waits import WaitedEvent, WaitFor, WaitPlace, WaitProfile
from kteardown.model.workload import Metric, Workload
from kteardown.report.sections.levels import how_often, level_tables, wait_tables, waited_tables

WORKLOAD = Workload(
    name="x",
    summary="",
    silence_s=1,
    law="N",
    metrics={
        "exit_ns": Metric(help="its end", name="exit", headline=True),
        "other_ns": Metric(help="another"),
    },
)


def level(metric: str, n: int, ns: float) -> Level:
    summary = Summary(median=ns, mean=ns, sd=0, n=3, boots=3)
    return Level(
        workload="x", metric=metric, unit="ns", kernel="base", point={"N": n}, summary=summary
    )


def place(function: str, *, is_process: bool, waits_for: WaitFor = "kernel") -> WaitPlace:
    return WaitPlace(
        function=function,
        callers=("caller", "outer"),
        is_process=is_process,
        waits_for=waits_for,
        count=4,
        ns=2e9,
        share=0.5,
    )


def result(**fields: object) -> Result:
    return Result.model_validate(
        {
            "experiment": "measure-x",
            "question": "",
            "clock": "instructions",
            "command": "kteardown measure x",
            "machine": {},
            "kernels": {},
            "comparisons": (),
            "laws": (),
            "boots": {"ok": 3},
        }
        | fields
    )


def test_the_figures_of_a_headline_metric_have_one_unit() -> None:
    levels = (level("exit_ns", 10, 2e6), level("exit_ns", 20, 3.5e9), level("other_ns", 10, 1))
    (table,) = level_tables(result(levels=levels), {"x": WORKLOAD})
    assert [[cell.text for cell in row] for row in table.keys.rows] == [
        ["10", "2 ms", "3 boots"],
        ["20", "3,500 ms", "3 boots"],
    ]


def test_waits_say_who_waits_and_what_was_lost() -> None:
    places = (
        place("synchronize_rcu", is_process=True),
        place("do_wait", is_process=True, waits_for="process"),
        place("flush_work", is_process=False),
    )
    profile = WaitProfile(
        workload="x",
        kernel="base",
        param="N",
        point={"N": 20},
        stretches=1,
        stretch_ns=4e9,
        lost=1200,
        places=places,
    )
    (table,) = wait_tables(result(waits=(profile,)))
    assert [(row[2].text, row[3].text) for row in table.keys.rows] == [
        ("process", "kernel"),
        ("process", "process"),
        ("kernel thread", "kernel"),
    ]
    assert "caller <- outer" in table.keys.rows[0][1].text
    assert any("1,200" in note for note in table.notes)
    assert wait_tables(result(waits=(profile.model_copy(update={"places": ()}),))) == []


def waited(count: float, per_object: float | None) -> WaitedEvent:
    return WaitedEvent(
        event="rcu",
        label="grace periods (RCU)",
        count=count,
        ns=count * 12e6,
        count_per_object=per_object,
    )


@pytest.mark.parametrize(
    ("count", "per_object", "text"),
    [
        (400, 1.0, "once for each N"),
        (402, 1.003, "once for each N"),
        (800, 2.0, "2 for each N"),
        (101, 0.25, "0.25 for each N"),
        (1, 0.0, "once for all"),
        (12, 0.001, "12 for all"),
        (12, None, "12 in all"),
    ],
)
def test_how_often_a_wait_is(count: float, per_object: float | None, text: str) -> None:
    assert how_often(waited(count, per_object), "N") == text


def test_the_events_that_tasks_wait_for_have_a_table() -> None:
    profile = WaitProfile(
        workload="x",
        kernel="base",
        param="N",
        point={"N": 400},
        stretches=1,
        stretch_ns=4e9,
        lost=0,
        places=(),
        events=(waited(400, 1.0),),
    )
    (table,) = waited_tables(result(waits=(profile,)))
    assert [[cell.text for cell in row] for row in table.keys.rows] == [
        ["grace periods (RCU)", "once for each N", "400", "4.8 s"]
    ]
    assert not table.notes
    assert waited_tables(result(waits=(profile.model_copy(update={"events": ()}),))) == []
