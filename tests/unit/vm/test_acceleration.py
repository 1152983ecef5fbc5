from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kteardown.model.arch import ARCHITECTURES, Arch
from kteardown.vm import acceleration


def test_the_x86_probe_is_a_boot_sector() -> None:
    assert len(ARCHITECTURES["x86_64"].probe.code) == 512
    assert ARCHITECTURES["x86_64"].probe.code.endswith(b"\x55\xaa")


@pytest.mark.parametrize("arch", ["x86_64", "arm64"])
def test_another_architecture_never_gets_kvm(arch: Arch, tmp_path: Path) -> None:
    if {"aarch64": "arm64"}.get(platform.machine(), platform.machine()) == arch:
        arch = "arm64" if arch == "x86_64" else "x86_64"
    found = acceleration.best_wall_acceleration(arch, cache=tmp_path)
    assert found.acceleration == "mttcg"
    assert f"the guest is {arch}" in found.reason
    assert not list(tmp_path.iterdir())


QEMU = """#!/bin/sh
echo once >>"$0.calls"
{what}
"""


@pytest.fixture
def probes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    """Find the acceleration with a QEMU that does what the argument says; return how often it ran
    so far."""
    machine = platform.machine()
    arch = next(arch for arch, known in ARCHITECTURES.items() if known.machine == machine)
    qemu = tmp_path / "bin" / ARCHITECTURES[arch].qemu
    qemu.parent.mkdir()
    monkeypatch.setenv("PATH", str(qemu.parent), prepend=os.pathsep)
    monkeypatch.setattr(acceleration, "_KVM", qemu.parent)

    def find(what: str) -> int:
        if not qemu.exists():  # Its size and its time identify it.
            qemu.write_text(QEMU.format(what=what))
            qemu.chmod(0o755)
        found = acceleration.best_wall_acceleration(arch, cache=tmp_path / "cache")
        assert found.acceleration == "mttcg" and found.reason
        return len(qemu.with_name(f"{qemu.name}.calls").read_text().splitlines())

    return find


def test_a_probe_guest_that_was_late_is_tried_again_after_a_while(
    probes: Callable[[str], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acceleration, "_LIMIT_S", 1.0)
    assert probes("exec sleep 100") == 1
    assert probes("") == 1
    later = time.time() + 901
    monkeypatch.setattr(time, "time", lambda: later)
    assert probes("") == 2


def test_every_other_fault_of_the_probe_is_kept(
    probes: Callable[[str], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert probes("exit 3") == 1
    later = time.time() + 1e6
    monkeypatch.setattr(time, "time", lambda: later)
    assert probes("") == 1


def test_a_cache_that_cannot_be_written_is_probed_each_time(
    probes: Callable[[str], int], tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file, in which no file can be made")
    assert probes("exit 3") == 1
    assert probes("") == 2
