"""Shared by tests that boot guests: a kernel, and a PID 1 that ends in the way that a test asks
for."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kteardown.door import Entry
from kteardown.inputs.load import load_experiment
from kteardown.kernels import build
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter
from kteardown.run.resolve import resolve
from kteardown.vm.initramfs import pack
from kteardown.vm.job import BootJob

TIMEOUT_S = 1800
FULL_TIMEOUT_S = 5400
"""For one test and the fixtures that it is the first to need, which may build several whole
kernels."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test a limit: one that hangs fails by its name."""
    for item in items:
        if item.path.parent == Path(__file__).parent and not item.get_closest_marker("timeout"):
            full = item.get_closest_marker("full")
            item.add_marker(pytest.mark.timeout(FULL_TIMEOUT_S if full else TIMEOUT_S))


@pytest.fixture(scope="session")
def base_image() -> Path:
    """The base kernel of the freezer experiment: from the user's cache, or built and kept there."""
    kernels = resolve(load_experiment("freezer")).kernels[:1]
    return (
        build.ensure(kernels, cache_dir=cache_dir(), reporter=SilentReporter()).images["base"].image
    )


@pytest.fixture(scope="session")
def guest_init(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``guest_init.c`` for x86_64: the kernel argument ``guest=`` says how its guest ends."""
    binary = tmp_path_factory.mktemp("guest") / "init"
    source = Path(__file__).with_name("guest_init.c")
    subprocess.run(["gcc", "-O2", "-Wall", "-Werror", "-static", "-o", binary, source], check=True)
    return binary


@pytest.fixture
def make_job(base_image: Path, guest_init: Path, tmp_path: Path) -> Callable[..., BootJob]:
    """A job whose guest ends as ``how`` says; keyword arguments replace fields of the job."""
    numbers = itertools.count()

    def make(how: str, **fields: object) -> BootJob:
        number = next(
            numbers
        )  # Not the number of files in the folder: tests make jobs in several threads.
        initramfs = pack(Entry(tmp_path) / f"initramfs-{number}", agent=guest_init, plan="")
        job: dict[str, object] = {
            "image": base_image,
            "initramfs": initramfs,
            "arch": "x86_64",
            "acceleration": "mttcg",
            "cpus": 1,
            "memory_mb": 128,
            "seed": 1,
            "console": Entry(tmp_path) / f"console-{number}",
            "silence_s": 180.0,
            "kernel_args": (f"guest={how}",),
        }
        return BootJob(**{**job, **fields})  # type: ignore[arg-type]

    return make
