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
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kteardown.model.arch import ARCHITECTURES, Arch, host_arch
from kteardown.vm.job import Acceleration
from kteardown.vm.qemu_command import missing_qemu

_KVM = Path("/dev/kvm")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_LIMIT_S = 5.0


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
    probe = ARCHITECTURES[arch].probe
    accelerator = "kvm" if acceleration == "kvm" else "tcg"
    with tempfile.NamedTemporaryFile(prefix="kteardown-probe-") as guest:
        guest.write(probe.code)
        guest.flush()
        options = [option.format(file=guest.name) for option in probe.options]
        if acceleration == "kvm":
            options[options.index("-cpu") + 1] = "host"
        command = [
            *(ARCHITECTURES[arch].qemu, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *("-accel", accelerator, "-m", "64", *options),
        ]
        try:
            ended = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            return f"a probe guest was not done after {_LIMIT_S:g} s{_said(error.stderr)}"
        except OSError as error:
            raise missing_qemu(arch) from error
    if ended.returncode == probe.status:
        return ""
    status = ended.returncode
    how = f"killed by signal {-status}" if status < 0 else f"status {status}"
    return f"a probe guest ended QEMU ({how}){_said(ended.stderr)}"


def _kvm_fault(arch: Arch, cache: Path) -> str:
    """Why KVM cannot be used for ``arch`` here, empty where it can."""
    if host_arch() != arch:
        return f"this host is {host_arch()}, the guest {arch}"
    if not _KVM.exists():
        return f"there is no {_KVM}"
    if not os.access(_KVM, os.R_OK | os.W_OK):
        return f"{_KVM} may not be opened by this user (the group that owns it may)"
    probe = hashlib.sha256(ARCHITECTURES[arch].probe.code).hexdigest()[:8]
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
    path = shutil.which(ARCHITECTURES[arch].qemu)
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
