"""Throttled tasks in every situation: base and the series hold all invariants, a wrong series does
not.

The wrong series has several mistakes. The command line of the kernel chooses one, so that all of
them need one build only.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kteardown.inputs.load import load_workload
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

SERIES = "sched-task-throttle"
BROKEN = "throttle-broken"
"""The shipped series with one more patch. Each mistake of that patch is found by one part of the
workload."""
CAUGHT_BY = {
    "debt": ("usage", {"quota_kept"}),
    "clock": ("load_follows", {"load_follows"}),
    "below": ("nested", {"nested"}),
    "order": ("shared", {"shared"}),
    "worker": ("polled", {"polled"}),
    "exiting": ("exits", {"exits"}),
    "hashed": ("hashed", {"hashed"}),
    "idle": ("idle", {"idle"}),
    "execs": ("execs", {"execs"}),
}
NOT_ON_BASE = {"hashed"}
"""6.12 stops a run queue with a worker of io_uring that has the bit of a file for which others
wait."""


def stress(
    folder: Path, variant: str, design: str, params: str, *kernel_args: str
) -> list[lab.Boot]:
    """Run the workload on base and a variant.

    On the wall clock a busy host takes some of a quota away and never adds to it; on the
    instruction clock every cgroup gets all of its quota.
    """
    return lab.run(
        folder,
        'name = "throttle"\nquestion = "Are throttled tasks held, and never lost?"\n'
        'source = "debian:6.12"\n'
        f"variants = [{variant!r}]\n"
        f'[[workloads]]\nworkload = "throttle_stress"\nparams = {{{params}}}\n'
        f"[machine]\nkernel_args = {list(kernel_args)!r}\n"
        f"[design]\n{design}\nwarmup = 0\nrepetitions = 1\n",
        guests_fail=True,
    )


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Boot]:
    """Base and the shipped series: all parts of the workload."""
    params = 'periods = "20", least_permille = "500", rounds = "2", storm_ms = "4000", plug = "off"'
    return stress(tmp_path_factory.mktemp("throttle"), SERIES, lab.WALL, params)


@pytest.fixture(scope="module")
def usage(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Boot]:
    """Base and the shipped series: how much of its quota each cgroup uses."""
    return stress(
        tmp_path_factory.mktemp("usage"), SERIES, lab.INSTRUCTIONS, 'only = "usage", periods = "30"'
    )


@pytest.fixture(scope="module")
def limits(tmp_path_factory: pytest.TempPathFactory) -> list[lab.Boot]:
    """Base and the shipped series: limits of time, on the clock on which the host's load changes
    nothing."""
    only = f"only = {sorted(lab.TIMED)!r}"
    return stress(tmp_path_factory.mktemp("limits"), SERIES, lab.INSTRUCTIONS, only)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> str:
    return lab.on_top(tmp_path_factory.mktemp("series"), SERIES, BROKEN)


@pytest.mark.parametrize("kernel", ("base", SERIES))
def test_throttled_tasks_are_held_and_never_lost(everything: list[lab.Boot], kernel: str) -> None:
    (boot,) = (boot for boot in everything if boot.kernel == kernel)
    assert boot.outcome == "ok", boot.detail
    found = lab.checks(everything)
    assert set(found[kernel]) == set(load_workload("throttle_stress").invariants)
    assert lab.failed(found, kernel) <= lab.TIMED, lab.wrong(everything, kernel)


def test_no_task_is_lost_in_a_storm_in_which_a_cpu_goes_offline(tmp_path: Path) -> None:
    """Not on base: its throttled run queues hold RCU readers, for which a CPU that goes offline
    waits."""
    boots = stress(tmp_path, SERIES, lab.WALL, 'only = "storm", rounds = "1", storm_ms = "4000"')
    (boot,) = (boot for boot in boots if boot.kernel == SERIES)
    assert boot.outcome == "ok", boot.detail
    assert {"storm_ends", "all_gone", "log_clean"} <= set(lab.checks(boots)[SERIES])
    assert not lab.wrong(boots, SERIES)


@pytest.mark.parametrize("kernel", ("base", SERIES))
def test_a_quota_is_used_up_and_kept(usage: list[lab.Boot], kernel: str) -> None:
    assert {"quota_used", "quota_kept"} < set(lab.checks(usage)[kernel])
    assert not lab.wrong(usage, kernel)


@pytest.mark.parametrize("kernel", ("base", SERIES))
def test_what_is_long_in_the_kernel_is_limited_too(limits: list[lab.Boot], kernel: str) -> None:
    found = lab.checks(limits)
    assert set(found[kernel]) >= lab.TIMED
    allowed = NOT_ON_BASE if kernel == "base" else set()
    assert lab.failed(found, kernel) <= allowed, lab.wrong(limits, kernel)


@pytest.mark.parametrize("mistake", CAUGHT_BY)
def test_a_series_that_is_wrong_is_caught(tmp_path: Path, broken: str, mistake: str) -> None:
    part, expected = CAUGHT_BY[mistake]
    design = lab.INSTRUCTIONS if part in ("usage", "shared", *lab.TIMED) else lab.WALL
    params = f'only = "{part}", periods = "20"'
    boots = stress(tmp_path / mistake, broken, design, params, f"throttle_broken={mistake}")
    found = lab.checks(boots)
    assert lab.failed(found, "base") <= NOT_ON_BASE, lab.wrong(boots, "base")
    assert lab.failed(found, BROKEN) & expected
