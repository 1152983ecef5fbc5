from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from kteardown.door import Entry
from kteardown.errors import InputError
from kteardown.model.arch import Arch
from kteardown.vm import qemu_command as module
from kteardown.vm.job import Acceleration, BootJob
from kteardown.vm.qemu_command import kernel_arguments

JOB = BootJob(
    image=Path("/k/bzImage"),
    initramfs=Path("/k/initramfs"),
    arch="x86_64",
    acceleration="icount",
    cpus=2,
    memory_mb=256,
    seed=7,
    console=Entry(Path("/r/console,1.txt")),
    silence_s=60,
)


def qemu_command(job: BootJob) -> list[str]:
    return module.qemu_command(job, records=8, monitor=9)


def after(command: list[str], option: str) -> str:
    return command[command.index(option) + 1]


def test_the_instruction_clock_does_not_depend_on_the_host() -> None:
    command = qemu_command(JOB)
    assert after(command, "-icount") == "shift=0,sleep=off"
    assert after(command, "-rtc") == "base=2026-01-01,clock=vm"
    assert after(command, "-cpu") == "max,-rdrand,-rdseed"
    assert after(command, "-seed") == "7"
    assert "ioeventfd=off" in next(word for word in command if "virtio-serial-pci" in word)


@pytest.mark.parametrize("acceleration", ["mttcg", "kvm"])
def test_the_wall_clock_counts_no_instructions(acceleration: Acceleration) -> None:
    command = qemu_command(replace(JOB, acceleration=acceleration))
    assert "-icount" not in command
    assert "-rtc" not in command


@pytest.mark.parametrize("arch", ["x86_64", "arm64"])
@pytest.mark.parametrize("acceleration", ["icount", "mttcg", "kvm"])
def test_no_guest_has_a_network(arch: Arch, acceleration: Acceleration) -> None:
    command = qemu_command(replace(JOB, arch=arch, acceleration=acceleration))
    assert "-nodefaults" in command
    assert not any("net" in word.split(",")[0] or word == "-nic" for word in command)


def test_only_some_of_the_possible_cpus_come_online() -> None:
    job = replace(JOB, possible_cpus=32)
    assert after(qemu_command(job), "-smp") == "32"
    assert "maxcpus=2" in kernel_arguments(job)


@pytest.mark.parametrize("possible", [None, 2])
def test_all_cpus_come_online_if_no_more_are_possible(possible: int | None) -> None:
    job = replace(JOB, possible_cpus=possible)
    assert after(qemu_command(job), "-smp") == "2"
    assert not any(word.startswith("maxcpus") for word in kernel_arguments(job))


def test_fewer_possible_than_online_cpus_are_an_error() -> None:
    with pytest.raises(InputError, match="cpus = 2 is more than 1, the number of possible CPUs"):
        qemu_command(replace(JOB, possible_cpus=1))


def test_the_jobs_own_kernel_arguments_come_last() -> None:
    assert kernel_arguments(replace(JOB, kernel_args=("loglevel=8", "x=1")))[-2:] == [
        "loglevel=8",
        "x=1",
    ]


def test_the_seed_is_an_argument_of_the_kernel() -> None:
    assert "kteardown.seed=7" in kernel_arguments(JOB)


def test_a_comma_in_a_path_is_escaped() -> None:
    assert "file,id=console,path=/r/console,,1.txt" in qemu_command(JOB)


def test_a_plugin_has_its_arguments() -> None:
    assert "-plugin" not in qemu_command(JOB)
    words = qemu_command(replace(JOB, plugin=("file=/p/a,b.so", "out=/o")))
    assert words[words.index("-plugin") + 1] == "file=/p/a,,b.so,out=/o"


def test_each_architecture_has_its_console() -> None:
    assert "console=ttyS0" in kernel_arguments(JOB)
    assert "console=ttyAMA0" in kernel_arguments(replace(JOB, arch="arm64"))
    assert "no_timer_check" not in kernel_arguments(replace(JOB, arch="arm64"))


def test_memory_is_divided_among_nodes_and_cpus_are_assigned_round_robin() -> None:
    words = qemu_command(replace(JOB, memory_mb=301, possible_cpus=4, numa_nodes=2))
    assert words[words.index("-smp") + 1] == "4,sockets=4,cores=1,threads=1"
    nodes = [word for before, word in pairwise(words) if before == "-numa"]
    assert nodes == [
        "node,nodeid=0,memdev=memory0,cpus=0,cpus=2",
        "node,nodeid=1,memdev=memory1,cpus=1,cpus=3",
    ]
    memory = [word for before, word in pairwise(words) if before == "-object"]
    assert [word.rsplit("=")[-1] for word in memory] == ["150M", "151M"]


def test_a_node_without_a_cpu_is_an_error() -> None:
    with pytest.raises(
        InputError, match=r"machine\.numa_nodes = 3 is more than 2, the number of possible CPUs"
    ):
        qemu_command(replace(JOB, numa_nodes=3))


def test_huge_pages_are_the_memory_of_a_guest_without_nodes() -> None:
    command = qemu_command(replace(JOB, acceleration="kvm", huge_pages=True))
    assert after(command, "-object").startswith("memory-backend-memfd,id=ram,size=256M,hugetlb=on")
    assert after(command, "-machine") == "memory-backend=ram"
    assert "memory-backend=ram" not in qemu_command(replace(JOB, acceleration="kvm"))


def test_under_kvm_a_guest_is_never_migrated() -> None:
    assert after(qemu_command(replace(JOB, acceleration="kvm")), "-cpu") == "host,migratable=no"
    arm = replace(JOB, arch="arm64", acceleration="kvm")
    assert after(qemu_command(arm), "-cpu") == "host"


def one_cpu(**fields: object) -> BootJob:
    return replace(JOB, cpus=1, **fields)  # type: ignore[arg-type]


def test_a_guest_with_one_possible_cpu_does_not_calibrate_the_apic_timer() -> None:
    assert "noapictimer" in kernel_arguments(one_cpu())


@pytest.mark.parametrize("fields", [{"cpus": 2}, {"possible_cpus": 32}])
def test_a_guest_with_several_possible_cpus_keeps_the_apic_timer(fields: dict[str, int]) -> None:
    # Without it, only one CPU has high-resolution timers.
    assert "noapictimer" not in kernel_arguments(replace(one_cpu(), **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize("acceleration", ["mttcg", "kvm"])
def test_the_wall_clock_keeps_the_apic_timer(acceleration: Acceleration) -> None:
    assert "noapictimer" not in kernel_arguments(one_cpu(acceleration=acceleration))


@pytest.mark.parametrize(
    ("fields", "skipped"),
    [({}, True), ({"has_own_programs": True}, False), ({"acceleration": "kvm"}, False)],
)
def test_a_script_can_read_the_formats_of_tracepoints(
    fields: dict[str, object], skipped: bool
) -> None:
    assert ("initcall_blacklist=trace_eval_init" in kernel_arguments(one_cpu(**fields))) is skipped
