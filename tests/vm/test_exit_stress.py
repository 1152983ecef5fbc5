"""Processes are killed in every state: all exit with each design of the mass kill; wrong ones are
caught."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from kteardown.inputs.load import load_workload
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

ROUNDS = 2


@dataclass(frozen=True)
class Design:
    """A series and wrong versions of it, each with the invariants by which it is caught."""

    name: str
    series: Path
    caught_by: dict[str, set[str]]
    selfish: str
    """It harms other processes, which the instruction clock shows."""


GATE = Design(
    "exit-gate",
    lab.BROKEN / "exit-gate",
    {
        "exit-gate-broken-lock": {"log_clean"},
        "exit-gate-broken-lost": {"all_gone"},
        "exit-gate-broken-stuck": {"all_gone"},
    },
    "exit-gate-broken-selfish",
)
RELAY = Design(
    "contender-relay",
    lab.BROKEN / "contender-relay",
    {
        "relay-broken-asleep": {"all_gone"},
        "relay-broken-lost": {"all_gone"},
        "relay-broken-stuck": {"all_gone"},
    },
    "relay-broken-selfish",
)


@pytest.fixture(scope="module", params=[GATE, RELAY], ids=lambda design: design.name)
def design(request: pytest.FixtureRequest) -> Design:
    """Return each of the designs."""
    return request.param  # type: ignore[no-any-return]


def kill_all(folder: Path, variants: list[str], clock: str, rounds: int = ROUNDS) -> list[lab.Boot]:
    """Run the workload on base and the variants."""
    return lab.run(
        folder,
        'name = "exit"\nquestion = "Is every process gone?"\nsource = "debian:6.12"\n'
        f"variants = {variants!r}\n"
        '[[workloads]]\nworkload = "exit_stress"\n'
        f'params = {{processes = "100", rounds = "{rounds}"}}\n'
        f"[design]\n{clock}\nwarmup = 0\nrepetitions = 1\n",
        guests_fail=True,
    )


@pytest.fixture(scope="module")
def checks(design: Design, tmp_path_factory: pytest.TempPathFactory) -> lab.Checks:
    """The checks of every kernel, on the wall clock: two CPUs really run at once."""
    made = tmp_path_factory.mktemp("series")
    wrong = [lab.on_top(made, design.series, name) for name in design.caught_by]
    boots = kill_all(tmp_path_factory.mktemp("exit"), [str(design.series), *wrong], lab.WALL)
    for boot in boots:
        assert boot.kernel in design.caught_by or boot.outcome == "ok", boot.detail
    return lab.checks(boots)


def test_every_process_exits_and_nothing_waits_for_ever(checks: lab.Checks, design: Design) -> None:
    times = {"event_gets_through": 1, "no_task_starves": 1, "log_clean": 2}
    expected = {
        name: [True] * times.get(name, ROUNDS) for name in load_workload("exit_stress").invariants
    }
    assert checks["base"] == expected
    assert checks[design.name] == expected


def test_a_wrong_design_is_caught(checks: lab.Checks, design: Design) -> None:
    for kernel, invariants in design.caught_by.items():
        assert lab.failed(checks, kernel) >= invariants, kernel


def test_running_tasks_get_their_events_and_no_group_starves(
    tmp_path: Path, design: Design
) -> None:
    """On this clock the killed processes are not gone before they can delay another process."""
    variants = [str(design.series), lab.on_top(tmp_path, design.series, design.selfish)]
    boots = kill_all(tmp_path, variants, lab.INSTRUCTIONS, rounds=1)
    for kernel in ("base", design.name):
        assert not lab.wrong(boots, kernel)
        assert {"event_gets_through", "no_task_starves"} <= set(lab.checks(boots)[kernel])
    assert "event_gets_through" in lab.failed(lab.checks(boots), design.selfish)
