"""What is given to the machine that boots a kernel."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kteardown.door import Entry
from kteardown.model.arch import Arch

Acceleration = Literal["icount", "mttcg", "kvm", "metal"]
"""icount: the emulator with the instruction-counted clock; mttcg: multi-threaded emulation in real
time; kvm: hardware virtualisation in real time; metal: none, on a machine that is not of this
lab."""

HUGE_PAGE_MB = 2
"""The size of a huge page of the host."""


@dataclass(frozen=True)
class BootJob:
    image: Path
    initramfs: Path
    arch: Arch
    acceleration: Acceleration
    cpus: int
    memory_mb: int
    seed: int
    console: Entry
    """The file to which the whole console is written, byte for byte."""
    silence_s: float
    """Seconds without a record after which the guest is hung; ``vm.qemu`` says of which clock."""
    kernel_args: tuple[str, ...] = ()
    has_own_programs: bool = False
    """Whether programs of the user run in the guest, which may suspend it to memory, or read the
    formats of tracepoints. A guest without them starts sooner on the instruction clock, and can do
    neither."""
    possible_cpus: int | None = None
    """Number of possible CPUs; those beyond ``cpus`` are never online. None: equal to ``cpus``."""
    numa_nodes: int | None = None
    """Number of NUMA nodes among which the memory and all possible CPUs are divided. None: no
    NUMA."""
    plugin: tuple[str, ...] = ()
    """A plugin of the emulator: ``file=PATH`` and its arguments, each ``NAME=VALUE``. Empty:
    none."""
    counts_contention: bool = False
    """Whether what CPUs do to each other is counted: the guest's kernel must lock as it does on
    hardware."""
    huge_pages: bool = False
    """Whether the guest's memory is of reserved huge pages of the host; not with ``numa_nodes``."""
    on_vcpus: Callable[[Sequence[int]], None] | None = None
    """Called before the guest's first record with the threads of the host that run its CPUs, if
    there are any that QEMU names; None: QEMU is not asked."""
    on_clock: Callable[[float], None] | None = None
    """Called every few seconds with the guest's clock, in seconds since the guest started; None:
    QEMU is not asked."""
