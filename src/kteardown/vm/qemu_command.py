"""The command of QEMU for a boot, and the command line of the guest's kernel."""

from collections.abc import Sequence

from kteardown.inputs.check import check_machine
from kteardown.model.arch import ARCHITECTURES
from kteardown.paths import shipped_table
from kteardown.vm.job import HUGE_PAGE_MB, BootJob

RECORDS_PORT = "kteardown.records"

GIVEN = shipped_table("vm/qemu_command")


def qemu_command(job: BootJob, *, records: int, monitor: int) -> list[str]:
    """Return the argument vector of QEMU. Raises InputError if QEMU has no such machine.

    QEMU inherits ``records``, the writing end of a pipe, and ``monitor``, a connected stream socket
    that speaks QMP.
    """
    check_machine(job.cpus, job.possible_cpus, job.numa_nodes, job.memory_mb, "")
    possible = job.possible_cpus or job.cpus
    pages = f"hugetlb=on,hugetlbsize={HUGE_PAGE_MB}M,share=off,prealloc=on"
    backend = f"memory-backend-memfd,id=ram,size={job.memory_mb}M,{pages}"
    memory = ("-object", backend, "-machine", "memory-backend=ram")
    architecture = ARCHITECTURES[job.arch]
    counted = GIVEN["contention"]["cpu"] if job.counts_contention else ""
    emulated = (
        "-M",
        architecture.board + architecture.emulated_board_options,
        "-cpu",
        architecture.emulated_cpu + counted,
    )
    return [
        *(architecture.qemu, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *(
            ("-M", architecture.board, "-cpu", architecture.host_cpu)
            if job.acceleration == "kvm"
            else emulated
        ),
        *GIVEN["accelerator"][job.acceleration],
        *("-m", str(job.memory_mb), "-seed", str(job.seed)),
        *(memory if job.huge_pages and not job.numa_nodes else ()),
        *(
            _nodes(job.numa_nodes, possible, job.memory_mb)
            if job.numa_nodes
            else ("-smp", str(possible))
        ),
        *("-kernel", str(job.image), "-initrd", str(job.initramfs)),
        *("-append", " ".join(kernel_arguments(job))),
        *(
            "-chardev",
            f"file,id=console,path={_escaped(str(job.console))}",
            "-serial",
            "chardev:console",
        ),
        *_records_device(records),
        *("-chardev", f"socket,id=monitor,fd={monitor}", "-qmp", "chardev:monitor"),
        *(("-plugin", ",".join(map(_escaped, job.plugin))) if job.plugin else ()),
    ]


def kernel_arguments(job: BootJob) -> Sequence[str]:
    """Return the arguments of the kernel. Those of the job come last, and so override the
    others."""
    architecture = ARCHITECTURES[job.arch]
    arguments = [*architecture.kernel_arguments, *GIVEN["kernel_arguments"]]
    if job.acceleration == "icount":
        arguments += architecture.one_cpu_arguments if (job.possible_cpus or job.cpus) == 1 else ()
        arguments += () if job.has_own_programs else GIVEN["without_script"]
        arguments += GIVEN["contention"]["kernel_arguments"] if job.counts_contention else ()
    if job.possible_cpus and job.possible_cpus != job.cpus:
        # The kernel allocates per-CPU memory for all possible CPUs. All CPUs of QEMU are possible
        # ones, and maxcpus= limits how many the kernel brings online. `-smp 2,maxcpus=32` does not
        # have this effect.
        arguments.append(f"maxcpus={job.cpus}")
    # The random numbers that the kernel uses before user space starts (for the order of free pages
    # and of slab objects) come from a pool to which random_init_early() adds the command line. The
    # seed of QEMU gets into that pool only on boards with a device tree.
    arguments.append(f"kteardown.seed={job.seed}")
    return [*arguments, *job.kernel_args]


def _nodes(nodes: int, cpus: int, memory_mb: int) -> list[str]:
    # Every CPU is a socket of its own, since a socket cannot span two nodes. CPUs are assigned
    # round-robin, so that the few that come online are not all on the first node.
    words = ["-smp", f"{cpus},sockets={cpus},cores=1,threads=1"]
    for node in range(nodes):
        size_mb = memory_mb * (node + 1) // nodes - memory_mb * node // nodes
        node_cpus = "".join(f",cpus={cpu}" for cpu in range(node, cpus, nodes))
        words += ["-object", f"memory-backend-ram,id=memory{node},size={size_mb}M"]
        words += ["-numa", f"node,nodeid={node},memdev=memory{node}{node_cpus}"]
    return words


def _records_device(pipe: int) -> list[str]:
    """Return the options of the virtio-serial port, which writes to a pipe so that the guest need
    not wait.

    Without ioeventfd, the thread of the virtual CPUs transfers the data. With it, QEMU's main
    thread would, while the guest counts the instructions that it executes while it waits: the
    instruction count would depend on time on the host. The driver sets up a pair of queues for
    every possible port, by default 31. Port 0 is reserved for a console, so at least two ports are
    needed.
    """
    return [
        *("-chardev", f"file,id=records,path=/dev/fd/{pipe}"),
        *("-device", "virtio-serial-pci,ioeventfd=off,max_ports=2"),
        *("-device", f"virtserialport,chardev=records,name={RECORDS_PORT}"),
    ]


def _escaped(text: str) -> str:
    """Escape a value of a QEMU option list: a comma would end it."""
    return text.replace(",", ",,")
