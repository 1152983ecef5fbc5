"""What a build takes: the tree, the patches, the compiler and the configuration."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from kteardown import paths, sandbox
from kteardown.errors import BuildError, InputError
from kteardown.inputs.fragments import is_fragment_path
from kteardown.kernels import apply_patches, cache, kconfig, toolchain
from kteardown.kernels.cache import Cache
from kteardown.kernels.kconfig import WantedSymbol
from kteardown.kernels.request import Exact, KernelRequest
from kteardown.kernels.source import Source, Sources
from kteardown.kernels.source_name import with_short_commit

_compiler = lru_cache(toolchain.compiler_version)


@dataclass(frozen=True)
class BuildPlan:
    """One kernel to build: the request and everything that its cache key depends on."""

    request: KernelRequest
    source: Source
    wanted: tuple[WantedSymbol, ...]
    compiler: str
    key: str
    base_key: str
    """The key of the same kernel without patches; equal to ``key`` if it has no patches."""

    @property
    def sandboxed(self) -> bool:
        """Whether it is built in the sandbox; without it, only if the user or the lab knows all
        patches."""
        return not (sandbox.problem() or sandbox.unsafe_build)

    @property
    def title(self) -> str:
        """The kernel in progress and messages: source, series and architecture."""
        return " ".join(
            filter(
                None, (with_short_commit(self.source.id), self.request.series, self.request.arch)
            )
        )


def base_objects(request: KernelRequest, sources: Sources) -> Path | None:
    """Return the build folder of the base kernel of ``request``, if it is in the cache."""
    objects = Cache(sources.folder).tree_path(plan_build(request, sources).base_key)
    return objects if (objects / ".config").is_file() else None


def plan_build(request: KernelRequest, sources: Sources) -> BuildPlan:
    source = sources.identify(request.source)
    request = choose_backport(request, source, sources)
    wanted = wanted_symbols(request)
    if request.exact is not None:
        _check_exact(request, request.exact, source, wanted)
    compiler = _compiler(request.arch, request.compiler)
    key = cache.key(source.id, request.patches, wanted, request.arch, compiler)
    base_key = cache.key(source.id, (), wanted, request.arch, compiler)
    return BuildPlan(request, source, wanted, compiler, key, base_key)


def wanted_symbols(request: KernelRequest) -> tuple[WantedSymbol, ...]:
    return tuple(kconfig.wanted_symbols(paths.data_dir("kernels"), request.arch, request.fragments))


def _check_exact(
    request: KernelRequest, exact: Exact, source: Source, wanted: Sequence[WantedSymbol]
) -> None:
    """Raise InputError if the kernel would not be what it was when its run was planned."""
    if source.id != exact.source:
        raise InputError(
            f"{request.name} would be built from {source.id}, but the run was planned with "
            f"{exact.source}",
            hint=f"restore {request.source}, or start the experiment anew.",
        )
    if kconfig.wanted_digest(wanted) != exact.config:
        files = (
            name if is_fragment_path(name) else f"fragments/{name}" for name in request.fragments
        )
        names = ", ".join(("base", request.arch, *files))
        raise InputError(
            f"{request.name} would be built with another configuration than the run was planned "
            f"with: a file in {paths.data_dir('kernels')} has changed ({names})",
            hint=(
                "restore the file, use the kteardown that began the run, or start the experiment "
                "anew."
            ),
        )


def choose_backport(request: KernelRequest, source: Source, sources: Sources) -> KernelRequest:
    """Return ``request`` with the patches of the first backport of which every patch applies to
    ``source``.

    A request without backports is returned unchanged. Raises BuildError, with the reason for each
    backport, if none applies, InputError if a file is not a patch, LabError if the source cannot be
    unpacked.
    """
    if not request.backports or not request.patch_set:
        return request
    tree = sources.tree(source)
    reasons = []
    for files in request.backports:
        reason = apply_patches.failure(tree, files, source.id)
        if not reason:
            numbers = request.patch_set.patches
            return replace(request, patches=tuple(files[n - 1] for n in numbers), backports=())
        reasons.append(f"backport {files[0].parent.name}: {reason}")
    raise BuildError(
        "\n".join((f"no backport of {request.patch_set.series} applies to {source.id}", *reasons)),
        hint="port a backport to this source, or choose a source for which one was written.",
    )
