"""The user space of an arm64 L1: Debian's QEMU for arm64 with all that it needs, and a shell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from kteardown.kernels import cache_folder, prebuilt
from kteardown.kernels.apt import Package
from kteardown.kernels.source import Sources
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter


def tree() -> Path:
    """Return a folder with the programs, from the cache or made there from Debian's packages."""
    target = cache_dir() / "programs" / "tests-kvm-arm64"
    with cache_folder.locked(target, SilentReporter(), "unpack QEMU for arm64"):
        if not target.is_dir():
            with cache_folder.published(target) as folder:
                _unpack(folder)
    return target


def _unpack(folder: Path) -> None:
    sources = Sources(cache_dir(), SilentReporter())
    package = sources.find_package("qemu-system-arm", "arm64")
    debs = folder / "debs"
    debs.mkdir()
    _download(package, debs)
    for deb in debs.iterdir():
        subprocess.run(["dpkg-deb", "--extract", deb, folder], check=True)
    shutil.rmtree(debs)
    for name in ("bin", "dev", "proc", "sys", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    (busybox,) = prebuilt.guest_programs(["busybox"], "arm64", sources, SilentReporter())
    shutil.copy(busybox, folder / "bin" / "sh")


def _download(package: Package, folder: Path) -> None:
    """Download ``package`` and what it depends on, by the private apt root in which it was found."""
    root = cache_dir() / "apt" / f"{package.tier.name}-arm64"
    environment = {**os.environ, "APT_CONFIG": str(root / "apt.conf"), "LC_ALL": "C"}
    simulated = ["apt-get", "--simulate", "--no-install-recommends", "install", package.name]
    text = subprocess.run(simulated, env=environment, check=True, capture_output=True, text=True).stdout
    needed = [f"{name}={version}" for name, version in re.findall(r"^Inst (\S+) \((\S+)", text, re.MULTILINE)]
    subprocess.run(["apt-get", "-qq", "download", *needed], cwd=folder, env=environment, check=True)
