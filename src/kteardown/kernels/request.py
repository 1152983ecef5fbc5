"""The input and the output of the kernels stage."""

from dataclasses import dataclass, field
from pathlib import Path

from kteardown.model.arch import DEFAULT_ARCH, Arch
from kteardown.model.kernel_facts import PatchSet


@dataclass(frozen=True)
class Exact:
    """What the names in a request referred to when its run was planned."""

    source: str
    """The exact source, as in ``KernelImage``."""
    config: str
    """A hash of the symbols that its fragments set."""


@dataclass(frozen=True)
class KernelRequest:
    """A requested kernel: a source, the patches to apply, the fragments of its configuration."""

    name: str
    """The name in the result: ``base`` or that of the variant."""
    source: str
    patches: tuple[Path, ...] = ()
    series: str = ""
    fragments: tuple[str, ...] = ()
    """Symbols, the names of shipped files, and the paths of others
    (``inputs.fragments.located``)."""
    arch: Arch = DEFAULT_ARCH
    patch_set: PatchSet | None = None
    """Which patches of which series ``patches`` are; None if the variant is a second source."""
    backports: tuple[tuple[Path, ...], ...] = ()
    """All patches of the series in each of its backports, if it has several; ``patches`` are those
    of the first one until ``backports.choose_backport`` has chosen one."""
    optional: bool = False
    """Whether the kernel is left out, without an error, if its patches do not apply or do not
    build."""
    modules: tuple[str, ...] = ()
    """Modules that single boots of a prebuilt kernel load, by name or alias, without those that
    they depend on."""
    compiler: str = ""
    """A name or a path; empty: the default of the architecture."""
    exact: Exact | None = None
    """It is not built from anything else; None if any state of its source and its fragments will
    do."""


@dataclass(frozen=True)
class KernelImage:
    """A kernel in the cache, ready to boot."""

    name: str
    image: Path
    source: str
    """The exact source, with its version (``debian:6.12.117-1``)."""
    series: str
    arch: Arch
    release: str
    compiler: str
    config_hash: str
    image_hash: str
    modules: tuple[Path, ...] = ()
    """The modules to load before the first trial, in this order; empty for kernels built here."""
    optional_modules: dict[str, tuple[Path, ...]] = field(default_factory=dict)
    """What to load, in order, for each of the requested modules; empty if it is built in or
    missing."""
    builtin: tuple[str, ...] = ()
    """Of a package: the modules that are built in."""
    sandboxed: bool = True
    """Whether it was built in the sandbox, or is ready-made."""


@dataclass(frozen=True)
class Built:
    """The outcome for the requested kernels."""

    images: dict[str, KernelImage]
    """The available kernels by name."""
    left_out: dict[str, str]
    """The optional kernels that could not be built, by name, with the reason."""


@dataclass(frozen=True)
class Building:
    """The kernels that have to be built, and how long that takes.

    ``seconds`` is None if there are no earlier builds to estimate it from, and 0 if nothing has to
    be built.
    """

    kernels: tuple[str, ...]
    seconds: float | None
