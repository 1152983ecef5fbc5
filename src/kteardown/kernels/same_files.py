"""A kernel that was built of the same files for other patches is not built again.

A new version of a series often has another message, one more ``Reviewed-by:``, or its changes in
another order. Its patches are not those of the earlier version; what they leave in the source tree
may be.
"""

import hashlib
import json
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from kteardown.kernels import cache_folder
from kteardown.kernels.apply_patches import PatchedFiles
from kteardown.kernels.cache import DAMAGED, META, Cache
from kteardown.paths import key_of


def digest(base_key: str, patched: PatchedFiles) -> str:
    """Return a hash of all that a patched kernel is built of: that of its base, and its patched
    files."""
    files = [(name, _content(patched.folder / name)) for name in sorted(patched.changed)]
    return key_of(json.dumps([base_key, files, sorted(patched.removed)]).encode())


def reuse(kernels: Cache, files: str, key: str, series: str) -> bool:
    """Publish, as the kernel ``key`` of ``series``, one whose ``files`` have this digest, if there
    is one.

    Return whether there is one. What is copied was verified. Raises LabError if the disk is full.
    """
    for folder in kernels.folders():
        fields = _fields(folder)
        if fields.get("files") != files or (image := kernels.lookup(folder.name, "")) is None:
            continue
        with cache_folder.published(kernels.kernel_path(key)) as copy:
            for file in folder.iterdir():
                shutil.copyfile(file, copy / file.name)
            described = replace(image, image=copy / image.image.name, series=series)
            facts = {
                name: value for name, value in fields.items() if name not in ("image", "size_kb")
            }
            kernels.describe(copy, described, **facts)
        return True
    return False


def _fields(folder: Path) -> dict[str, Any]:
    """Return the description of a kernel; empty if it is damaged."""
    with suppress(*DAMAGED):
        fields = json.loads((folder / META).read_text())
        return fields if isinstance(fields, dict) else {}
    return {}


def _content(file: Path) -> list[str]:
    if file.is_symlink():
        return ["link", os.readlink(file)]
    # As ``apply_patches.copy_patched`` gives the file to the build.
    kind = "program" if os.access(file, os.X_OK) else "file"
    return [kind, hashlib.sha256(file.read_bytes()).hexdigest()]
