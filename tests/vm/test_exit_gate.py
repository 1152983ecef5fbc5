"""Processes are killed in every state: with the shipped series all exit, and wrong series are caught."""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.inputs.load import load_workload
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

ROUNDS = 2
CAUGHT_BY = {
    "exit-gate-broken-lock": {"log_clean"},
    "exit-gate-broken-lost": {"all_gone"},
    "exit-gate-broken-stuck": {"all_gone"},
}
SELFISH = "exit-gate-broken-selfish"
"""It harms other processes, which the instruction clock shows."""


def kill_all(folder: Path, variants: list[str], design: str, rounds: int = ROUNDS) -> list[lab.Boot]:
    """Run the workload on base and the variants."""
    return lab.run(
        folder,
        'name = "exit"\nquestion = "Is every process gone?"\nsource = "debian:6.12"\n'
        f"variants = {variants!r}\n"
        f'[[workloads]]\nworkload = "exit_stress"\nparams = {{processes = "100", rounds = "{rounds}"}}\n'
        f"[design]\n{design}\nwarmup = 0\nrepetitions = 1\n",
        guests_fail=True,
    )


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> lab.Checks:
    """The checks of every kernel, on the wall clock: two CPUs really run at once."""
    series = tmp_path_factory.mktemp("series")
    variants = ["exit-gate", *(lab.on_top(series, "exit-gate", name) for name in CAUGHT_BY)]
    boots = kill_all(tmp_path_factory.mktemp("exit"), variants, lab.WALL)
    for boot in boots:
        assert boot.kernel in CAUGHT_BY or boot.outcome == "ok", boot.detail
    return lab.checks(boots)


@pytest.mark.parametrize("kernel", ("base", "exit-gate"))
def test_every_process_exits_and_nothing_waits_for_ever(checks: lab.Checks, kernel: str) -> None:
    times = {"event_gets_through": 1, "no_task_starves": 1, "log_clean": 2}
    expected = {name: [True] * times.get(name, ROUNDS) for name in load_workload("exit_stress").invariants}
    assert checks[kernel] == expected


def test_running_tasks_get_their_events_and_no_group_starves(tmp_path: Path) -> None:
    """On this clock the killed processes are not gone before they can delay another process."""
    variants = ["exit-gate", lab.on_top(tmp_path, "exit-gate", SELFISH)]
    boots = kill_all(tmp_path, variants, lab.INSTRUCTIONS, rounds=1)
    of_both = {"event_gets_through", "no_task_starves"}
    for kernel in ("base", "exit-gate"):
        assert not lab.wrong(boots, kernel)
        assert of_both <= set(lab.checks(boots)[kernel])
    assert lab.failed(lab.checks(boots), SELFISH) == of_both


@pytest.mark.parametrize("kernel", CAUGHT_BY)
def test_a_gate_that_is_wrong_is_caught(checks: lab.Checks, kernel: str) -> None:
    assert lab.failed(checks, kernel) >= CAUGHT_BY[kernel]
