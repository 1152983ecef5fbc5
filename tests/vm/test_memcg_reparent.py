"""Memory of a removed cgroup is swapped in by others: who is charged, and what the limit of the
cgroup above does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

SERIES = "memcg-swap-reparent"
SCRIPTS = Path(__file__).parents[1] / "data" / "memcg"
PAGES = 4096
LIMIT = PAGES // 2
SHARED = 2048
SLACK = 64
"""Pages of the processes themselves: stacks, page tables that are charged to the same cgroup."""
ENOMEM = 12
SIGALRM = 14
"""Ends a task that tries for ever to get its page."""

Trials = dict[tuple[str, str], dict[str, float]]
"""By kernel and value of the parameter: the metrics."""


def measure(folder: Path, workload: str, params: str, parameter: str = "") -> Trials:
    """One boot of base and of the series for each point, on the instruction clock."""
    shutil.copytree(SCRIPTS, folder / "workloads")
    boots = lab.run(
        folder,
        'name = "reparent"\nquestion = "Who is charged?"\nsource = "debian:7.3"\n'
        f"variants = {[SERIES]!r}\n"
        f'[[workloads]]\nworkload = "{workload}"\nparams = {{{params}}}\n'
        '[machine]\ncpus = 1\nkernel_args = ["noapictimer"]\n'
        f"[design]\n{lab.INSTRUCTIONS}\nwarmup = 0\nrepetitions = 1\n",
    )
    found: Trials = {}
    for boot in boots:
        for trial in boot.trials:
            assert trial.status == "ok", trial.detail
            key = boot.kernel, str(trial.params.get(parameter, ""))
            found[key] = {name: values[0] for name, values in trial.samples.items()}
    return found


@pytest.fixture(scope="module")
def limits(tmp_path_factory: pytest.TempPathFactory) -> Trials:
    params = f'PAGES = [{PAGES}], LIMIT = ["room", "task", "full", "fault"]'
    return measure(tmp_path_factory.mktemp("limits"), "removed_limit", params, "LIMIT")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Trials:
    return measure(tmp_path_factory.mktemp("shared"), "removed_cow", f"PAGES = [{SHARED}]")


@pytest.mark.parametrize("limit", ("room", "task", "full", "fault"))
def test_only_the_series_charges_the_ancestor(limits: Trials, limit: str) -> None:
    base, series = limits["base", limit], limits[SERIES, limit]
    assert base["dying_count"] == 1
    assert base["upper_read_count"] == 0
    assert base["other_read_count"] >= PAGES
    assert series["dying_count"] == 0
    assert series["other_read_count"] <= 1
    assert max(series["upper_read_count"], series["upper_off_count"]) <= LIMIT


def test_base_reads_all_and_can_turn_the_swap_off(limits: Trials) -> None:
    for limit in ("room", "task", "full", "fault"):
        base = limits["base", limit]
        assert base["errors_count"] == base["killed_by_count"] == base["swapoff_errno_count"] == 0


def test_an_ancestor_that_can_swap_is_reclaimed_from(limits: Trials) -> None:
    room = limits[SERIES, "room"]
    assert room["errors_count"] == 0
    # The swap that is turned off cannot take what the limit leaves no room for.
    assert room["swapoff_errno_count"] == ENOMEM
