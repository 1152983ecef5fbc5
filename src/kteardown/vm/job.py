"""The interface for booting a kernel: the job, the result, the machine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from kteardown.model.arch import Arch
from kteardown.model.record import KernelProblem, Outcome, Placed

Acceleration = Literal["icount", "mttcg", "kvm"]
"""icount: the emulator with the instruction-counted clock; mttcg: multi-threaded
emulation in real time; kvm: hardware virtualisation in real time."""

HUGE_PAGE_MB = 2
"""The size of a huge page of the host."""


@dataclass(frozen=True)
class BootJob:
    """The parameters of one boot."""

    image: Path
    initramfs: Path
    arch: Arch
    acceleration: Acceleration
    cpus: int
    memory_mb: int
    seed: int
    console: Path
    """The file to which the whole console is written, byte for byte."""
    silence_s: float
    """Seconds without a record after which the guest is hung; ``vm.qemu`` says of which clock."""
    kernel_args: tuple[str, ...] = ()
    possible_cpus: int | None = None
    """Number of possible CPUs; those beyond ``cpus`` are never online. None: equal to ``cpus``."""
    numa_nodes: int | None = None
    """Number of NUMA nodes among which the memory and all possible CPUs are divided. None: no NUMA."""
    plugin: tuple[str, ...] = ()
    """A plugin of the emulator: ``file=PATH`` and its arguments, each ``NAME=VALUE``. Empty: none."""
    huge_pages: bool = False
    """Whether the guest's memory is of reserved huge pages of the host; not with ``numa_nodes``."""
    on_vcpus: Callable[[Sequence[int]], None] | None = None
    """Called before the guest's first record with the threads of the host that run its CPUs, if there are any
    that QEMU names; None: QEMU is not asked."""


@dataclass(frozen=True)
class BootResult:
    """How a boot ended. Times are seconds on the host since the start of the machine."""

    outcome: Outcome
    detail: str
    duration_s: float
    first_record_s: float | None
    command: tuple[str, ...] = field(default=())
    peak_rss_kb: int | None = None
    """Peak resident memory of the machine's process on the host, in kB; None if it was not sampled."""
    problems: tuple[KernelProblem, ...] = ()
    """What the kernel reported about itself."""
    last_lines: tuple[str, ...] = ()
    """The end of the console if the outcome is not ok; of a hung guest, the stacks of its CPUs."""
    placed: Placed | None = None
    """Where on the host it ran under KVM; None under emulation."""


class Machine(Protocol):
    """Boots a kernel, passes on each line that the agent writes, and returns how the boot ended."""

    def boot(self, job: BootJob, on_line: Callable[[bytes], None]) -> BootResult:
        """Run one boot to its end.

        ``on_line`` is called with every complete line of the records port, without its newline,
        when it arrives. A failure of the guest is a result, not an exception. No process of the
        machine is left running when this returns or raises, KeyboardInterrupt included.
        """

    def stop(self) -> None:
        """End every boot in progress: ``boot`` raises KeyboardInterrupt. May be called from any thread."""
