"""Editions of a series: the same change, written for kernels that differ too much for one text.

Which one is meant is not told by a version: it is the one that applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from kteardown.errors import BuildError
from kteardown.kernels import apply_patches
from kteardown.kernels.request import KernelRequest
from kteardown.kernels.source import Source, Sources


def settle(request: KernelRequest, source: Source, sources: Sources) -> KernelRequest:
    """``request`` with the patches of the first edition that, whole, applies to ``source``.

    A request without editions stays as it is. Raises BuildError, with what each edition lacks, where none
    applies, InputError for a file that is no patch, LabError where the source cannot be unpacked.
    """
    if not request.backports or not request.patch_set:
        return request
    tree = sources.tree(source)
    reasons = []
    for files in request.backports:
        reason = _why_not(tree, files, source.id)
        if not reason:
            numbers = request.patch_set.patches
            return replace(request, patches=tuple(files[n - 1] for n in numbers), backports=())
        reasons.append(f"edition {files[0].parent.name}: {reason}")
    raise BuildError(
        "\n".join((f"no edition of {request.patch_set.series} applies to {source.id}", *reasons)),
        hint="Port one of them to this source, or choose a source that it was written for.",
    )


def _why_not(tree: Path, files: Sequence[Path], source: str) -> str:
    with TemporaryDirectory(prefix="kteardown-") as folder:
        try:
            apply_patches.apply(tree, files, Path(folder), source)
        except BuildError as error:
            return error.message
    return ""
