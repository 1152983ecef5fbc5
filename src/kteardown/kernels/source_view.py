"""A source tree with a series applied, as a program in the sandbox sees it, without a copy of the tree.

The folders in which a patch adds, changes or removes a file are copied, without the folders in them; all
others are those of the cached source, read-only.
"""

import os
import shutil
from pathlib import Path, PurePosixPath

from kteardown.kernels.apply_patches import PatchedFiles
from kteardown.sandbox import Mount

TREE = Path("/linux")
"""Where a program in the sandbox sees the tree."""
BUILD = "build"
"""The build folder, inside the source tree.
Kbuild refers to a source tree that is the parent of the build folder by a relative path
(srctree = ..), so that no folder name gets into the image.
"""


def source_view(source: Path, patched: PatchedFiles | None, scratch: Path) -> list[Mount]:
    """Return what shows ``source`` with ``patched`` at ``TREE``; ``scratch`` gets the copied folders.

    The top folder is always copied: it gets the folder for the build, and merge_config.sh writes into it.
    """
    touched = {PurePosixPath(name) for name in (*patched.changed, *patched.removed)} if patched else set()
    places = {PurePosixPath()}
    for path in touched:
        # The first folder above a new one gets a place for it.
        for parent in path.parents:
            places.add(parent)
            if (source / parent).is_dir():
                break
    mounts: list[Mount] = []
    for number, place in enumerate(sorted(places, key=lambda place: len(place.parts))):
        folder = scratch / str(number)
        inner = _copy(source / place, folder, {path.name for path in touched if path.parent == place})
        new = {path.name for path in places if path.parent == place and path != place}
        for name in (*new, *([BUILD] if not place.parts else [])):
            (folder / name).mkdir(exist_ok=True)
        mounts.append(Mount(folder, TREE / place, writable=not place.parts))
        others = [place / name for name in inner if place / name not in places]
        mounts += [Mount(source / other, TREE / other) for other in others]
        for path in touched:
            if patched and path.parent == place and str(path) in patched.changed:
                _copy_patched(patched, str(path), folder / path.name)
    # After each step, links are removed from what a program of the build can write to.
    links = scratch / "links"
    links.mkdir()
    for link in (path for path in (scratch / "0").iterdir() if path.is_symlink()):
        mounts.append(Mount(link.rename(links / link.name), TREE / link.name, link=True))
    return mounts


def install(patched: PatchedFiles, tree: Path) -> None:
    """Make ``tree``, whose files may be hard links to others, the patched one."""
    for name in (*patched.changed, *patched.removed):
        (tree / name).unlink(missing_ok=True)
    for name in patched.changed:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        _copy_patched(patched, name, tree / name)


def _copy_patched(patched: PatchedFiles, name: str, target: Path) -> None:
    """Copy a patched file, or the link that it is, to ``target``, which does not exist; all may read it."""
    file = patched.folder / name
    shutil.copyfile(file, target, follow_symlinks=False)
    if not target.is_symlink():
        # Not a copy of its time: it must be newer than the objects compiled from the file before.
        target.chmod(0o755 if os.access(file, os.X_OK) else 0o644)


def _copy(source: Path, folder: Path, without: set[str]) -> list[str]:
    """Copy the files of ``source``, with their times, and make its folders; return the names of these."""
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    inner = []
    for entry in os.scandir(source) if source.is_dir() else ():
        if entry.is_dir(follow_symlinks=False):
            (folder / entry.name).mkdir()
            inner.append(entry.name)
        elif entry.name not in without:
            shutil.copy2(entry.path, folder / entry.name, follow_symlinks=False)
    return sorted(inner)
