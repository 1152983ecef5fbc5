"""The lines of a run on both clocks: each change has its clock, and what is worse is first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from kteardown import pipeline
from kteardown.model.clock import Clock
from kteardown.model.faults import Fault, FaultStatus
from kteardown.model.result import Result
from kteardown.model.workload import Metric, Workload
from kteardown.report.material import BothMaterial, Material, side_by_side
from kteardown.report.sentence import sentence
from kteardown.rundir.snapshot import load
from unit.report.contexts import write_both
from unit.report.rendered import TEXTS
from unit.simulation import WORKLOADS, Noise, analysed, freezer, simulate

V = "freezer-skip-exited"
_METRICS = {
    "freeze_user_ns": Metric(help="how long", name="freezing user space", headline=True),
    "thaw_ns": Metric(help="how long", name="thawing all tasks"),
}
_ONE_HEADLINE = {"zombies": Workload(name="zombies", summary="", silence_s=1, metrics=_METRICS)}


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
        "R",
        Material("R/instructions", exact, _ONE_HEADLINE),
        Material("R/wall", wall, _ONE_HEADLINE),
    )


def _said(exact: Result, wall: Result) -> str:
    return sentence(_both(exact, wall).both, _ONE_HEADLINE)


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
            "68% fewer instructions on average over 2 points on the instruction clock and 50% "
            "less ",
        ),
        (
            1.6,
            2.0,
            "60% more instructions on average over 2 points on the instruction clock and 2 times "
            "as ",
        ),
        (1.0, 1.0, "does not change freezing user space by more than 2%."),
        (
            0.5,
            1.0,
            "takes 50% fewer instructions on average over 2 points on the instruction clock; ",
        ),
        (1.0, 0.5, "takes 50% less time on average over 2 points on the wall clock; "),
        (0.5, 2.0, "takes 2 times as long on average over 2 points on the wall clock; "),
    ],
)
def test_each_reading_of_two_clocks(exact: float, wall: float, said: str) -> None:
    assert _said(_result("instructions", exact), _result("wall", wall)).find(said) > 0


def test_no_gain_of_what_is_broken_on_one_clock() -> None:
    exact, wall = _result("instructions", 0.5), _result("wall", 0.5)
    broken = {"faults": (_fault("broken"),)}
    panics = f"{V} is broken: panic in 1 of 2 boots (base in 0 of 2) on the wall clock."
    assert _said(exact, wall.model_copy(update=broken)) == panics
    both = _said(exact.model_copy(update=broken), wall.model_copy(update=broken))
    assert "on the instruction clock and panic" in both and "on the wall clock." in both
    suspected = _said(exact, wall.model_copy(update={"faults": (_fault("suspected"),)}))
    assert suspected.startswith(f"{V} may be broken: panic in 1 of 2 boots")
    assert "50% less time on average over 2 points on the wall clock" in suspected


def test_a_loss_beside_the_headline_metrics_is_named_with_its_clocks() -> None:
    exact, wall = _result("instructions", 0.5), _result("wall", 0.5, 2.0)
    said = (
        "other metrics: thawing all tasks takes 2 times as long at all 2 points on the wall clock"
    )
    assert said in _said(exact, wall)


def test_what_is_unfinished_on_one_clock_is_said() -> None:
    left = _result("wall", 0.5).model_copy(update={"boots_left": 3})
    assert _said(_result("instructions", 0.5), left).startswith("So far, with 3 boots left: ")


def test_each_of_many_variants_has_a_line() -> None:
    names = ("a", "b", "c")
    said = _said(_result("instructions", 0.4, variants=names), _result("wall", 0.5, variants=names))
    assert [
        name for name in names for line in said.splitlines() if line.startswith(f"With {name}, ")
    ] == list(names)


def test_a_revision_says_once_what_it_keeps() -> None:
    names = ("fix-v1", "fix-v2")
    said = _said(_result("instructions", 0.5, variants=names), _result("wall", 0.5, variants=names))
    assert said.count("; nothing got measurably worse; keeps all of fix-v1's gain.") == 1


def test_every_report_of_both_clocks_begins_with_it(tmp_path: Path) -> None:
    folder = write_both(tmp_path)
    materials = [
        Material(run.name, pipeline.analyse_and_save(load(run)), dict(WORKLOADS))
        for run in folder.runs
    ]
    found = side_by_side(folder.name, *materials)
    said = sentence(found.both, WORKLOADS)
    assert V in said.splitlines()[0]
    assert json.loads(TEXTS["json"](found))["headline"] == said
    assert TEXTS["cover"](found).startswith(f"- With {V}, ")
    assert TEXTS["markdown"](found).startswith(f"- **{said.splitlines()[0]}**")
