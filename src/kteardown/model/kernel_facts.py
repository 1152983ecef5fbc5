"""The kernels of a result, as they were built."""

from collections.abc import Mapping

from pydantic import Field

from kteardown.model.workload import FiniteModel


class PatchSet(FiniteModel):
    """The patches of a series that a kernel has: ``patches``, counted from 1, of ``total``.

    ``subjects`` has the subject of each patch in ``patches``. ``for_ablation``: the kernel was
    built to find the effect of each patch, and not requested as a variant.
    """

    series: str
    patches: tuple[int, ...]
    total: int
    subjects: tuple[str, ...] = ()
    for_ablation: bool = False

    @property
    def whole(self) -> bool:
        return self.patches == tuple(range(1, self.total + 1))


class KernelFacts(FiniteModel):
    """One kernel of a result, as it was built and with the release that it reported when it ran."""

    release: str
    source: str
    series: str = ""
    arch: str
    compiler: str
    config_hash: str
    image_hash: str
    patch_set: PatchSet | None = None
    """None for base and for a second source."""
    sandboxed: bool = True
    """False if it was built without the sandbox (``--unsafe-build``)."""
    unchanged: bool = False
    """Whether no object differs from that of base, although the kernel has patches."""
    script_modules: dict[str, tuple[str, ...]] = Field(default={})
    """Of a prebuilt kernel, by the name or alias that a script asks for: the modules of its package
    that are loaded before the script, in their order."""

    @property
    def for_ablation(self) -> bool:
        return self.patch_set is not None and self.patch_set.for_ablation


def not_built(kernels: Mapping[str, KernelFacts]) -> tuple[str, ...]:
    """Return the requested variants with patches of which nothing is in the kernel that was
    built."""
    return tuple(
        name
        for name, facts in kernels.items()
        if facts.unchanged and facts.patch_set is not None and not facts.for_ablation
    )


class Unavailable(FiniteModel):
    """A kernel of an ablation that could not be built, and why: its patches do not apply, or do not
    build."""

    kernel: str
    patch_set: PatchSet
    reason: str
