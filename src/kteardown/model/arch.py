"""The architectures of guests (``arch.toml``); CONTRIBUTING.md lists what another one needs besides
that."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, TypeAdapter

from kteardown.paths import shipped_table

Arch = Literal["x86_64", "arm64"]
DEFAULT_ARCH: Arch = "x86_64"
"""What is booted if no other is named. Coverage maps are of this one."""


def _sector(code: Sequence[str]) -> bytes:
    """Return hexadecimal code as a sector that a PC boots; arm64 does not reach what is added."""
    return bytes.fromhex("".join(code)).ljust(510, b"\0") + b"\x55\xaa"


@dataclass(frozen=True)
class Probe:
    """A guest of a few bytes that counts to one hundred million and then ends QEMU.

    ``options`` are QEMU's, with ``{file}`` for the file that contains ``code``. ``status`` is the
    exit status of QEMU.
    """

    code: Annotated[bytes, BeforeValidator(_sector)]
    options: tuple[str, ...]
    status: int


@dataclass(frozen=True)
class Architecture:
    """One architecture. Names of packages are Debian's."""

    machine: str
    """The name in uname(2)."""
    source_folder: str
    """Below ``arch/`` of the kernel's source."""
    image: str
    """The image that boots, below the build folder."""
    image_magic: tuple[int, bytes]
    """The offset and the bytes by which such an image is recognised."""
    debian: str
    """The package architecture."""
    compiler: str
    """The compiler for kernel and agent. On a host of this architecture, ``gcc`` compiles the
    agent."""
    compiler_package: str
    agent_packages: tuple[str, ...]
    """The cross compiler and the C library's headers, for the agent."""
    qemu: str
    qemu_package: str
    board: str
    emulated_board_options: str
    emulated_cpu: str
    host_cpu: str
    """That of the host under KVM."""
    kernel_arguments: tuple[str, ...]
    one_cpu_arguments: tuple[str, ...]
    """More arguments, for a guest on the instruction clock in which one CPU is possible."""
    perf_event_open: int
    """The number of this system call."""
    emulated_counters: bool
    """Whether the emulated CPU has counters of instructions and cycles on the instruction clock."""
    probe: Probe


ARCHITECTURES: Mapping[Arch, Architecture] = TypeAdapter(dict[Arch, Architecture]).validate_python(
    shipped_table("model/arch")
)


def host_arch() -> str:
    """Return the architecture of the host: one of ``Arch``, else its name in uname(2)."""
    return arch_of_machine(platform.machine())


def arch_of_machine(machine: str) -> str:
    """Return the architecture whose name in uname(2) is ``machine``: one of ``Arch``, else
    ``machine``."""
    return next((name for name, arch in ARCHITECTURES.items() if arch.machine == machine), machine)
