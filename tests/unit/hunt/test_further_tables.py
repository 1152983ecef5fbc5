"""The tables of what stays, of waits and of interrupts of other CPUs."""

from __future__ import annotations

from kteardown_hunt.further_tables import (
    broadcasts_table,
    further_reports,
    stay_failures_table,
    stays_table,
    waits_table,
)
from kteardown_hunt.result import (
    BroadcastResult,
    CostPrediction,
    HuntResult,
    StayResult,
    WaitingFunction,
    WaitResult,
)
from kteardown_hunt.tables import shown_tables, summary
from unit.hunt.recorded import result_of

PAYS = StayResult(
    kind="vlans",
    way="call",
    user="root",
    cost="sync",
    stay="declared",
    resident="neighbour of another device",
    verdict="pays",
    reason="",
    objects=72,
    residents=4608,
    residents_exponent=1.0,
    objects_exponent=1.0,
    instructions=26.5,
    for_each_object=True,
    extras=(1e6, 2e6, 4e6, 8e6),
    predicted=CostPrediction(objects=4094, limit="", instructions=(1e10, 1e10, 1e10)),
    predicted_residents=100_000,
    elsewhere={"debian-image:7.3": None},
)
WAITS = WaitResult(
    kind="vlans",
    way="oldest",
    user="root",
    part="release",
    sizes=(18, 72),
    asleep_ns=(2e8, 8e8),
    each_ns=1.2e7,
    functions=(WaitingFunction(name="rcu_barrier", callers=("f",), count_each=1, ns_each=8e6),),
    elsewhere={"debian-image:7.3": 0.0},
)
CALLS = BroadcastResult(
    kind="vlans",
    way="oldest",
    user="root",
    objects=72,
    seeds=3,
    calls_each=(6.0, 6.5),
    flushes_each=(0.0, 0.0),
)


def hunted(*stays: StayResult) -> HuntResult:
    return result_of([], []).model_copy(
        update={
            "against": ("debian-image:7.3",),
            "stays": stays,
            "waits": (WAITS,),
            "broadcasts": (CALLS,),
        }
    )


def test_each_figure_has_a_table_and_a_part_of_the_sentence() -> None:
    result = hunted(PAYS)
    titles = [table.title for table in shown_tables(result, everything=False)]
    assert titles == [
        "Pays for what stays",
        "Waits for each object",
        "Interrupts other CPUs for each object",
    ]
    assert all(word in summary(result) for word in ("stays", "waits once", "interrupts"))
    assert HuntResult.model_validate_json(result.model_dump_json()) == result


def test_another_kernel_on_which_it_is_free_is_named() -> None:
    table = stays_table(hunted(PAYS), everything=False)
    assert table is not None
    (row,) = table.keys.rows
    assert row[-1].text == "free"
    assert "4,094 x 100,000" in row[-2].text


def test_what_is_unknown_is_shown_with_everything_alone() -> None:
    unknown = PAYS.model_copy(update={"verdict": "unknown", "predicted": None})
    assert stays_table(hunted(unknown), everything=False) is None
    assert stays_table(hunted(unknown), everything=True) is not None


def test_what_could_not_be_measured_has_a_reason() -> None:
    failed = PAYS.model_copy(update={"verdict": "failed", "reason": "oom at 72 objects: killed"})
    table = stay_failures_table(hunted(failed))
    assert table is not None
    assert table.keys.rows[0][-1].text == "oom at 72 objects: killed"
    assert stays_table(hunted(failed), everything=True) is None


def test_residents_that_do_not_matter_are_named() -> None:
    result = result_of([], []).model_copy(update={"residents": {"pipes": 9}})
    assert "no cost grows with what stays (pipes)" in summary(result)
    paying = result.model_copy(update={"stays": (PAYS,)})
    assert "(pipes)" not in summary(paying)
    assert "stays" not in summary(result_of([], []))


def test_no_table_says_nothing() -> None:
    empty = result_of([], [])
    assert stays_table(empty, everything=True) is None
    assert waits_table(empty) is broadcasts_table(empty) is stay_failures_table(empty) is None


def test_each_find_has_a_report_that_names_its_programs() -> None:
    beside = PAYS.model_copy(update={"stay": "pipes", "numbers": (576, 1152, 2304, 4608)})
    reports = {name: (kinds, text) for name, kinds, text in further_reports(hunted(beside))}
    assert {kinds for kinds, _ in reports.values()} == {("vlans", "pipes"), ("vlans",)}
    text = reports["vlans-call-sync-beside-pipes"][1]
    assert "./pipes 4608 hold &" in text and "./vlans 72 call" in text
    assert "8,000,000" in text
    assert "rcu_barrier()" in reports["vlans-oldest-release-waits"][1]
    assert all("{{" not in text for _, text in reports.values())
