"""Savings that a kernel reports of itself: those that are not seen from outside are not better."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from kteardown.analysis.conclude import analyse
from kteardown.analysis.self_timed import Saving, by_count, outside, to_count
from kteardown.inputs.load import load_workload
from kteardown.model.experiment import Experiment
from kteardown.model.judged import Comparison, MetricVerdict, Outside
from kteardown.model.point import Point, points_of
from kteardown.model.record import AgentRecord, BootEnd, BootStart, Sample, TrialEnd, TrialStart
from kteardown.model.record_fields import ParamValue
from kteardown.model.result import ChangeCost, Result
from kteardown.model.workload import Workload
from kteardown.report.sentence import sentence
from kteardown.rundir.counting import BootRecords
from unit.analysis.test_comparisons import FACTS
from unit.simulation import freezer

RECORDED = Path(__file__).parents[2] / "data" / "self_timed"
"""Samples of real boots on the instruction clock, by kernel, zombies, metric and seed.

``forge-window`` moves the start of the kernel's clock behind the loop that it times;
``freezer-skip-exited`` saves what it claims.
"""
FORGED = "forge-window"
HONEST = "freezer-skip-exited"
Samples = Mapping[str, Mapping[str, Mapping[str, list[list[int]]]]]


@cache
def zombies() -> Workload:
    return load_workload("zombies")


@cache
def samples(name: str) -> Samples:
    found: Samples = json.loads((RECORDED / f"{name}.json").read_text())
    return found


def boots_of(name: str, found: Samples, points: tuple[Point, ...]) -> list[BootRecords]:
    """Return the boots of base and of ``name``, with a trial for each point."""
    boots = []
    for index, (kernel, seed) in enumerate(
        (kernel, seed) for kernel in ("base", name) for seed in range(3)
    ):
        records: list[AgentRecord] = []
        for number, point in enumerate(points):
            params = point.params
            records.append(TrialStart(trial=number, workload="zombies", params=params))
            for metric, seeds in found[kernel][str(params["zombies"])].items():
                records += (
                    Sample(trial=number, repetition=n, metric=metric, value=value)
                    for n, value in enumerate(seeds[seed])
                )
            records.append(TrialEnd(trial=number, status="ok"))
        start = BootStart(
            kernel=kernel, block=seed, seed=seed, acceleration="icount", host_load=0, started_at=""
        )
        end = BootEnd(outcome="ok", duration_s=1, first_record_s=1, command=[], host_load=0)
        boots.append(BootRecords(index, 0, start, end, tuple(records)))
    return boots


def result_of(
    name: str,
    *,
    found: Samples | None = None,
    workload: Workload | None = None,
    sizes: tuple[int, ...] = (0, 3000, 15000),
    counted: tuple[ChangeCost, ...] = (),
) -> Result:
    experiment: Experiment = freezer(boots=3, zombies=sizes, variants=(name,))
    used = {"zombies": workload or zombies()}
    points = points_of(experiment, used)
    facts = {"base": FACTS["base"], name: FACTS["base"]}
    boots = boots_of(name, found or samples(name), points)
    return analyse(experiment, used, boots, facts, {}, "", points=points, counted=counted)


def verdicts(result: Result, *metrics: str) -> set[str]:
    judged: tuple[Comparison | MetricVerdict, ...] = (*result.comparisons, *result.metric_verdicts)
    laws = {
        law.verdict for law in result.laws if law.verdict and (not metrics or law.metric in metrics)
    }
    return laws | {one.verdict for one in judged if not metrics or one.metric in metrics}


def unmarked() -> Workload:
    metrics = {
        name: spec.model_copy(update={"reported_by": "agent", "within": ""})
        for name, spec in zombies().metrics.items()
    }
    return zombies().model_copy(update={"metrics": metrics})


def cost(name: str, base: float | None, changed: float | None, size: int = 0) -> ChangeCost:
    reason = "" if base is not None else "no plugin"
    point: dict[str, ParamValue] = {"zombies": size}
    return ChangeCost(
        variant=name, workload="zombies", point=point, base=base, changed=changed, reason=reason
    )


@pytest.mark.parametrize(
    ("claimed", "whole", "said"),
    [
        (100, Saving(100, 100, 100), "agrees"),
        (100, Saving(10, 50, 90), "agrees"),
        (100, Saving(-1, 80, 160), "unresolved"),  # The whole may not have changed.
        (100, Saving(10, 40, 70), "unresolved"),
        (100, Saving(-49, 0, 49), "contradicts"),
        (100, Saving(-51, 0, 51), "unresolved"),
        (100, Saving(0, 0, 0), "contradicts"),
        (100, Saving(-300, -200, -100), "contradicts"),
        (100, None, "unresolved"),
        (0, Saving(1, 2, 3), "unresolved"),
    ],
)
def test_half_of_a_claimed_saving_has_to_appear_in_the_whole(
    claimed: float, whole: Saving | None, said: Outside
) -> None:
    assert outside(claimed, whole) == said


def test_a_whole_that_waits_contradicts_nothing() -> None:
    assert outside(100, Saving(0, 0, 0), waits=True) == "unresolved"
    assert outside(100, Saving(90, 90, 90), waits=True) == "agrees"


def test_the_count_is_compared_in_instructions_or_as_a_share() -> None:
    assert by_count(100, 0.5, cost("v", 1000, 950), "instructions") == "counted"
    assert by_count(100, 0.5, cost("v", 1000, 951), "instructions") == "contradicts"
    assert by_count(100, 0.5, cost("v", 1000, 750), "wall") == "counted"
    assert by_count(100, 0.5, cost("v", 1000, 950), "wall") == "contradicts"
    assert by_count(0.1, 0.5, cost("v", 1000, 1000), "instructions") == "contradicts"
    assert by_count(100, 0.5, cost("v", None, None), "instructions") == "unresolved"


def test_a_kernel_that_moves_its_clock_is_not_better() -> None:
    # Without the marks of the workload it is: this is the fault.
    assert verdicts(result_of(FORGED, workload=unmarked()), "freeze_user_ns") == {"better"}
    result = result_of(FORGED)
    assert "better" not in verdicts(result)
    assert verdicts(result, "freeze_user_ns", "freeze_remaining_ns") == {"inconclusive"}
    assert {m.outside for m in result.metric_verdicts} == {"contradicts"}
    assert verdicts(result, "suspend_call_ns", "thaw_ns") == {"same"}
    # The call decides alone: nothing is to be counted.
    assert to_count(result, {"zombies": zombies()}) == []
    (user,) = (m for m in result.metric_verdicts if m.metric == "freeze_user_ns")
    assert "suspend_call_ns" in user.reason
    (line,) = sentence(result, {"zombies": zombies()}).splitlines()
    assert "better only by a figure of its own" in line and "inconclusive: " not in line


def test_an_honest_saving_stays_better_without_a_count() -> None:
    plain, result = result_of(HONEST, workload=unmarked()), result_of(HONEST)
    for before, after in zip(plain.comparisons, result.comparisons, strict=True):
        assert (before.metric, before.verdict) == (after.metric, after.verdict)
    assert {m.verdict for m in result.metric_verdicts} == {"better"}
    assert {m.outside for m in result.metric_verdicts} == {"agrees"}
    assert result.notes == plain.notes
    assert to_count(result, {"zombies": zombies()}) == []


def test_what_is_worse_by_the_kernel_s_own_figure_is_worse() -> None:
    turned = {"base": samples(FORGED)[FORGED], FORGED: samples(FORGED)["base"]}
    result = result_of(FORGED, found=turned)
    assert verdicts(result, "freeze_user_ns") == {"worse"}
    assert {c.outside for c in result.comparisons} == {None}


def test_a_saving_too_small_for_the_call_needs_a_count() -> None:
    """At no zombies, the forged saving is a third of what the call varies by."""
    workloads = {"zombies": zombies()}

    def small(*counted: ChangeCost) -> tuple[Result, MetricVerdict]:
        result = result_of(FORGED, sizes=(0,), counted=counted)
        (user,) = (m for m in result.metric_verdicts if m.metric == "freeze_user_ns")
        return result, user

    result, user = small()
    assert (user.verdict, user.outside) == ("better", "unresolved")
    assert any("freeze_user_ns" in note and "not counted" in note for note in result.notes)
    (wanted,) = to_count(result, workloads)
    assert (wanted.variant, wanted.workload, wanted.point) == (FORGED, "zombies", {"zombies": 0})

    result, user = small(cost(FORGED, 7000, 7010))
    assert (user.verdict, user.outside) == ("inconclusive", "contradicts")
    assert "7,010" in user.reason
    assert "better" not in verdicts(result, "freeze_user_ns")

    result, user = small(cost(FORGED, 7000, 4600))
    assert (user.verdict, user.outside) == ("better", "counted")
    assert any("4,600" in note for note in result.notes)
    assert to_count(result, workloads) == []

    result, user = small(cost(FORGED, None, None))
    assert (user.verdict, user.outside) == ("better", "unresolved")
    assert any("not counted: no plugin" in note for note in result.notes)


def test_a_figure_of_the_kernel_that_no_call_contains_stays_better_with_a_note() -> None:
    spec = zombies().metrics["freeze_user_ns"].model_copy(update={"within": ""})
    workload = zombies().model_copy(
        update={"metrics": {**zombies().metrics, "freeze_user_ns": spec}}
    )
    result = result_of(FORGED, workload=workload)
    assert verdicts(result, "freeze_user_ns") == {"better"}
    (note,) = (note for note in result.notes if "freeze_user_ns" in note)
    assert "nothing outside of it" in note
    assert to_count(result, {"zombies": workload}) == []


def test_one_honest_point_does_not_hide_another_that_is_forged() -> None:
    """The saving at 3000 zombies is real, the larger one at 15000 is not."""
    honest, forged = samples(HONEST), samples(FORGED)
    changed = {
        size: (honest[HONEST] if size != "15000" else forged[FORGED])[size]
        for size in honest["base"]
    }
    result = result_of(FORGED, found={"base": honest["base"], FORGED: changed})
    found = {
        c.point["zombies"]: c.verdict for c in result.comparisons if c.metric == "freeze_user_ns"
    }
    assert (found[3000], found[15000]) == ("better", "inconclusive")
    (user,) = (m for m in result.metric_verdicts if m.metric == "freeze_user_ns")
    assert user.verdict == "inconclusive"
    (law,) = (law for law in result.laws if law.metric == "freeze_user_ns" and law.verdict)
    assert law.verdict == "inconclusive"
