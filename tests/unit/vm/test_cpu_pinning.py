"""Which guests are pinned, to one CPU of the host or to cores of their own."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from kteardown.model.record import Placed
from kteardown.vm.cpu_pinning import Cpu, huge_pages_reserved, memory_words, pinned, placed
from kteardown.vm.job import BootJob
from unit.vm.test_host_watch import put
from unit.vm.test_qemu_command import JOB

EXACT = replace(JOB, acceleration="icount", cpus=2)


def test_guests_are_distributed_evenly_over_the_cpus() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    with ExitStack() as running:
        prefixes = [running.enter_context(pinned(EXACT)) for _ in range(2 * len(allowed))]
    cpus = [int(where.prefix[-1]) for where in prefixes]
    assert sorted(cpus[: len(allowed)]) == sorted(cpus[len(allowed) :]) == allowed
    with pinned(EXACT) as again:
        assert again.prefix == ("taskset", "--cpu-list", str(cpus[0]))


@pytest.mark.parametrize("job", [replace(EXACT, cpus=1), replace(EXACT, acceleration="mttcg")])
def test_other_guests_are_not_pinned(job: BootJob) -> None:
    with pinned(job) as where:
        assert where.prefix == ()
        assert where.job == job
        assert where.placed is None


KVM = replace(JOB, acceleration="kvm", cpus=1, memory_mb=128)


def test_under_kvm_a_guest_without_enough_cores_runs_anywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kteardown.vm.cpu_pinning.usable_cpus", lambda: [Cpu(0, (0,), 0)])
    with pinned(KVM) as where:
        assert (where.prefix, where.job) == ((), KVM)
        assert where.placed is not None
        assert (where.placed.vcpus, where.placed.node) == ((), None)


def test_under_kvm_threads_go_to_their_cpus_and_the_lab_stays_off_them() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        pytest.skip("one CPU")
    placement = Placed(vcpus=(allowed[1],), siblings=(), others=(allowed[0],), node=0)
    seen: list[Sequence[int]] = []
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    assert thread.native_id is not None
    with placed(replace(KVM, on_vcpus=seen.append), placement) as where:
        assert where.prefix == ("taskset", "--cpu-list", str(allowed[0]))
        assert os.sched_getaffinity(0) == {allowed[0]}
        assert where.placed is not None
        assert not where.placed.vcpus
        assert where.job.on_vcpus is not None
        # The second virtual CPU is possible, and never online.
        where.job.on_vcpus([thread.native_id, threading.get_native_id()])
        assert os.sched_getaffinity(thread.native_id) == {allowed[1]}
        assert where.placed.vcpus == (allowed[1],)
    ended.set()
    thread.join()
    assert len(seen) == 1
    assert os.sched_getaffinity(0) == {*allowed}


def test_a_thread_that_has_exited_is_not_pinned() -> None:
    cpu = min(os.sched_getaffinity(0))
    placement = Placed(vcpus=(cpu,), siblings=(), others=(cpu,), node=0)
    with placed(KVM, placement) as where:
        assert where.job.on_vcpus is not None
        where.job.on_vcpus([2**22 + 1])
        assert where.placed is not None
        assert not where.placed.vcpus


def test_huge_pages_are_used_if_there_are_enough(tmp_path: Path) -> None:
    file = "sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages"
    put(tmp_path, file, "64\n")
    assert huge_pages_reserved(128, 1, tmp_path)
    assert not huge_pages_reserved(130, 1, tmp_path)
    assert not huge_pages_reserved(127, 1, tmp_path)
    assert not huge_pages_reserved(128, 0, tmp_path)


def test_what_memory_is_made_of_is_said(tmp_path: Path) -> None:
    assert memory_words(False, tmp_path) == "small pages"
    put(tmp_path, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
    assert memory_words(False, tmp_path).startswith("transparent")
    put(tmp_path, "sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n")
    assert memory_words(False, tmp_path) == "small pages"
    assert memory_words(True, tmp_path) == "reserved pages of 2 MB"
