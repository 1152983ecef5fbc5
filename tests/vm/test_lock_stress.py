"""Locks of files are released in every way: a contender and its first patches lose none, wrong
series are caught."""

from __future__ import annotations

import pytest

from kteardown.inputs.load import load_workload
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

CONTENDER = lab.BROKEN / "locks-by-owner"
VARIANTS = (f"{CONTENDER}@1", f"{CONTENDER}@2", str(CONTENDER))
RIGHT = ("base", "locks-by-owner@1", "locks-by-owner@2", "locks-by-owner")
CAUGHT_BY = {
    "locks-broken-first": "held",
    "locks-broken-lease": "leases",
    "locks-broken-next": "held",
}
EXPECTED = {name: [True] for name in load_workload("lock_stress").invariants}


def run(folder: pytest.TempPathFactory, source: str, variants: list[str]) -> dict[str, lab.Boot]:
    """One boot of each kernel. The wall clock: there two CPUs really run at once."""
    boots = lab.stress(folder.mktemp("locks"), "lock_stress", source, variants, lab.WALL)
    return {boot.kernel: boot for boot in boots}


@pytest.fixture(scope="module")
def on_6_12(tmp_path_factory: pytest.TempPathFactory) -> dict[str, lab.Boot]:
    folder = tmp_path_factory.mktemp("series")
    broken = [lab.on_top(folder, CONTENDER, name) for name in CAUGHT_BY]
    return run(tmp_path_factory, "debian:6.12", [*VARIANTS, *broken])


@pytest.mark.parametrize("kernel", RIGHT)
def test_no_lock_is_lost_or_left(on_6_12: dict[str, lab.Boot], kernel: str) -> None:
    assert on_6_12[kernel].outcome == "ok", on_6_12[kernel].detail
    (trial,) = on_6_12[kernel].trials
    assert trial.checks == EXPECTED, trial.wrong


@pytest.mark.parametrize("kernel", CAUGHT_BY)
def test_a_series_that_is_wrong_is_caught(on_6_12: dict[str, lab.Boot], kernel: str) -> None:
    (trial,) = on_6_12[kernel].trials
    assert not all(trial.checks[CAUGHT_BY[kernel]]), trial.checks
