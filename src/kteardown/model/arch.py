"""The architectures of guests; CONTRIBUTING.md lists what another one needs besides its record here."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Arch = Literal["x86_64", "arm64"]
DEFAULT_ARCH: Arch = "x86_64"
"""What is booted if no other is named. Coverage maps are of this one."""


@dataclass(frozen=True)
class Probe:
    """A guest of a few bytes that counts to one hundred million and then ends QEMU.

    ``options`` are QEMU's, with ``{file}`` for the file that contains ``code``. ``status`` is the exit status
    of QEMU.
    """

    code: bytes
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
    """The compiler for kernel and agent. On a host of this architecture, ``gcc`` compiles the agent."""
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
    perf_event_open: int
    """The number of this system call."""
    emulated_counters: bool
    """Whether the emulated CPU has counters of instructions and cycles on the instruction clock."""
    probe: Probe


# A boot sector, which the firmware loads at 0x7c00. It does what a kernel does at boot (protected mode, page
# tables, EFER, 64-bit code), counts, which only a real processor does in time, and writes to the exit port.
_X86_PROBE = bytes.fromhex(
    "fa 31c0 8ed8 8ec0"  # cli; xor ax,ax; mov ds,ax; mov es,ax
    "66bf00100000 0f22df"  # mov edi,0x1000; mov cr3,edi: three page tables at 0x1000
    "b9000c fc 6631c0 66f3ab"  # mov cx,0xc00; cld; xor eax,eax; rep stosd: all zero
    "c70600100320"  # mov word [0x1000],0x2003: present, writable, next level
    "c70600200330"  # mov word [0x2000],0x3003
    "c70600308300"  # mov word [0x3000],0x0083: the first 2 MB, present, writable, large
    "0f20e0 0c20 0f22e0"  # cr4 |= PAE
    "66b9800000c0 0f32 80cc01 0f30"  # EFER |= LME
    "0f20c0 660d01000080 0f22c0"  # cr0 |= PE | PG
    "0f0116677c ea577c0800"  # lgdt [0x7c67]; jmp 8:0x7c57, the next instruction, in 64-bit mode
    "b900e1f505 ffc9 75fc"  # mov ecx,100000000; dec ecx; jnz back: 0.05 s on a processor
    "b02a e6f4 f4 ebfe"  # mov al,0x2a; out 0xf4,al; hlt; jmp to itself
    "0f00 6d7c0000"  # 0x7c67: the descriptor table: 16 bytes at 0x7c6d
    "0000000000000000 00000000009a2000"  # nothing; 64-bit code
).ljust(510, b"\0") + bytes((0x55, 0xAA))

# Counts, then calls the firmware's SYSTEM_OFF (PSCI, function 0x84000008), which ends QEMU with 0.
_ARM64_PROBE = bytes.fromhex(
    "01209c52 a1bea072 21040071 e1ffff54"  # mov w1,#100000000; subs w1,w1,#1; b.ne back
    "00018052 0080b072"  # mov w0,#8; movk w0,#0x8400,lsl #16
    "020000d4 00000014"  # hvc #0; b to itself
)

ARCHITECTURES: Mapping[Arch, Architecture] = {
    "x86_64": Architecture(
        machine="x86_64",
        source_folder="x86",
        image="arch/x86/boot/bzImage",
        # Documentation/arch/x86/boot.rst: the field "header".
        image_magic=(0x202, b"HdrS"),
        debian="amd64",
        compiler="x86_64-linux-gnu-gcc",
        compiler_package="gcc",
        agent_packages=("gcc-x86-64-linux-gnu", "libc6-dev-amd64-cross"),
        qemu="qemu-system-x86_64",
        qemu_package="qemu-system-x86",
        # Without the keyboard controller x86 boots 0.4 s faster, because the probe for a mouse waits.
        board="pc,i8042=off",
        emulated_board_options="",
        # Without instructions whose random numbers the seed does not control.
        emulated_cpu="max,-rdrand,-rdseed",
        # A guest that is never migrated may have an invariant TSC, if the host has one.
        host_cpu="host,migratable=no",
        kernel_arguments=(
            "console=ttyS0",
            # On a loaded host an emulated timer tick is too late for the IO-APIC check, which panics.
            "no_timer_check",
            # For the same reason the clocksource watchdog would disable the TSC during a trial.
            "tsc=reliable",
            # The lab sends an interrupt that cannot be masked to a hung guest, to get the stacks of its CPUs.
            "unknown_nmi_panic",
            # Reboot by a triple fault, because this board has no keyboard controller.
            "reboot=t",
        ),
        perf_event_open=298,
        emulated_counters=False,
        probe=Probe(
            code=_X86_PROBE,
            options=(
                *("-M", "pc", "-cpu", "max", "-device", "isa-debug-exit,iobase=0xf4,iosize=1"),
                *("-drive", "file={file},format=raw,if=ide,snapshot=on"),
            ),
            # isa-debug-exit ends QEMU with twice the byte written, plus one.
            status=2 * 0x2A + 1,
        ),
    ),
    "arm64": Architecture(
        machine="aarch64",
        source_folder="arm64",
        image="arch/arm64/boot/Image",
        # Documentation/arch/arm64/booting.rst: the field "magic".
        image_magic=(0x38, b"ARM\x64"),
        debian="arm64",
        compiler="aarch64-linux-gnu-gcc",
        compiler_package="gcc-aarch64-linux-gnu",
        agent_packages=("gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"),
        qemu="qemu-system-aarch64",
        qemu_package="qemu-system-arm",
        board="virt",
        # GICv2, the default, ends at 8 CPUs.
        emulated_board_options=",gic-version=3",
        # "max" spends most of its time emulating pointer authentication, and has a random number register.
        emulated_cpu="cortex-a72",
        host_cpu="host",
        kernel_arguments=("console=ttyAMA0",),
        perf_event_open=241,
        emulated_counters=True,
        probe=Probe(
            code=_ARM64_PROBE, options=("-M", "virt", "-cpu", "cortex-a72", "-kernel", "{file}"), status=0
        ),
    ),
}


def host_arch() -> str:
    """Return the architecture of the host: one of ``Arch``, else its name in uname(2)."""
    return arch_of_machine(platform.machine())


def arch_of_machine(machine: str) -> str:
    """Return the architecture whose name in uname(2) is ``machine``: one of ``Arch``, else ``machine``."""
    return next((name for name, arch in ARCHITECTURES.items() if arch.machine == machine), machine)
