from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kteardown.errors import LabError
from kteardown.vm.job import Acceleration
from kteardown.vm.qemu import QemuMachine, need_descriptors
from unit.vm.tiny_guest import RESET, tiny_job


def test_a_host_without_names_of_descriptors_is_refused(tmp_path: Path) -> None:
    need_descriptors()
    with pytest.raises(LabError, match="missing does not exist") as error:
        need_descriptors(tmp_path / "missing")
    assert f"ln -s /proc/self/fd {tmp_path / 'missing'}" in error.value.hint


@pytest.mark.skipif(
    not shutil.which("qemu-system-x86_64"), reason="it needs the emulator of x86-64"
)
def test_the_firmware_of_a_guest_is_not_that_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """QEMU takes a file of this name in the folder in which it runs before its own."""
    # QEMU refuses a firmware of one byte.
    for name in ("bios-256k.bin", "linuxboot_dma.bin", "kvmvapic.bin", "efi-virtio.rom"):
        (tmp_path / name).write_bytes(b"x")
    tmp_path.chmod(0o755)  # QEMU may be another user.
    monkeypatch.chdir(tmp_path)
    end = QemuMachine().boot(tiny_job(tmp_path, RESET), lambda line: None)
    assert "the guest reset itself" in end.detail


@pytest.mark.skipif(
    not shutil.which("qemu-system-x86_64"), reason="it needs the emulator of x86-64"
)
@pytest.mark.parametrize("acceleration", ["icount", "mttcg"])
def test_the_clock_of_a_guest_is_told_while_it_runs(
    tmp_path: Path, acceleration: Acceleration
) -> None:
    told: list[float] = []
    # mov ecx, 300000000; dec ecx; jnz to it
    count_down = b"\x66\xb9" + (300_000_000).to_bytes(4, "little") + b"\x66\x49\x75\xfc"
    job = tiny_job(tmp_path, count_down + RESET)
    QemuMachine().boot(
        replace(job, acceleration=acceleration, on_clock=told.append), lambda line: None
    )
    assert told and told == sorted(told)
