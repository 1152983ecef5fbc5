"""Backports of a series: the same change, written for kernels that differ too much for one text.

A backport is chosen by trying which one applies to the source, not by a version number.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from kteardown.errors import BuildError
from kteardown.kernels import apply_patches
from kteardown.kernels.request import KernelRequest
from kteardown.kernels.source import Source, Sources


def choose(request: KernelRequest, source: Source, sources: Sources) -> KernelRequest:
    """Return ``request`` with the patches of the first backport of which every patch applies to ``source``.

    A request without backports is returned unchanged. Raises BuildError, with the reason for each backport,
    if none applies, InputError if a file is not a patch, LabError if the source cannot be unpacked.
    """
    if not request.backports or not request.patch_set:
        return request
    tree = sources.tree(source)
    reasons = []
    for files in request.backports:
        reason = failure(tree, files, source.id)
        if not reason:
            numbers = request.patch_set.patches
            return replace(request, patches=tuple(files[n - 1] for n in numbers), backports=())
        reasons.append(f"backport {files[0].parent.name}: {reason}")
    raise BuildError(
        "\n".join((f"no backport of {request.patch_set.series} applies to {source.id}", *reasons)),
        hint="port one of them to this source, or choose a source that it was written for.",
    )


def failure(tree: Path, files: Sequence[Path], source: str) -> str:
    """Return why the patches ``files`` do not apply to ``tree``, or an empty string if they apply."""
    with TemporaryDirectory(prefix="kteardown-") as folder:
        try:
            apply_patches.apply(tree, files, Path(folder), source)
        except BuildError as error:
            return error.message
    return ""
