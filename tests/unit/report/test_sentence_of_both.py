"""The sentence of a run on both clocks: what both say is said once, and a disagreement is first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from kteardown import pipeline
from kteardown.model.clock import Clock
from kteardown.model.result import Fault, FaultStatus, Result
from kteardown.model.workload import Metric, Workload
from kteardown.report.formats import both_clocks
from kteardown.report.material import BothMaterial, Material, side_by_side
from kteardown.report.sentence_of_both import sentence_of_both
from kteardown.rundir.snapshot import load
from unit.report.contexts import write_both
from unit.simulation import WORKLOADS, Noise, analysed, freezer, simulate

V = "freezer-skip-exited"
_METRICS = {
    "freeze_user_ns": Metric(help="how long", name="freezing user space", headline=True),
    "thaw_ns": Metric(help="how long", name="thawing all tasks"),
}
_ONE_HEADLINE = {"zombies": Workload(name="zombies", summary="", silence_s=1, metrics=_METRICS)}
_NOTHING = "changes nothing: freezing user space is the same (within 2%)"
_CHEAPER = "makes freezing user space 2.0 times cheaper (50% fewer instructions, over all 2 points)"
_FASTER = "makes freezing user space 2.0 times faster (50% less time, over all 2 points)"
_SLOWER = "makes freezing user space worse: 2.0 times slower (100% more time, over all 2 points)"


@cache
def _result(
    clock: Clock, user: float, thaw: float = 1.0, boots: int = 4, variants: tuple[str, ...] = (V,)
) -> Result:
    """Return a result in which the variants have these costs of base's two metrics."""
    ratios = {"freeze_user_ns": user, "thaw_ns": thaw}

    def cost(kernel: str, metric: str, params: Mapping[str, object]) -> float:
        return 1e6 * (1.0 if kernel.startswith("base") else ratios.get(metric, 1.0))

    wanted = freezer(clock, boots=boots, repetitions=1, zombies=(3000, 6000), variants=variants)
    noise = Noise(boot=1e-4, sample=1e-4) if clock == "wall" else None
    result = analysed(wanted, simulate(wanted, cost, noise))
    kept = {
        name: tuple(one for one in getattr(result, name) if one.metric in _METRICS)
        for name in ("comparisons", "metric_verdicts")
    }
    return result.model_copy(update=kept)


def _both(exact: Result, wall: Result) -> BothMaterial:
    return side_by_side(
        "R", Material("R/instructions", exact, _ONE_HEADLINE), Material("R/wall", wall, _ONE_HEADLINE)
    )


def _said(exact: Result, wall: Result) -> str:
    return sentence_of_both(_both(exact, wall).both, _ONE_HEADLINE)


def _fault(status: FaultStatus) -> Fault:
    return Fault(
        kernel=V,
        kind="panic",
        status=status,
        message="Kernel panic",
        points=(),
        boots=(1,),
        of=2,
        base_boots=0,
        base_of=2,
    )


@pytest.mark.parametrize(
    ("exact", "wall", "said"),
    [
        (
            0.32,
            0.5,
            f"On both clocks {V} makes freezing user space 2.0 times faster (50% less time, 68% fewer "
            "instructions, over all 2 points); nothing got worse.",
        ),
        (
            0.95,
            0.9,
            f"On both clocks {V} cuts freezing user space by 10% (less time, 5.0% fewer instructions, over "
            "all 2 points); nothing got worse.",
        ),
        (
            1.6,
            2.0,
            f"On both clocks {V} makes freezing user space worse: 2.0 times slower (100% more time, 60% more "
            "instructions, over all 2 points).",
        ),
        (1.0, 1.0, f"On both clocks {V} {_NOTHING}."),
        (
            0.5,
            1.0,
            f"On the instruction clock {V} {_CHEAPER}; on the wall clock it {_NOTHING}; nothing got worse.",
        ),
        (
            1.0,
            0.5,
            f"On the instruction clock {V} {_NOTHING}; on the wall clock it {_FASTER}; nothing got worse.",
        ),
        (
            0.5,
            2.0,
            f"The clocks disagree: on the instruction clock {V} {_CHEAPER}; on the wall clock it {_SLOWER}.",
        ),
    ],
)
def test_each_reading_of_two_clocks(exact: float, wall: float, said: str) -> None:
    assert _said(_result("instructions", exact), _result("wall", wall)) == said
    assert len(said.split()) <= 45


def test_no_gain_of_what_is_broken_on_one_clock() -> None:
    exact, wall = _result("instructions", 0.5), _result("wall", 0.5)
    broken = {"faults": (_fault("broken"),)}
    panics = "it panics in 1 of 2 boots (base in 0 of 2)."
    assert _said(exact, wall.model_copy(update=broken)) == f"{V} is broken on the wall clock: {panics}"
    both = _said(exact.model_copy(update=broken), wall.model_copy(update=broken))
    assert both == f"{V} is broken on both clocks: {panics}"
    suspected = _said(exact, wall.model_copy(update={"faults": (_fault("suspected"),)}))
    assert suspected.startswith(
        f"{V} may be broken on the wall clock: {panics[:-1]}; on both clocks it makes "
    )
    assert "nothing got worse" not in suspected


def test_one_clock_without_a_verdict_says_what_to_add() -> None:
    said = _said(_result("instructions", 0.5, boots=1), _result("wall", 0.5))
    assert said == (
        f"On the instruction clock {V} is inconclusive on freezing user space (-50%): one seed gives no "
        f"interval, add --seeds 2; on the wall clock it {_FASTER}."
    )


def test_a_loss_beside_the_headline_metrics_is_named_with_its_clocks() -> None:
    exact, wall = _result("instructions", 0.5), _result("wall", 0.5, 2.0)
    beside = "it is worse beside the headline metrics: thawing all tasks +100% at zombies="
    assert f"; on the wall clock {beside}" in _said(exact, wall)
    both = _said(_result("instructions", 0.5, 2.0), wall)
    assert "; is worse beside the headline metrics: thawing all tasks +100%" in both
    assert both.count("beside the headline metrics") == 1
    assert "nothing got worse" not in both


def test_what_is_unfinished_on_one_clock_is_said() -> None:
    left = _result("wall", 0.5).model_copy(update={"boots_left": 3})
    said = _said(_result("instructions", 0.5), left)
    assert said.startswith(
        "So far (the run on the wall clock is not finished; boots left: 3): on both clocks "
    )


def test_many_variants_are_counted_once() -> None:
    names = ("a", "b", "c")
    agreed = _said(_result("instructions", 0.4, variants=names), _result("wall", 0.5, variants=names))
    changes = ", ".join(f"{name}: freezing user space -50%" for name in names)
    assert agreed == f"Of 3 variants, on both clocks (changes: wall clock): 3 better ({changes})."
    apart = _said(_result("instructions", 0.4, variants=names), _result("wall", 2.0, variants=names))
    first = "a is better on the instruction clock and worse on the wall clock"
    assert apart.startswith(f"The clocks disagree: of 3 variants, {first}; b is better ")


def test_a_revision_says_once_what_it_keeps() -> None:
    names = ("fix-v1", "fix-v2")
    said = _said(_result("instructions", 0.4, variants=names), _result("wall", 0.5, variants=names))
    assert said.endswith("; on both clocks fix-v2 keeps all of fix-v1's gain.")


def test_an_opposite_point_is_first(tmp_path: Path) -> None:
    both = _both(_result("instructions", 0.5), _result("wall", 0.5)).both
    opposite = both.readings[0].model_copy(update={"reading": "disagree", "metric": "freeze_user_ns"})
    said = sentence_of_both(both.model_copy(update={"readings": (opposite,)}), _ONE_HEADLINE)
    first = f"The clocks disagree on freezing user space with {V} at zombies=3,000"
    assert said.startswith(first)


def test_every_report_of_both_clocks_begins_with_it(tmp_path: Path) -> None:
    folder = write_both(tmp_path)
    materials = [
        Material(run.name, pipeline.analyse_and_save(load(run)), dict(WORKLOADS)) for run in folder.runs
    ]
    found = side_by_side(folder.name, *materials)
    said = sentence_of_both(found.both, WORKLOADS)
    assert said.startswith(f"On both clocks {V} makes freezing user space ")
    assert json.loads(both_clocks.TEXTS["json"](found))["sentence"] == said
    assert " ".join(both_clocks.TEXTS["cover"](found).split("\n\n")[0].split()) == said
    assert both_clocks.TEXTS["markdown"](found).startswith(f"**{said}**")
