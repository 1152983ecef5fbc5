"""The command line of QEMU for one boot: pure, from the job to the words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kteardown.errors import InputError, MissingError
from kteardown.model.arch import ARCHITECTURES, Arch
from kteardown.vm.job import Acceleration, BootJob

RECORDS_PORT = "kteardown.records"

_ACCELERATOR: dict[Acceleration, tuple[str, ...]] = {
    # One guest instruction is one guest nanosecond, and idle time passes at once. The date, too,
    # must not come from the host.
    "icount": (
        *("-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"),
        *("-rtc", "base=2026-01-01,clock=vm"),
    ),
    "mttcg": ("-accel", "tcg,thread=multi"),
    "kvm": ("-accel", "kvm"),
}

_ARGUMENTS = (
    # The whole console is kept, so a panic brings what loglevel kept off it: bit 5 replays the log.
    *("loglevel=5", "panic=-1", "panic_print=32"),
    # Where the kernel lies must be no difference between two kernels.
    "nokaslr",
    # Registering 512 pseudo terminals of the BSD kind takes 60 ms under emulation; nobody opens one.
    "pty.legacy_count=0",
)


class Channels(NamedTuple):
    """File descriptors that QEMU inherits."""

    records: int
    """The writing end of a pipe."""
    monitor: int
    """A connected stream socket that speaks QMP."""


def qemu_command(job: BootJob, channels: Channels) -> list[str]:
    """The argument vector of QEMU. Raises InputError where ``cpus`` exceeds ``possible_cpus``."""
    if (job.possible_cpus or job.cpus) < job.cpus:
        raise InputError(
            f"machine.possible_cpus = {job.possible_cpus} is less than cpus = {job.cpus}",
            hint="leave possible_cpus out, or make it at least cpus.",
        )
    possible = job.possible_cpus or job.cpus
    if (job.numa_nodes or 1) > possible:
        raise InputError(
            f"machine.numa_nodes = {job.numa_nodes} is more than the {possible} CPUs",
            hint="give every node at least one possible CPU.",
        )
    return [
        *(ARCHITECTURES[job.arch].qemu, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-M", _board(job), "-cpu", _cpu(job.arch, job.acceleration)),
        *_ACCELERATOR[job.acceleration],
        *("-m", str(job.memory_mb), "-seed", str(job.seed)),
        *(_nodes(job.numa_nodes, possible, job.memory_mb) if job.numa_nodes else ("-smp", str(possible))),
        *("-kernel", str(job.image), "-initrd", str(job.initramfs)),
        *("-append", " ".join(kernel_arguments(job))),
        *("-chardev", f"file,id=console,path={_escaped(str(job.console))}", "-serial", "chardev:console"),
        *_records_device(channels.records),
        *("-chardev", f"socket,id=monitor,fd={channels.monitor}", "-mon", "chardev=monitor,mode=control"),
    ]


def missing_qemu(arch: Arch) -> MissingError:
    """There is no QEMU for ``arch``."""
    known = ARCHITECTURES[arch]
    return MissingError(f"{known.qemu} is not installed", [known.qemu_package])


def kernel_arguments(job: BootJob) -> Sequence[str]:
    """The kernel's command line in words; those of the job come last and so have the last word."""
    arguments = [*ARCHITECTURES[job.arch].kernel_arguments, *_ARGUMENTS]
    if job.possible_cpus and job.possible_cpus != job.cpus:
        # Per-CPU memory follows the possible CPUs, and all that QEMU has are possible; the kernel then
        # brings up only so many. `-smp 2,maxcpus=32` does not do it.
        arguments.append(f"maxcpus={job.cpus}")
    # The kernel's random numbers before user space (the order of free pages and of slab objects) come
    # from a pool into which random_init_early() mixes the command line. QEMU's own seed reaches
    # that pool only on boards with a device tree.
    arguments.append(f"kteardown.seed={job.seed}")
    return [*arguments, *job.kernel_args]


def _nodes(nodes: int, cpus: int, memory_mb: int) -> list[str]:
    """Memory and CPUs divided among nodes, every CPU a socket of its own, since no socket spans two nodes.

    CPUs are dealt out in turn, so that the few that come up are not all on the first node.
    """
    words = ["-smp", f"{cpus},sockets={cpus},cores=1,threads=1"]
    for node in range(nodes):
        size_mb = memory_mb * (node + 1) // nodes - memory_mb * node // nodes
        theirs = "".join(f",cpus={cpu}" for cpu in range(node, cpus, nodes))
        words += ["-object", f"memory-backend-ram,id=memory{node},size={size_mb}M"]
        words += ["-numa", f"node,nodeid={node},memdev=memory{node}{theirs}"]
    return words


def _board(job: BootJob) -> str:
    known = ARCHITECTURES[job.arch]
    return known.board + ("" if job.acceleration == "kvm" else known.emulated_board_options)


def _cpu(arch: Arch, acceleration: Acceleration) -> str:
    return "host" if acceleration == "kvm" else ARCHITECTURES[arch].emulated_cpu


def _records_device(pipe: int) -> list[str]:
    """The virtio-serial port on a pipe, so that no write of the guest ever waits for the lab.

    Without ioeventfd the virtual CPU itself carries the data out. Otherwise QEMU's main thread would,
    while the guest counts the instructions in which it waits: host time in an instruction count.
    The driver sets up a pair of queues for every port that there could be, by default 31; port 0 is
    only for a console, so that the fewest are two.
    """
    return [
        *("-chardev", f"file,id=records,path=/dev/fd/{pipe}"),
        *("-device", "virtio-serial-pci,ioeventfd=off,max_ports=2"),
        *("-device", f"virtserialport,chardev=records,name={RECORDS_PORT}"),
    ]


def _escaped(text: str) -> str:
    """As a value in a QEMU option list, where a comma would end it."""
    return text.replace(",", ",,")
