"""A kernel that moves its own clock, and an honest series beside it: which of their savings are
better."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vm import lab
from vm.test_run import kteardown

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

FORGED = "freezer-own-clock"
HONEST = "freezer-skip-exited"


def measured(folder: Path, variants: list[str], zombies: list[int]) -> tuple[Path, dict[str, Any]]:
    """Run three seeds of base and ``variants`` and return the run directory and its result."""
    file, runs = folder / "experiment.toml", folder / "runs"
    file.write_text(
        'name = "own-clock"\nquestion = "Is the saving seen from outside?"\n'
        'source = "debian:6.12"\n'
        f"variants = {variants!r}\n"
        f'[[workloads]]\nworkload = "zombies"\nparams.zombies = {zombies}\n'
        '[design]\nclock = "instructions"\nseeds = 3\nwarmup = 1\nrepetitions = 7\n'
    )
    kteardown("run", str(file), runs=runs)
    (run,) = runs.iterdir()
    return run, json.loads((run / "result.json").read_text())


def verdicts(result: dict[str, Any], variant: str) -> dict[str, set[str]]:
    """The verdicts of each headline metric of a variant, at its points and over all of them."""
    found: dict[str, set[str]] = {}
    headlines = {one["metric"] for one in result["metrics"] if one["headline"]}
    for one in (*result["comparisons"], *result["metric_verdicts"]):
        if one["variant"] == variant and one["metric"] in headlines:
            found.setdefault(one["metric"], set()).add(one["verdict"])
    return found


def test_the_call_contradicts_a_forged_saving_and_agrees_with_an_honest_one(tmp_path: Path) -> None:
    run, result = measured(tmp_path, [str(lab.BROKEN / FORGED), HONEST], [1000, 3000])
    assert verdicts(result, FORGED) == {
        "freeze_user_ns": {"inconclusive"},
        "freeze_remaining_ns": {"inconclusive"},
    }
    assert verdicts(result, HONEST)["freeze_user_ns"] == {"better"}
    for variant, is_unconfirmed in ((FORGED, True), (HONEST, False)):
        line = next(line for line in result["sentence"].splitlines() if variant in line)
        assert ("a figure of its own" in line) == is_unconfirmed
    assert not (run / "counted.json").exists()


def test_a_forged_saving_that_the_call_cannot_show_is_counted_from_outside(tmp_path: Path) -> None:
    """Without zombies the kernel claims 2,400 instructions; the call varies by more."""
    run, result = measured(tmp_path, [str(lab.BROKEN / FORGED)], [0])
    assert "better" not in set().union(*verdicts(result, FORGED).values())
    (cost,) = json.loads((run / "counted.json").read_text())
    assert cost["variant"] == FORGED and cost["reason"] == ""
    assert abs(cost["changed"] - cost["base"]) < 0.01 * cost["base"]
    # A run that is resumed keeps the count.
    kept = (run / "counted.json").stat().st_mtime_ns
    kteardown("run", "--resume", str(run), runs=tmp_path / "runs")
    assert (run / "counted.json").stat().st_mtime_ns == kept
    assert json.loads((run / "result.json").read_text()) == result
