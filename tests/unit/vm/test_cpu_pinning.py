"""Which guests are kept on one CPU of the host."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace

import pytest

from kteardown.vm.cpu_pinning import Cores
from kteardown.vm.job import BootJob
from unit.vm.test_qemu_command import JOB

EXACT = replace(JOB, acceleration="icount", cpus=2)


def test_guests_side_by_side_are_on_different_cpus_while_there_are_any() -> None:
    cores, allowed = Cores(), sorted(os.sched_getaffinity(0))
    with ExitStack() as running:
        placed = [running.enter_context(cores.place(EXACT)) for _ in range(2 * len(allowed))]
    cpus = [int(words[-1]) for words in placed]
    assert sorted(cpus[: len(allowed)]) == sorted(cpus[len(allowed) :]) == allowed
    with cores.place(EXACT) as again:
        assert again == ("taskset", "--cpu-list", str(cpus[0]))


@pytest.mark.parametrize("job", [replace(EXACT, cpus=1), replace(EXACT, acceleration="mttcg")])
def test_where_nothing_depends_on_it_a_guest_may_roam(job: BootJob) -> None:
    with Cores().place(job) as words:
        assert words == ()
