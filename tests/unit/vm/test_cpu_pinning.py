"""Which guests are pinned to one CPU of the host."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace

import pytest

from kteardown.vm.cpu_pinning import CpuPinning
from kteardown.vm.job import BootJob
from unit.vm.test_qemu_command import JOB

EXACT = replace(JOB, acceleration="icount", cpus=2)


def test_guests_are_distributed_evenly_over_the_cpus() -> None:
    pinning, allowed = CpuPinning(), sorted(os.sched_getaffinity(0))
    with ExitStack() as running:
        prefixes = [running.enter_context(pinning.pinned(EXACT)) for _ in range(2 * len(allowed))]
    cpus = [int(prefix[-1]) for prefix in prefixes]
    assert sorted(cpus[: len(allowed)]) == sorted(cpus[len(allowed) :]) == allowed
    with pinning.pinned(EXACT) as again:
        assert again == ("taskset", "--cpu-list", str(cpus[0]))


@pytest.mark.parametrize("job", [replace(EXACT, cpus=1), replace(EXACT, acceleration="mttcg")])
def test_other_guests_are_not_pinned(job: BootJob) -> None:
    with CpuPinning().pinned(job) as prefix:
        assert prefix == ()
