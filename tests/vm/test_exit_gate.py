"""Processes killed in every state: the shipped series loses none of them, wrong ones are caught."""

from __future__ import annotations

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


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> lab.Checks:
    """The checks of every kernel. The wall clock: there two CPUs really run at once."""
    variants = ["exit-gate", *(str(lab.BROKEN / name) for name in CAUGHT_BY)]
    boots = lab.run(
        tmp_path_factory.mktemp("exit"),
        'name = "exit"\nquestion = "Is every process gone?"\nsource = "debian:6.12"\n'
        f"variants = {variants!r}\nconfig = {lab.DEBUGGING!r}\n"
        f'[[workloads]]\nworkload = "exit_stress"\nparams = {{processes = "100", rounds = "{ROUNDS}"}}\n'
        '[design]\nclock = "wall"\nboots = 1\nwarmup = 0\nrepetitions = 1\n',
        guests_fail=True,
    )
    for boot in boots:
        assert boot.kernel in CAUGHT_BY or boot.outcome == "ok", boot.detail
    return lab.checks(boots)


@pytest.mark.parametrize("kernel", ("base", "exit-gate"))
def test_every_process_goes_and_nothing_waits_for_ever(checks: lab.Checks, kernel: str) -> None:
    once = {"log_clean"}
    expected = {
        name: [True] * (1 if name in once else ROUNDS) for name in load_workload("exit_stress").invariants
    }
    assert checks[kernel] == expected


@pytest.mark.parametrize("kernel", CAUGHT_BY)
def test_a_gate_that_is_wrong_is_caught(checks: lab.Checks, kernel: str) -> None:
    assert lab.failed(checks, kernel) >= CAUGHT_BY[kernel]
