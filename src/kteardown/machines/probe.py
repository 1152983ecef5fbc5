"""Which accelerations this host truly has. KVM is believed when a guest has run on it, not before.

``/dev/kvm`` can be there and still run nothing: nested virtualization that is half forwarded, a
hypervisor that filters registers, or one that interprets every instruction, a hundred times slower than QEMU
does (seen: 48 s for a loop that a processor runs in 0.05 s and QEMU's emulator in 0.3 s). So a guest of a
hundred bytes is booted, counts to a hundred million, and what it found is kept until the host, its QEMU or
the probe changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kteardown.machines.base import Acceleration, Arch
from kteardown.machines.command import BINARY, missing_qemu

_KVM = Path("/dev/kvm")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_LIMIT_S = 5.0

# A boot sector, which the firmware puts at 0x7c00. On its way to the exit port it goes where a kernel
# goes: protection, page tables, EFER, 64-bit code; then it counts, which only a real processor does in time.
BOOT_SECTOR = bytes.fromhex(
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
# isa-debug-exit ends QEMU with twice the byte written, plus one.
_SECTOR_STATUS = 2 * 0x2A + 1

# For arm64: count, then call the firmware's SYSTEM_OFF (PSCI, function 0x84000008), which ends QEMU with 0.
_ARM64_CODE = bytes.fromhex(
    "01209c52 a1bea072 21040071 e1ffff54"  # mov w1,#100000000; subs w1,w1,#1; b.ne back
    "00018052 0080b072"  # mov w0,#8; movk w0,#0x8400,lsl #16
    "020000d4 00000014"  # hvc #0; b to itself
)


@dataclass(frozen=True)
class WallAcceleration:
    """The best acceleration in real time; ``reason`` says why it is not KVM, and is empty for KVM."""

    acceleration: Acceleration
    reason: str


def best_wall_acceleration(arch: Arch, *, cache: Path) -> WallAcceleration:
    """KVM where a probe guest has run on it, else multi-threaded emulation and the reason.

    The probe takes a second, at most five, and its finding is kept in ``cache`` for this boot of the
    host and this QEMU. Raises LabError where QEMU is not installed.
    """
    fault = _kvm_fault(arch, cache)
    if not fault:
        return WallAcceleration("kvm", "")
    return WallAcceleration(
        "mttcg",
        f"KVM is not used: {fault}. Wall times come from multi-threaded emulation, not from hardware.",
    )


def probe_boot(arch: Arch, acceleration: Acceleration) -> str:
    """Boot the probe guest under ``acceleration``; what went wrong, empty where it ran.

    Raises LabError where QEMU cannot be started.
    """
    emulated = "max" if arch == "x86_64" else "cortex-a72"
    cpu = "host" if acceleration == "kvm" else emulated
    accelerator = "kvm" if acceleration == "kvm" else "tcg"
    with tempfile.NamedTemporaryFile(prefix="kteardown-probe-") as guest:
        guest.write(BOOT_SECTOR if arch == "x86_64" else _ARM64_CODE)
        guest.flush()
        machine = (
            [
                *("-M", "pc", "-device", "isa-debug-exit,iobase=0xf4,iosize=1"),
                *("-drive", f"file={guest.name},format=raw,if=ide,snapshot=on"),
            ]
            if arch == "x86_64"
            else ["-M", "virt", "-kernel", guest.name]
        )
        command = [
            *(BINARY[arch], "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *("-accel", accelerator, "-cpu", cpu, "-m", "64", *machine),
        ]
        expected = _SECTOR_STATUS if arch == "x86_64" else 0
        try:
            ended = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            return f"a probe guest was not done after {_LIMIT_S:g} s{_said(error.stderr)}"
        except OSError as error:
            raise missing_qemu(arch) from error
    if ended.returncode == expected:
        return ""
    status = ended.returncode
    how = f"killed by signal {-status}" if status < 0 else f"status {status}"
    return f"a probe guest ended QEMU ({how}){_said(ended.stderr)}"


def _kvm_fault(arch: Arch, cache: Path) -> str:
    """Why KVM cannot be used for ``arch`` here, empty where it can."""
    host = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
    if host != arch:
        return f"this host is {host}, the guest {arch}"
    if not _KVM.exists():
        return f"there is no {_KVM}"
    if not os.access(_KVM, os.R_OK | os.W_OK):
        return f"{_KVM} may not be opened by this user (the group that owns it may)"
    probe = hashlib.sha256(BOOT_SECTOR + _ARM64_CODE).hexdigest()[:8]
    key = f"{_BOOT_ID.read_text().strip()} {_program(arch)} {probe}"
    kept = cache / f"kvm-probe-{arch}.json"
    try:
        finding = json.loads(kept.read_text())
        if finding["key"] == key:
            return str(finding["fault"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # Not there, not whole, or not ours: ask again.
    fault = probe_boot(arch, "kvm")
    _keep(kept, {"key": key, "fault": fault})
    return fault


def _program(arch: Arch) -> str:
    """Which QEMU this is, without running it: 0.1 s on every start of ours. Raises LabError."""
    path = shutil.which(BINARY[arch])
    if path is None:
        raise missing_qemu(arch)
    found = Path(path).stat()
    return f"{path} {found.st_size} {found.st_mtime_ns}"


def _keep(path: Path, finding: dict[str, str]) -> None:
    """Replaced at once, so that a reader never sees half of it. A full disk only costs the next probe."""
    new = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(json.dumps(finding))
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)


def _said(stderr: bytes | None) -> str:
    """The first line that QEMU wrote which is not a mere warning, as the end of a sentence."""
    lines = (stderr or b"").decode(errors="replace").splitlines()
    telling = [line.strip() for line in lines if line.strip() and "warning:" not in line]
    return f": {telling[0].removesuffix('.')}" if telling else ""
