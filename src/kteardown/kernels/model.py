"""What the kernels stage takes and gives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kteardown.machines.base import Arch


@dataclass(frozen=True)
class KernelRequest:
    """A kernel to have: a source, the patches on top, the fragments in its configuration."""

    name: str
    """What the result calls it: ``base`` or the variant's name."""
    source: str
    patches: tuple[Path, ...] = ()
    series: str = ""
    fragments: tuple[str, ...] = ()
    arch: Arch = "x86_64"


@dataclass(frozen=True)
class KernelImage:
    """A kernel that is there, ready to boot."""

    name: str
    image: Path
    source: str
    """The source as it was found, exact version included (``debian:6.12.117-1``)."""
    series: str
    arch: Arch
    release: str
    compiler: str
    config_hash: str
    image_hash: str
    modules: tuple[Path, ...] = ()
    """Modules to load in this order before the first trial; empty for kernels built here."""
