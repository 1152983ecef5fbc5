"""The freezer with tasks in every state: invariants hold with the shipped series and the contender,
wrong series are caught."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.inputs.load import load_workload
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

REPETITIONS = 2
SHIPPED = (
    "freezer-skip-exited",
    "freezer-skip-exited@1",
    "freezer-skip-nofreeze-user",
    "freezer-skip-nofreeze-user@1",
)
CONTENDER = ("freezer-skip-nofreeze", "freezer-skip-nofreeze@1")
RIGHT = (*SHIPPED, *CONTENDER)
VARIANTS = (*SHIPPED, *(str(lab.BROKEN / name) for name in CONTENDER))
CAUGHT_BY = {
    "freezer-broken-leader": {"all_frozen"},
    "freezer-broken-sleeping": {"all_frozen"},
    "freezer-broken-stopped": {"states_kept", "released"},
    "freezer-broken-thaw": {"all_resumed"},
    "freezer-broken-transition": {"suspended"},
}


def run(folder: Path, source: str, variants: tuple[str, ...]) -> lab.Checks:
    """The verdicts of every invariant, by kernel. The wall clock: there two CPUs really run at
    once."""
    boots = lab.run(
        folder,
        f'name = "states"\nquestion = "Is every task frozen, and none lost?"\nsource = "{source}"\n'
        f"variants = {list(variants)!r}\n"
        '[[workloads]]\nworkload = "freezer_states"\n'
        f'[design]\nclock = "wall"\nboots = 1\nwarmup = 0\nrepetitions = {REPETITIONS}\n',
    )
    for boot in boots:
        for trial in boot.trials:
            assert trial.status != "failed", trial.detail
    return lab.checks(boots)


@pytest.fixture(scope="module")
def on_6_12(tmp_path_factory: pytest.TempPathFactory) -> lab.Checks:
    variants = (*VARIANTS, *(str(lab.BROKEN / name) for name in CAUGHT_BY))
    return run(tmp_path_factory.mktemp("states"), "debian:6.12", variants)


@pytest.fixture(scope="module", params=("debian:7.2", "debian:7.3"))
def on_newer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> lab.Checks:
    return run(tmp_path_factory.mktemp("states"), request.param, VARIANTS)


@pytest.mark.parametrize("kernel", ("base", *RIGHT))
def test_6_12_freezes_and_thaws_every_task(on_6_12: lab.Checks, kernel: str) -> None:
    assert on_6_12[kernel] == all_held()


@pytest.mark.parametrize("kernel", ("base", *RIGHT))
def test_newer_kernels_freeze_and_thaw_every_task(on_newer: lab.Checks, kernel: str) -> None:
    assert on_newer[kernel] == all_held()


@pytest.mark.parametrize("kernel", CAUGHT_BY)
def test_a_freezer_that_is_wrong_is_caught(on_6_12: lab.Checks, kernel: str) -> None:
    assert lab.failed(on_6_12, kernel) >= CAUGHT_BY[kernel]


def all_held() -> dict[str, list[bool]]:
    """Every invariant that the workload declares, held in every repetition. None may be missing."""
    return {name: [True] * REPETITIONS for name in load_workload("freezer_states").invariants}
