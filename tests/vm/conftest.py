"""What tests that boot share: a kernel, and a PID 1 that ends in the way a test wants."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kteardown.machines.base import BootJob
from kteardown.machines.initramfs import pack


@pytest.fixture(scope="session")
def base_image() -> Path:
    """An x86_64 kernel with the lab's base configuration."""
    return Path(os.environ["KTEARDOWN_TEST_IMAGE"])


@pytest.fixture(scope="session")
def guest_init(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``guest_init.c`` for x86_64: the kernel argument ``guest=`` says how its guest ends."""
    binary = tmp_path_factory.mktemp("guest") / "init"
    source = Path(__file__).with_name("guest_init.c")
    subprocess.run(["gcc", "-O2", "-Wall", "-Werror", "-static", "-o", binary, source], check=True)
    return binary


@pytest.fixture
def make_job(base_image: Path, guest_init: Path, tmp_path: Path) -> Callable[..., BootJob]:
    """A job whose guest ends as ``how`` says; further words change fields of the job."""

    def make(how: str, **fields: object) -> BootJob:
        number = len(list(tmp_path.iterdir()))
        initramfs = pack(tmp_path / f"initramfs-{number}", agent=guest_init, plan="")
        job: dict[str, object] = {
            "image": base_image,
            "initramfs": initramfs,
            "arch": "x86_64",
            "acceleration": "mttcg",
            "cpus": 1,
            "memory_mb": 128,
            "seed": 1,
            "console": tmp_path / f"console-{number}",
            "silence_s": 60.0,
            "kernel_args": (f"guest={how}",),
        }
        return BootJob(**{**job, **fields})  # type: ignore[arg-type]

    return make
