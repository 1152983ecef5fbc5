from __future__ import annotations

import platform
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
    assert f"the guest {arch}" in found.reason
    assert not list(tmp_path.iterdir())
