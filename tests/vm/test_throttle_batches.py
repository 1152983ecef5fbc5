"""Tasks are unthrottled in batches: interrupts are off for one batch only, and no batch is lost.

The wrong series makes each task a batch, so that small groups need many. The command line of the
kernel chooses a mistake.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from vm import lab

pytestmark = [pytest.mark.vm, pytest.mark.build, pytest.mark.full]

SERIES = "sched-unthrottle-batches"
BROKEN = "batches-broken"
"""The shipped series with one more patch."""
MISTAKES = ("empty",)


def storms(folder: Path, variant: str, *kernel_args: str) -> list[lab.Boot]:
    """Three storms; in the first one a CPU goes offline and online."""
    return lab.run(
        folder,
        'name = "batches"\nquestion = "Are all batches enqueued?"\nsource = "debian:7.2"\n'
        f'variants = [{variant!r}]\n[[workloads]]\nworkload = "throttle_stress"\n'
        'params = {only = "storm", rounds = "3", storm_ms = "3000"}\n'
        f"[machine]\nkernel_args = {list(kernel_args)!r}\n"
        f"[design]\n{lab.WALL}\nwarmup = 0\nrepetitions = 1\n",
        guests_fail=True,
    )


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> str:
    return lab.on_top(tmp_path_factory.mktemp("series"), SERIES, BROKEN)


def test_interrupts_are_off_for_one_batch(tmp_path: Path) -> None:
    boots = lab.run(
        tmp_path,
        'name = "batches"\nquestion = "Are interrupts on between batches?"\nsource = "debian:7.2"\n'
        f'variants = ["{SERIES}"]\n[[workloads]]\nworkload = "quota"\nparams.tasks = [500]\n'
        'params.on = ["one"]\nparams.periods = [10]\nparams.irq_timer_us = [20]\n'
        f"[machine]\ncpus = 1\n[design]\n{lab.INSTRUCTIONS}\nwarmup = 0\nrepetitions = 1\n",
    )
    off = {boot.kernel: boot.trials[0].samples["irqs_off_ns"][0] for boot in boots}
    for boot in boots:
        assert all(all(oks) for oks in boot.trials[0].checks.values())
    assert off[SERIES] < off["base"] / 5


def test_no_task_is_lost_if_each_task_is_a_batch(tmp_path: Path, broken: str) -> None:
    boots = storms(tmp_path, broken, "batches_broken=one", "nohz=off")
    assert {"no_task_throttled", "all_gone", "log_clean"} <= set(lab.checks(boots)[BROKEN])
    assert not lab.wrong(boots, BROKEN)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_series_that_is_wrong_is_caught(tmp_path: Path, broken: str, mistake: str) -> None:
    boots = storms(tmp_path, broken, f"batches_broken={mistake}", "nohz=off")
    (boot,) = (boot for boot in boots if boot.kernel == BROKEN)
    assert boot.outcome != "ok" or lab.failed(lab.checks(boots), BROKEN)
