"""The user space of an arm64 L1: Debian's QEMU for arm64 with all that it needs, and a shell."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from kteardown.kernels import cache_folder
from kteardown.kernels.archive import Archive, Package, Suite
from kteardown.kernels.guest_programs import guest_programs
from kteardown.kernels.source import Sources
from kteardown.kernels.unpack import unpack_deb
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
    for package in _needed(sources, "qemu-system-arm"):
        unpack_deb(sources.package_file(package, "arm64"), folder)
    for name in ("bin", "dev", "proc", "sys", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    (busybox,) = guest_programs(["busybox"], "arm64", sources, SilentReporter())
    shutil.copy(busybox, folder / "bin" / "sh")


def _needed(sources: Sources, name: str) -> list[Package]:
    """Return a package and all that it depends on, by the first alternative that the host's suites
    have."""
    sources.find_package(name, "arm64")  # Fetches the lists.
    lists = Archive(sources.folder / "lists", SilentReporter(), "arm64")
    known: dict[str, Package] = {}
    for mirror, suite in reversed(next(iter(lists.tiers().values()))):
        found = Suite(sources.folder / "lists", mirror, suite, "arm64").packages(r"\S+", "")
        known |= {package.name: package for package in found}
    needed: dict[str, Package] = {}
    left = [name]
    while left:
        wanted = left.pop()
        if wanted in known and wanted not in needed:
            needed[wanted] = known[wanted]
            left += re.findall(r"(?:^|, )([a-z0-9.+-]+)", known[wanted].depends)
    return list(needed.values())
