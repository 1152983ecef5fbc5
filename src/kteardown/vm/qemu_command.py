"""Make the command line of QEMU for one boot. No side effects."""

from collections.abc import Sequence
from typing import NamedTuple

from kteardown.inputs.load import check_machine
from kteardown.model.arch import ARCHITECTURES
from kteardown.vm.job import HUGE_PAGE_MB, Acceleration, BootJob

RECORDS_PORT = "kteardown.records"

_ACCELERATOR: dict[Acceleration, tuple[str, ...]] = {
    # One guest instruction takes one guest nanosecond, and idle time is skipped. The date must not
    # come from the host either.
    "icount": (
        *("-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"),
        *("-rtc", "base=2026-01-01,clock=vm"),
    ),
    "mttcg": ("-accel", "tcg,thread=multi"),
    "kvm": ("-accel", "kvm"),
}

_ARGUMENTS = (
    # At a panic bit 5 of panic_print prints the whole log, including what loglevel kept off the console,
    # bit 6 the stacks of all CPUs, and bit 7 (since 6.12; ignored before) those of the blocked tasks.
    *("loglevel=5", "panic=-1", "panic_print=224"),
    # The agent marks the start of every trial in the log; otherwise ten lines in five seconds are the limit.
    "printk.devkmsg=on",
    # The address of the kernel must not differ between two kernels.
    "nokaslr",
    # Registering 512 pseudo terminals of the BSD kind takes 60 ms under emulation; they are not used.
    "pty.legacy_count=0",
)


class Channels(NamedTuple):
    """File descriptors that QEMU inherits."""

    records: int
    """The writing end of a pipe."""
    monitor: int
    """A connected stream socket that speaks QMP."""


def qemu_command(job: BootJob, channels: Channels) -> list[str]:
    """Return the argument vector of QEMU. Raises InputError if QEMU has no such machine."""
    check_machine(job.cpus, job.possible_cpus, job.numa_nodes, job.memory_mb, "")
    possible = job.possible_cpus or job.cpus
    pages = f"hugetlb=on,hugetlbsize={HUGE_PAGE_MB}M,share=off,prealloc=on"
    backend = f"memory-backend-memfd,id=ram,size={job.memory_mb}M,{pages}"
    memory = ("-object", backend, "-machine", "memory-backend=ram")
    known = ARCHITECTURES[job.arch]
    emulated = ("-M", known.board + known.emulated_board_options, "-cpu", known.emulated_cpu)
    return [
        *(known.qemu, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *(("-M", known.board, "-cpu", known.host_cpu) if job.acceleration == "kvm" else emulated),
        *_ACCELERATOR[job.acceleration],
        *("-m", str(job.memory_mb), "-seed", str(job.seed)),
        *(memory if job.huge_pages and not job.numa_nodes else ()),
        *(_nodes(job.numa_nodes, possible, job.memory_mb) if job.numa_nodes else ("-smp", str(possible))),
        *("-kernel", str(job.image), "-initrd", str(job.initramfs)),
        *("-append", " ".join(kernel_arguments(job))),
        *("-chardev", f"file,id=console,path={_escaped(str(job.console))}", "-serial", "chardev:console"),
        *_records_device(channels.records),
        *("-chardev", f"socket,id=monitor,fd={channels.monitor}", "-mon", "chardev=monitor,mode=control"),
        *(("-plugin", ",".join(map(_escaped, job.plugin))) if job.plugin else ()),
    ]


def kernel_arguments(job: BootJob) -> Sequence[str]:
    """Return the arguments of the kernel. Those of the job come last, and so override the others."""
    arguments = [*ARCHITECTURES[job.arch].kernel_arguments, *_ARGUMENTS]
    if job.possible_cpus and job.possible_cpus != job.cpus:
        # The kernel allocates per-CPU memory for all possible CPUs. All CPUs of QEMU are possible ones, and
        # maxcpus= limits how many the kernel brings online. `-smp 2,maxcpus=32` does not have this effect.
        arguments.append(f"maxcpus={job.cpus}")
    # The random numbers that the kernel uses before user space starts (for the order of free pages and of
    # slab objects) come from a pool to which random_init_early() adds the command line. The seed of QEMU
    # gets into that pool only on boards with a device tree.
    arguments.append(f"kteardown.seed={job.seed}")
    return [*arguments, *job.kernel_args]


def _nodes(nodes: int, cpus: int, memory_mb: int) -> list[str]:
    """Return the options that divide memory and CPUs among NUMA nodes.

    Every CPU is a socket of its own, since a socket cannot span two nodes. CPUs are assigned round-robin, so
    that the few that come online are not all on the first node.
    """
    words = ["-smp", f"{cpus},sockets={cpus},cores=1,threads=1"]
    for node in range(nodes):
        size_mb = memory_mb * (node + 1) // nodes - memory_mb * node // nodes
        node_cpus = "".join(f",cpus={cpu}" for cpu in range(node, cpus, nodes))
        words += ["-object", f"memory-backend-ram,id=memory{node},size={size_mb}M"]
        words += ["-numa", f"node,nodeid={node},memdev=memory{node}{node_cpus}"]
    return words


def _records_device(pipe: int) -> list[str]:
    """Return the options of the virtio-serial port, which writes to a pipe so that the guest need not wait.

    Without ioeventfd, the thread of the virtual CPUs transfers the data. With it, QEMU's main thread would,
    while the guest counts the instructions that it executes while it waits: the instruction count would
    depend on time on the host. The driver sets up a pair of queues for every possible port, by default 31.
    Port 0 is reserved for a console, so at least two ports are needed.
    """
    return [
        *("-chardev", f"file,id=records,path=/dev/fd/{pipe}"),
        *("-device", "virtio-serial-pci,ioeventfd=off,max_ports=2"),
        *("-device", f"virtserialport,chardev=records,name={RECORDS_PORT}"),
    ]


def _escaped(text: str) -> str:
    """Escape a value of a QEMU option list: a comma would end it."""
    return text.replace(",", ",,")
