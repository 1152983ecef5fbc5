"""The small interface behind which a kernel is booted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from kteardown.model.arch import Arch
from kteardown.model.record import Outcome

Acceleration = Literal["icount", "mttcg", "kvm"]
"""icount: the emulator with the instruction-counted clock; mttcg: multi-threaded
emulation in real time; kvm: hardware virtualisation in real time."""


@dataclass(frozen=True)
class BootJob:
    """All that one boot needs; nothing here changes while it runs."""

    image: Path
    initramfs: Path
    arch: Arch
    acceleration: Acceleration
    cpus: int
    memory_mb: int
    seed: int
    console: Path
    """Where the whole console goes, byte for byte."""
    silence_s: float
    """Host seconds without a record after which the guest is called hung."""
    kernel_args: tuple[str, ...] = ()
    possible_cpus: int | None = None
    """Possible CPUs beyond ``cpus`` (hot-pluggable, never online); None: the same."""
    numa_nodes: int | None = None
    """Nodes among which the memory and all possible CPUs are divided; None: no NUMA."""


@dataclass(frozen=True)
class BootResult:
    """How a boot ended. Times are host seconds from the start of the machine."""

    outcome: Outcome
    detail: str
    duration_s: float
    first_record_s: float | None
    command: tuple[str, ...] = field(default=())
    peak_rss_kb: int | None = None
    """The most memory of the host that the machine's process had at once; None where that was not seen."""


class Machine(Protocol):
    """Boots a kernel, hands over each line that the agent writes, and says how it ended."""

    def boot(self, job: BootJob, on_line: Callable[[bytes], None]) -> BootResult:
        """Run one boot to its end.

        ``on_line`` gets every complete line of the records port, without its newline,
        as it arrives. A guest's failure is a result, not an exception. Nothing of the
        machine is left running when this returns or raises, KeyboardInterrupt included.
        """

    def stop(self) -> None:
        """End every boot in progress, from any thread: their ``boot`` raises KeyboardInterrupt."""
