"""Find out which acceleration works on this host. KVM is used only after a probe guest has run on
it.

``/dev/kvm`` can exist and still not run guests: nested virtualization can be incomplete, and a
hypervisor can filter registers, or interpret every instruction a hundred times slower than QEMU
does (observed: 48 s for a loop that a processor runs in 0.05 s and QEMU's emulator in 0.3 s).
Therefore a probe guest of a hundred bytes is booted, which counts to a hundred million. The finding
is stored until the host, its QEMU or the probe changes; that the guest was late, which a busy host
can cause, only for a quarter of an hour.
"""

import contextlib
import hashlib
import json
import math
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from kteardown import spawn
from kteardown.model.arch import ARCHITECTURES, Arch, host_arch
from kteardown.paths import replace_text
from kteardown.vm.host import missing_qemu
from kteardown.vm.job import Acceleration

_KVM = Path("/dev/kvm")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_LIMIT_S = 5.0
_LATE_KEPT_S = 900.0
"""For how long it counts that a probe guest did not finish in time."""


@dataclass(frozen=True)
class WallAcceleration:
    """The fastest acceleration in real time. ``reason`` says why it is not KVM; it is empty for
    KVM."""

    acceleration: Acceleration
    reason: str


def best_wall_acceleration(arch: Arch, *, cache: Path) -> WallAcceleration:
    """Return KVM if a probe guest runs on it, or else multi-threaded emulation with the reason.

    The probe takes a second, at most five. Its finding is stored in ``cache`` for this boot of the
    host and this QEMU. Raises LabError if QEMU is not installed.
    """
    fault = _kvm_fault(arch, cache)
    if not fault:
        return WallAcceleration("kvm", "")
    return WallAcceleration(
        "mttcg",
        f"KVM is not used: {fault}. Wall times come from multi-threaded emulation, not from "
        "hardware.",
    )


def probe_boot(arch: Arch, acceleration: Acceleration) -> tuple[str, bool]:
    """Boot the probe guest under ``acceleration``.

    Return what went wrong, which is empty if the guest ran, and whether it only did not finish in
    time. Raises LabError if QEMU cannot be started.
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
            *(
                ARCHITECTURES[arch].qemu,
                "-nodefaults",
                "-no-user-config",
                "-display",
                "none",
                "-no-reboot",
            ),
            *("-accel", accelerator, "-m", "64", *options),
        ]
        try:
            ended = spawn.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            late = f"a probe guest did not finish within {_LIMIT_S:g} s{_first_error(error.stderr)}"
            return late, True
        except OSError as error:
            raise missing_qemu(arch) from error
    if ended.returncode == probe.status:
        return "", False
    status = ended.returncode
    how = f"killed by signal {-status}" if status < 0 else f"status {status}"
    return f"QEMU ended while a probe guest ran ({how}){_first_error(ended.stderr)}", False


def _kvm_fault(arch: Arch, cache: Path) -> str:
    """Return why KVM cannot be used for ``arch`` on this host, or an empty string if it can."""
    if host_arch() != arch:
        return f"this host is {host_arch()}, but the guest is {arch}"
    if not _KVM.exists():
        return f"{_KVM} does not exist"
    if not os.access(_KVM, os.R_OK | os.W_OK):
        return f"this user may not open {_KVM} (its group may)"
    qemu = shutil.which(ARCHITECTURES[arch].qemu)
    if qemu is None:
        raise missing_qemu(arch)
    probe = hashlib.sha256(ARCHITECTURES[arch].probe.code).hexdigest()[:8]
    status = Path(qemu).stat()  # Asking QEMU for its version takes 0.1 s each time.
    key = f"{_BOOT_ID.read_text().strip()} {qemu} {status.st_size} {status.st_mtime_ns} {probe}"
    path = cache / f"kvm-probe-{arch}.json"
    try:
        finding = json.loads(path.read_text())
        if finding["key"] == key and time.time() < finding.get("until", math.inf):
            return str(finding["fault"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # The file is missing, incomplete or of another format: probe again.
    fault, late = probe_boot(arch, "kvm")
    until = {"until": time.time() + _LATE_KEPT_S} if late else {}
    with contextlib.suppress(OSError):  # The next command probes again.
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, json.dumps({"key": key, "fault": fault, **until}))
    return fault


def _first_error(stderr: bytes | None) -> str:
    """Return ``: `` and the first line of QEMU's output that is not a warning, without its full
    stop."""
    lines = (stderr or b"").decode(errors="replace").splitlines()
    errors = [line.strip() for line in lines if line.strip() and "warning:" not in line]
    return f": {errors[0].removesuffix('.')}" if errors else ""
