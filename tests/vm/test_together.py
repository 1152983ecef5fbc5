"""All series in one kernel with KASAN and lockdep: every stress test passes.

The series change different parts of the kernel, so one kernel has all that are meant for its
version.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kteardown.inputs.load import load_workload
from kteardown.paths import data_dir
from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

SOURCE = "debian:6.12"
SERIES = (
    "freezer-skip-nofreeze-user",
    "exit-linear/pid",
    "exit-reparent-zombies",
    "memcg-release-percpu",
    "zsmalloc-lockless-free/page",
    "sched-task-throttle",
)
PARAMS = {
    "pgrp_stress": "",
    "wait_stress": 'steps = "500", storm_ms = "300"',
    "uffd_close": "",
    "lock_stress": 'steps = "500"',
    "zsmalloc_stress": 'passes = "1"',
    "freezer_states": "",
    "exit_stress": 'processes = "100", rounds = "2"',
    "memcg_stats": 'rounds = "1", storm_ms = "2000"',
    "throttle_stress": 'periods = "20", least_permille = "500", storm_ms = "2000", plug = "off"',
    "memcg_local": "",
}
"""Each stress test with its parameters: shorter than usual, since this kernel is several times
slower.

``memcg_local`` is the last: after it the memory controller belongs to cgroup version 1, which also
counts swap. 6.12 then warns of an underflow of ``memsw`` or ``kmem`` when a page that was charged
before is given back by a CPU that goes offline (drain_stock()) or for a cgroup that is removed
(drain_obj_stock()).
"""
AT_ONCE = {name: params for name, params in PARAMS.items() if name != "memcg_local"}
"""For two CPUs at once, where nothing may be reported and base is not booted."""
SLOW = {"reads", "long_call"}
"""Limits in periods of the quota. On this kernel two reads at once take 0.6 s of CPU time, which
the group pays for in 60 to 70 periods, so that the limit of 80 is sometimes exceeded.
``test_throttle_stress`` tests them.
"""


def run(
    folder: Path, kernels: str, params_of: dict[str, str], design: str, *kernel_args: str
) -> list[lab.Boot]:
    """Boot each kernel, with every workload of ``params_of``. ``kernels`` are lines of the
    experiment."""
    workloads = "\n".join(
        f'[[workloads]]\nworkload = "{name}"\nparams = {{{params}}}'
        for name, params in params_of.items()
    )
    return lab.run(
        folder,
        f'name = "together"\nquestion = "Do all series together hold?"\n{kernels}\n'
        f"{workloads}\n[machine]\ncpus = 2\nmemory_mb = 2048\nkernel_args = {list(kernel_args)!r}\n"
        f"[design]\n{design}\nwarmup = 0\nrepetitions = 1\n",
        guests_fail=True,
    )


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a series with the patches of all series."""
    made = tmp_path_factory.mktemp("series") / "together"
    made.mkdir()
    for place, name in enumerate(SERIES):
        for patch in (data_dir("series") / name).glob("*.patch"):
            shutil.copyfile(patch, made / f"{place:02}-{patch.name}")
    return str(made)


@pytest.fixture(scope="module")
def boots(together: str, tmp_path_factory: pytest.TempPathFactory) -> list[lab.Boot]:
    """One boot of base and one of all series, with PREEMPT_RT. The two CPUs run in turn."""
    folder = tmp_path_factory.mktemp("together")
    kernels = f'source = "{SOURCE}"\nvariants = ["{together}"]\nconfig = ["kasan", "preempt_rt"]'
    return run(folder, kernels, PARAMS, lab.INSTRUCTIONS)


def test_no_guest_fails(boots: list[lab.Boot]) -> None:
    assert [(boot.kernel, boot.outcome) for boot in boots] == [("base", "ok"), ("together", "ok")]


@pytest.mark.parametrize("workload", PARAMS)
def test_what_holds_on_base_holds_with_all_series(boots: list[lab.Boot], workload: str) -> None:
    failed = {}
    for boot in boots:
        (trial,) = (trial for trial in boot.trials if trial.workload == workload)
        assert set(trial.checks) == set(load_workload(workload).invariants), (
            boot.kernel,
            trial.detail,
        )
        failed[boot.kernel] = {name for name, oks in trial.checks.items() if not all(oks)}
    assert failed["together"] <= failed["base"] | SLOW, lab.wrong(boots, "together")


def test_all_series_hold_with_two_cpus_at_once(together: str, tmp_path: Path) -> None:
    """Without PREEMPT_RT. The kernel is booted twice, and base is not.

    On a busy host ACPI of this kernel needs more than 30 s to look up the interrupts of PCI, and
    gives up. The device of the records then has none, and the guest is silent. So the table of the
    firmware is used.
    """
    kernels = f'source = "patched:{together}@{SOURCE}"\nconfig = ["kasan"]'
    boots = run(tmp_path, kernels, AT_ONCE, lab.WALL, "acpi=noirq")
    assert [(boot.outcome, boot.problems) for boot in boots] == [("ok", [])] * 2
    for trial in (trial for boot in boots for trial in boot.trials):
        assert set(trial.checks) == set(load_workload(trial.workload).invariants), trial.detail
        assert {name for name, oks in trial.checks.items() if not all(oks)} <= lab.TIMED, (
            trial.wrong
        )
    assert [trial.workload for trial in boots[0].trials] == list(AT_ONCE)
