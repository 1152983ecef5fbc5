"""From recorded boots of two kinds to finds: ``flocks`` by exit, and ``zombies_group``, on Debian's
6.12."""

from __future__ import annotations

import pytest

from kteardown.model.record import BootEnd, BootStart, Sample, TrialEnd, TrialStart
from kteardown.model.record_fields import ParamValue
from kteardown.rundir.counting import BootRecords
from kteardown_hunt import finds as finds_module
from kteardown_hunt.finds import MeasuredCase, measured
from kteardown_hunt.owner_tables import owners_table
from kteardown_hunt.result import FailureResult, Find, OwnersResult, Rate, rough_time
from kteardown_hunt.tables import (
    failures_table,
    finds_table,
    predicted,
    report_text,
    summary,
)
from unit.hunt.recorded import FLOCKS, KINDS, ZOMBIES, find_of, recorded_finds, result_of, stage


@pytest.fixture(scope="module")
def finds() -> list[Find]:
    return recorded_finds()


def test_the_bystanders_are_those_of_the_largest_number() -> None:
    zombies = stage("screen")[ZOMBIES]
    assert zombies.largest("objects_count") == 1152
    # The whole release, 37 million instructions, had interrupts off.
    assert zombies.largest("irqs_off_ns") == pytest.approx(37_494_146, rel=0.01)


def test_the_release_of_both_grows_with_the_square(finds: list[Find]) -> None:
    release = {find.kind: find for find in finds if find.cost == "sync"}
    for name in ("flocks", "zombies_group"):
        growth = release[name].growth
        assert growth is not None
        assert growth.verdict == "superlinear"
        assert growth.exponent == pytest.approx(1.94, abs=0.02)


def test_the_function_that_is_responsible_is_named(finds: list[Find]) -> None:
    place = {
        find.kind: find.function.place for find in finds if find.cost == "sync" and find.function
    }
    assert place == {"flocks": "locks_check_ctx_file_list()", "zombies_group": "do_exit()"}


def test_finds_with_interrupts_off_come_first(finds: list[Find]) -> None:
    assert finds[0].kind == "zombies_group"
    assert finds[0].function
    assert finds[0].function.no_interrupts > 0.9


def test_the_cost_at_the_limit_is_that_of_the_square(finds: list[Find]) -> None:
    flocks = next(find for find in finds if (find.kind, find.cost) == ("flocks", "sync"))
    assert flocks.prediction
    assert flocks.growth
    assert flocks.prediction.objects == 1_000_000
    exact = (flocks.growth.costs[-1] or 0) * (1_000_000 / flocks.growth.sizes[-1]) ** 2
    assert flocks.prediction.instructions[1] == pytest.approx(exact, rel=0.1)
    assert predicted(
        flocks.prediction, Rate(ns=2.0, deviation=0.1, acceleration="kvm", cases=3)
    ).endswith(" at 1,000,000")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0042, "0.0042 s"),
        (66.34, "66 s"),
        (400, "6.7 min"),
        (33_400, "9.3 h"),
        (1.65e6, "19 days"),
    ],
)
def test_a_prediction_has_two_digits(seconds: float, text: str) -> None:
    assert rough_time(seconds) == text


def test_a_guest_that_hung_is_a_find_and_a_call_that_failed_is_not() -> None:
    hung, refused = MeasuredCase(FLOCKS), MeasuredCase(ZOMBIES)
    hung.failures.append(FailureResult(outcome="hang", objects=4608, detail="no record: for 60 s"))
    refused.failures.append(FailureResult(outcome="failed", objects=72, detail="fork(): hang on"))
    cases = finds_module.case_results(KINDS, {FLOCKS: hung, ZOMBIES: refused}, {}, {}, {})
    (find,) = finds_module.finds_of(cases, {}, KINDS)
    assert find.failed == FailureResult(outcome="hang", objects=4608, detail="no record: for 60 s")
    assert find.failure == "hang at 4,608 objects: no record: for 60 s"
    result = result_of(cases, [find])
    assert finds_table(result).keys.rows[0][1].text == "hang at 4,608 objects"
    assert report_text(find, result).startswith("Subject: flocks: hang at 4,608 objects\n")
    failed = failures_table(result)
    assert failed is not None
    assert [row[2].text for row in failed.keys.rows] == ["no record: for 60 s", "fork(): hang on"]


@pytest.mark.parametrize(
    ("kinds", "share", "finds"),
    [(("a", "b"), 0.5, 1), (("a", "b"), 0.1, 2), (("a", "a"), 0.1, 1)],
)
def test_kinds_are_one_find_if_what_they_have_in_common_takes_much_of_the_time(
    kinds: tuple[str, str], share: float, finds: int
) -> None:
    merged = finds_module._merged([find_of(kind, "walk", share) for kind in kinds])
    assert len(merged) == finds
    other = finds_module._merged([find_of("a", "walk", 0.5), find_of("b", "scan", 0.5)])
    assert len(other) == 2


def test_a_find_says_what_other_kernels_did_and_what_failed_there() -> None:
    confirmed = stage("confirm")
    failed = MeasuredCase(FLOCKS, {"sync_ns": {(1001, 72): 1e5, (1001, 144): 4e5}})
    failed.failures.append(FailureResult(outcome="panic", objects=288, detail="Oops: 0000"))
    elsewhere = {FLOCKS: {"debian-image:7.3": failed}}
    cases = finds_module.case_results(KINDS, stage("screen"), confirmed, {}, elsewhere)
    found = finds_module.finds_of(cases, confirmed, KINDS)
    flocks = next(find for find in found if (find.kind, find.cost) == ("flocks", "sync"))
    assert flocks.elsewhere["debian-image:7.3"].sizes == (72, 144)
    cells = finds_table(result_of(cases, [flocks])).keys.rows[0]
    assert cells[-1].text == "unknown, 400,000 at 144; panic at 288 objects: Oops: 0000"
    assert "On debian-image:7.3: panic at 288 objects: Oops: 0000." in report_text(
        flocks, result_of(cases, [flocks])
    )


def test_bystanders_that_fail_are_reported_at_the_largest_number_so_far() -> None:
    start = BootStart(
        kernel="kernel",
        block=0,
        seed=1,
        acceleration="icount",
        host_load=0,
        started_at="2026-01-01T00:00:00",
    )
    end = BootEnd(
        outcome="hang", detail="silence", duration_s=1, first_record_s=0, command=[], host_load=0
    )
    params: dict[str, ParamValue] = {"kind": "flocks", "way": "exit", "user": "root", "owners": 1}
    records = (
        TrialStart(trial=0, workload="hunt", params={**params, "objects": 288}),
        Sample(trial=0, repetition=0, metric="sync_ns", value=1e6, warmup=False),
        TrialEnd(trial=0, status="ok"),
        TrialStart(trial=1, workload="hunt", params={**params, "objects": 0}),
    )
    (case,) = measured([BootRecords(0, 0, start, end, records)]).values()
    assert [(failure.objects, failure.outcome) for failure in case.failures] == [(288, "hang")]


def test_a_linear_release_that_waits_for_others_is_a_find_of_its_own() -> None:
    waits = OwnersResult(
        kind="flocks",
        way="exit",
        user="root",
        owners=2,
        objects=100,
        boots=5,
        ratio=1.9,
        ci=(1.8, 2.0),
        verdict="serial",
        alone="linear",
    )
    steep = waits.model_copy(update={"alone": "superlinear"})
    result = result_of([], []).model_copy(update={"owners": (waits, steep)})
    assert summary(result).endswith(
        "; 1 linear release in which several processes wait for each other"
    )
    table = owners_table(result, everything=False)
    assert table
    assert [(row[4].text, row[4].tone, row[8].text) for row in table.keys.rows] == [
        ("serial", "worse", "linear"),
        ("serial", None, "superlinear"),
    ]
    text = report_text(waits, result)
    assert text.startswith(
        "Subject: flocks: 2 processes that release at once take 1.90 times as long\n"
    )
    assert "    ./flocks 100 exit & ./flocks 100 exit & wait\n" in text
    # Results of earlier versions have no counts.
    assert "on the wall clock" in text
    counted = waits.model_copy(update={"moves_each": 3.0, "asleep_share": 1.0})
    text = report_text(counted, result)
    assert "wall clock" not in text
    assert "Of the time for which the CPUs wait: sleeps (100.0%)." in text
