"""Of a series that is there for several kernels, the backport that applies to a source."""

from dataclasses import replace

from kteardown.errors import BuildError
from kteardown.kernels import apply_patches
from kteardown.kernels.request import KernelRequest
from kteardown.kernels.source import Source, Sources


def choose_backport(request: KernelRequest, source: Source, sources: Sources) -> KernelRequest:
    """Return ``request`` with the patches of the first backport of which every patch applies to ``source``.

    A request without backports is returned unchanged. Raises BuildError, with the reason for each backport,
    if none applies, InputError if a file is not a patch, LabError if the source cannot be unpacked.
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
        hint="port one of them to this source, or choose a source that it was written for.",
    )
