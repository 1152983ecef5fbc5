"""Which guests are pinned, to one CPU of the host or to cores of their own."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kteardown.model.record import Placed
from kteardown.vm.cpu_pinning import (
    Cpu,
    cpu_list,
    huge_pages_reserved,
    memory_words,
    pinned,
    place_guest,
    placed,
    usable,
    usable_cpus,
)
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


@st.composite
def hosts(draw: st.DrawFn) -> list[Cpu]:
    """Hosts of up to four nodes with cores of one, two or four CPUs, of which some may be used."""
    cpus, number = [], 0
    for node in range(draw(st.integers(1, 4))):
        for _ in range(draw(st.integers(0, 5))):
            core = tuple(range(number, number := number + draw(st.sampled_from([1, 2, 4]))))
            isolated, capacity = draw(st.booleans()), draw(st.sampled_from([512, 1024]))
            mine = draw(st.sets(st.sampled_from(core)))
            cpus += [Cpu(cpu, core, node, isolated, capacity) for cpu in mine]
    return draw(st.permutations(cpus))


@given(hosts(), st.integers(1, 6))
def test_a_guest_has_cores_of_its_own_on_one_node_with_free_siblings(
    cpus: list[Cpu], vcpus: int
) -> None:
    known = {cpu.number: cpu for cpu in cpus}
    by_node = {
        node: {cpu.core for cpu in cpus if cpu.node == node} for node in {cpu.node for cpu in cpus}
    }
    found = place_guest(cpus, vcpus)
    assert (found is None) == all(len(cores) <= vcpus for cores in by_node.values())
    if found is None:
        return
    assert len(found.vcpus) == vcpus
    cores = {known[cpu].core for cpu in found.vcpus}
    assert len(cores) == vcpus
    assert {known[cpu].node for cpu in (*found.vcpus, *found.others)} == {found.node}
    assert {*found.siblings} == {cpu for core in cores for cpu in core} - {*found.vcpus}
    assert found.others
    assert {*found.others}.isdisjoint({*found.vcpus, *found.siblings})


@given(hosts(), st.integers(1, 6))
def test_the_choice_does_not_depend_on_the_order(cpus: list[Cpu], vcpus: int) -> None:
    assert place_guest(cpus, vcpus) == place_guest(sorted(cpus, key=lambda cpu: cpu.number), vcpus)


def at(
    vcpus: tuple[int, ...], siblings: tuple[int, ...], others: tuple[int, ...], node: int
) -> Placed:
    return Placed(vcpus=vcpus, siblings=siblings, others=others, node=node)


def cores(count: int, **fields: dict[int, object]) -> list[Cpu]:
    return [
        Cpu(n, (n,), 0, **{name: values[n] for name, values in fields.items() if n in values})  # type: ignore[arg-type]
        for n in range(count)
    ]


def test_isolated_cpus_come_first_then_fast_ones_and_the_first_core_last() -> None:
    assert place_guest(cores(4), 1) == at((1,), (), (0, 2, 3), 0)
    assert place_guest(cores(4, capacity={1: 500, 2: 500}), 1) == at((3,), (), (0, 1, 2), 0)
    isolated = cores(4, isolated={2: True, 3: True})
    # The isolated CPU that is left is not for QEMU's other threads.
    assert place_guest(isolated, 1) == at((2,), (), (0, 1), 0)
    assert place_guest(isolated, 2) == at((2, 3), (), (0, 1), 0)
    assert place_guest(cores(4), 4) is None


def test_without_isolated_cpus_the_affinity_decides() -> None:
    assert usable({0, 1}, {0, 1, 2, 3}, set(), {0, 1, 2, 3}) == {0, 1}


def test_isolated_cpus_are_used_unless_this_process_was_restricted() -> None:
    online, isolated = {0, 1, 2, 3}, {2, 3}
    assert usable({0, 1}, online, isolated, online) == online
    assert usable({0, 1}, online, isolated, {0, 1, 2}) == {0, 1, 2}
    assert usable({0}, online, isolated, online) == {0}


@given(st.sets(st.integers(0, 300)))
def test_lists_of_cpus_are_parsed(cpus: set[int]) -> None:
    assert cpu_list(",".join(map(str, sorted(cpus))) + "\n") == cpus


def test_ranges_are_parsed_and_garbage_is_not() -> None:
    assert cpu_list("0-2,8,10-11\n") == {0, 1, 2, 8, 10, 11}
    assert cpu_list("") == cpu_list("x") == set()


@pytest.fixture
def two_sockets(tmp_path: Path) -> Path:
    """Two sockets of four cores with SMT, siblings eight apart; CPUs 3 and 11 are offline."""
    cpu = "sys/devices/system/cpu"
    put(tmp_path, f"{cpu}/online", "0-2,4-10,12-15\n")
    put(tmp_path, f"{cpu}/isolated", "\n")
    for number in range(16):
        put(
            tmp_path,
            f"{cpu}/cpu{number}/topology/core_cpus_list",
            f"{number % 8},{number % 8 + 8}\n",
        )
    put(tmp_path, "sys/devices/system/node/node0/cpulist", "0-2,8-10\n")
    put(tmp_path, "sys/devices/system/node/node1/cpulist", "4-7,12-15\n")
    put(tmp_path, "proc/self/cgroup", "0::/lab\n")
    put(tmp_path, "sys/fs/cgroup/lab/cpuset.cpus.effective", "0-15\n")
    return tmp_path


ALL = {*range(16)} - {3, 11}


def test_two_sockets_with_smt_and_offline_cpus(two_sockets: Path) -> None:
    cpus = usable_cpus(two_sockets, ALL)
    assert {cpu.number for cpu in cpus} == ALL
    assert next(cpu for cpu in cpus if cpu.number == 9) == Cpu(9, (1, 9), 0)
    assert place_guest(cpus, 2) == at((1, 2), (9, 10), (0, 8), 0)
    # Three cores and one to spare are only on the second socket.
    assert place_guest(cpus, 3) == at((4, 5, 6), (12, 13, 14), (7, 15), 1)
    assert place_guest(cpus, 4) is None


def test_an_affinity_of_a_few_cpus_leaves_too_few_cores(two_sockets: Path) -> None:
    assert place_guest(usable_cpus(two_sockets, {1, 9}), 1) is None
    # The siblings belong to another user, and are free of this guest all the same.
    assert place_guest(usable_cpus(two_sockets, {4, 5}), 1) == at((4,), (12,), (5,), 1)


def test_isolated_cpus_of_the_cpuset_are_used(two_sockets: Path) -> None:
    put(two_sockets, "sys/devices/system/cpu/isolated", "5-7,13-15\n")
    put(two_sockets, "sys/fs/cgroup/lab/cpuset.cpus.effective", "0-6,8-14\n")
    shared = ALL - {5, 6, 7, 13, 14, 15}
    assert place_guest(usable_cpus(two_sockets, shared), 2) == at((5, 6), (13, 14), (4, 12), 1)


def test_a_cpuset_of_version_1_is_read(two_sockets: Path) -> None:
    put(two_sockets, "proc/self/cgroup", "3:cpuset:/box\n0::/\n")
    put(two_sockets, "sys/fs/cgroup/cpuset/box/cpuset.effective_cpus", "0-5\n")
    put(two_sockets, "sys/devices/system/cpu/isolated", "5-7\n")
    assert {cpu.number for cpu in usable_cpus(two_sockets, ALL - {5, 6, 7})} == ALL - {6, 7}


def test_a_host_without_sysfs_has_no_cpus(tmp_path: Path) -> None:
    assert usable_cpus(tmp_path, {0, 1}) == []
    assert place_guest([], 1) is None


def test_this_host_is_read() -> None:
    assert all(cpu.number in cpu.core for cpu in usable_cpus())
