"""Provide the requested kernels: from the cache, or built into it."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from statistics import median

from kteardown.errors import BuildError, LabError, MissingError
from kteardown.kernels import (
    cache_folder,
    kconfig,
    prebuilt,
    toolchain,
)
from kteardown.kernels.build_plan import BuildPlan, plan_build, wanted_symbols
from kteardown.kernels.builder import Builder
from kteardown.kernels.cache import Cache
from kteardown.kernels.object_changes import Functions
from kteardown.kernels.request import Building, Built, Exact, KernelImage, KernelRequest
from kteardown.kernels.source import Sources
from kteardown.paths import replace_text
from kteardown.progress import Reporter, SilentReporter


def ensure(requests: Sequence[KernelRequest], *, cache_dir: Path, reporter: Reporter) -> Built:
    """Return every kernel of ``requests`` by its name; build those that are not in the cache.

    Base kernels are built before variants, whose builds start from the objects of their base.
    All patches are applied before anything is compiled.

    Raises InputError if a source, a fragment or a patch does not exist or is malformed;
    BuildError if, for a kernel that is not optional, a patch does not apply, a symbol cannot be
    set or the compiler fails; and LabError if tools or disk space are missing.
    """
    sources = Sources(cache_dir, reporter)
    kernels = Cache(cache_dir, reporter)
    images: dict[str, KernelImage] = {}
    plans: list[BuildPlan] = []
    for request in requests:
        if prebuilt.is_prebuilt(request.source):
            images[request.name] = prebuilt.ensure(request, kernels, sources, reporter)
            continue
        plan = plan_build(request, sources)
        image = kernels.lookup(plan.key, request.name)
        if image:
            images[request.name] = image
        else:
            plans.append(plan)
    left_out: dict[str, str] = {}
    if plans:
        with _building(kernels, sources, reporter, "patches") as builder:
            left_out = builder.build(plans, images)
    available = [request for request in requests if request.name not in left_out]
    # Equal patches are one kernel in the cache, even if the requests give their series different
    # names.
    return Built({r.name: replace(images[r.name], series=r.series) for r in available}, left_out)


def settle(request: KernelRequest, sources: Sources) -> KernelRequest:
    """Return ``request`` such that it is never built from another source or configuration than now.

    A revision of a git tree becomes its commit. What is built from another state of any other
    source, or with other fragments, is refused. Raises InputError, LabError.
    """
    if prebuilt.is_prebuilt(request.source):
        return request
    source = sources.identify(request.source)
    exact = Exact(source.id, kconfig.wanted_digest(wanted_symbols(request)))
    return replace(request, source=source.pinned(request.source), exact=exact)


def resolved_config(
    request: KernelRequest, sources: Sources, reporter: Reporter
) -> Mapping[str, str]:
    """Return the symbols that the configuration of ``request`` sets: what Kconfig makes of its
    fragments.

    If the kernel is not built, Kconfig runs, once for each configuration. If it cannot, which the
    build will report, only what the fragments name is returned. Raises InputError, LabError.
    """
    plan = plan_build(request, sources)
    kernels = Cache(sources.folder, reporter)
    cached = sources.folder / "resolved" / f"{plan.base_key}.config"
    candidates = [
        kernels.tree_path(plan.base_key) / ".config",
        kernels.kernel_path(plan.base_key) / "config",
        cached,
    ]
    path = next((path for path in candidates if path.is_file()), None)
    if path is None:
        named = {want.symbol: want.value for want in plan.wanted}
        if not (sources.tree(plan.source) / "scripts" / "kconfig").is_dir():
            return named
        try:
            toolchain.need_build_tools(plan.request.arch, plan.request.compiler)
            with _building(kernels, sources, reporter, "config") as builder:
                text = builder.resolve(plan)
        except (BuildError, MissingError):
            return named
        cached.parent.mkdir(exist_ok=True)
        replace_text(path := cached, text)
    return kconfig.parse_config(path.read_text(errors="replace"))


def changed_objects(base: KernelImage, variant: KernelImage) -> list[str]:
    """Return which objects of ``variant`` differ from those of ``base``; empty if nothing that runs
    differs.

    A kernel without patches, such as a second source, has no list of them: it differs as a whole.
    """
    if base.image_hash == variant.image_hash:
        return []
    fields = json.loads((variant.image.parent / "kernel.json").read_text())
    return list(fields.get("changed_objects", ["vmlinux"]))


def functions_of(variant: KernelImage) -> tuple[Functions, Functions] | None:
    """Return which functions of ``variant`` differ from those of its base, by object; None if
    unknown.

    The second are those of them that differ only in where the fields of structures are.
    """
    fields = json.loads((variant.image.parent / "kernel.json").read_text())
    functions: Functions | None = fields.get("changed_functions")
    return None if functions is None else (functions, fields.get("moved_functions") or {})


def check_patches(
    requests: Sequence[KernelRequest], *, cache_dir: Path, reporter: Reporter
) -> None:
    """Apply the patches of ``requests`` to copies and compile nothing.

    Raises BuildError if one does not apply, InputError if a file is not a patch, LabError.
    """
    sources = Sources(cache_dir, reporter)
    with _building(Cache(cache_dir, reporter), sources, reporter, "patches") as builder:
        for request in requests:
            if request.patches:
                builder.apply(plan_build(request, sources))


def missing(requests: Sequence[KernelRequest], *, cache_dir: Path) -> list[KernelRequest]:
    """Return those of ``requests`` that would have to be built, as far as is known without the
    network."""
    sources = Sources(cache_dir, SilentReporter())
    kernels = Cache(cache_dir)
    absent = []
    for request in requests:
        if prebuilt.is_prebuilt(request.source):
            continue  # It only has to be unpacked, which takes little time.
        image = None
        if sources.identify_offline(request.source) is not None:
            with suppress(LabError):  # No compiler is installed.
                image = kernels.lookup(plan_build(request, sources).key, "")
        if image is None:
            absent.append(request)
    return absent


def cost(requests: Sequence[KernelRequest], *, cache_dir: Path) -> Building:
    """Return which of ``requests`` have to be built, and how long earlier builds of their kind
    took."""
    needed = missing(requests, cache_dir=cache_dir)
    seconds: float | None = 0.0
    for request in needed:
        took = Cache(cache_dir).built(request.arch, "seconds", variant=bool(request.patches))
        seconds = seconds + median(took) if took and seconds is not None else None
    return Building(tuple(request.name for request in needed), seconds)


@contextmanager
def _building(kernels: Cache, sources: Sources, reporter: Reporter, what: str) -> Iterator[Builder]:
    # In the cache, where the next build removes what a killed one left behind.
    target = kernels.tree_path(f"{what}-{os.getpid()}")
    with cache_folder.locked(target, reporter, what), cache_folder.scratch(target) as folder:
        yield Builder(kernels, sources, reporter, folder)
