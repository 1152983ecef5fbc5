"""Processes killed in every state: the shipped series loses none of them, wrong ones are caught."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.spec.load import load_workload
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build]

ROUNDS = 2
CAUGHT_BY = {
    "exit-gate-broken-lock": {"log_clean"},
    "exit-gate-broken-lost": {"all_gone"},
    "exit-gate-broken-stuck": {"all_gone"},
}


def kill_all(folder: Path, variants: list[str], design: str, rounds: int = ROUNDS) -> list[lab.Boot]:
    """The stress on base and the variants."""
    return lab.run(
        folder,
        'name = "exit"\nquestion = "Is every process gone?"\nsource = "debian:6.12"\n'
        f"variants = {variants!r}\nconfig = {lab.DEBUGGING!r}\n"
        f'[[workloads]]\nworkload = "exit_stress"\nparams = {{processes = "100", rounds = "{rounds}"}}\n'
        f"[design]\n{design}\nwarmup = 0\nrepetitions = 1\n",
        guests_fail=True,
    )


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> lab.Checks:
    """The checks of every kernel. The wall clock: there two CPUs really run at once."""
    variants = ["exit-gate", *(str(lab.BROKEN / name) for name in CAUGHT_BY)]
    boots = kill_all(tmp_path_factory.mktemp("exit"), variants, lab.WALL)
    for boot in boots:
        assert boot.kernel in CAUGHT_BY or boot.outcome == "ok", boot.detail
    return lab.checks(boots)


@pytest.mark.parametrize("kernel", ("base", "exit-gate"))
def test_every_process_goes_and_nothing_waits_for_ever(checks: lab.Checks, kernel: str) -> None:
    times = {"event_gets_through": 1, "nobody_starves": 1, "log_clean": 2}
    expected = {name: [True] * times.get(name, ROUNDS) for name in load_workload("exit_stress").invariants}
    assert checks[kernel] == expected


def test_the_living_get_their_events_and_no_crowd_starves(tmp_path: Path) -> None:
    """On this clock a crowd is not gone before it could be in anybody's way."""
    boots = kill_all(tmp_path, ["exit-gate"], lab.INSTRUCTIONS, rounds=1)
    for kernel in ("base", "exit-gate"):
        assert not lab.wrong(boots, kernel)
        assert {"event_gets_through", "nobody_starves"} <= set(lab.checks(boots)[kernel])


@pytest.mark.parametrize("kernel", CAUGHT_BY)
def test_a_gate_that_is_wrong_is_caught(checks: lab.Checks, kernel: str) -> None:
    assert lab.failed(checks, kernel) >= CAUGHT_BY[kernel]
