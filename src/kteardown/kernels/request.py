"""What the kernels stage takes and gives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kteardown.model.arch import Arch
from kteardown.model.result import PatchSet


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
    patch_set: PatchSet | None = None
    """Which patches of which series these are; None for a source of its own."""
    backports: tuple[tuple[Path, ...], ...] = ()
    """All patches of each backport of the series, if it has several; ``patches`` are of the first until
    ``backports.settle`` has chosen."""
    optional: bool = False
    """Where its patches do not apply or do not build, it is left out, and that is no error."""


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


@dataclass(frozen=True)
class Built:
    """What became of the kernels that were asked for."""

    images: dict[str, KernelImage]
    left_out: dict[str, str]
    """Optional kernels that there are not, by name, and why."""


@dataclass(frozen=True)
class Building:
    """What has to be built. ``seconds`` is None where no record tells; 0 where nothing is missing."""

    kernels: tuple[str, ...]
    seconds: float | None
