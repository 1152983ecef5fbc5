"""Apply patches to a tree that has changed since: by a merge, or with less context."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from kteardown.patches.series_history import Repository

DIFF = re.compile(r"^diff --git a/(\S+) b/(\S+)$")
INDEX = re.compile(r"^index ([0-9a-f]{7,64})\.\.([0-9a-f]{7,64})")
RENAME = re.compile(r"^rename from (\S+)$")


def pre_images(patches: Sequence[Path]) -> dict[str, str]:
    """Return the files that a series changes, each with the id of what it was before, abbreviated.

    Without those that the series creates; empty if the diffs have no ``index`` lines.
    """
    images: dict[str, str] = {}
    for patch in patches:
        file = old = ""
        for line in patch.read_text(errors="replace").splitlines():
            if match := DIFF.match(line):
                old = match[1]
                file = match[2]
            elif match := RENAME.match(line):
                old = match[1]
            elif file and (match := INDEX.match(line)):
                if old not in images:
                    images[old] = "" if set(match[1]) == {"0"} else match[1]
                images.setdefault(file, "")
                file = ""
    return {path: blob for path, blob in images.items() if blob}


def blob_id(path: Path) -> str:
    """Return what ``git hash-object`` prints for a file; empty if there is no such file."""
    if not path.is_file():
        return ""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def merge(
    patches: Sequence[Path], tree: Path, trees: Sequence[Path], repositories: Sequence[Path]
) -> list[tuple[str, bytes]] | None:
    """Merge ``patches`` into ``tree`` with ``git am --3way``, and return them as they then are.

    ``trees`` are source trees, and ``repositories`` git trees, that may have the files from which
    the series was made. Returns None if these are not known, or if the merge has conflicts.
    """
    originals: dict[str, Path] = {}
    for path, blob in pre_images(patches).items():
        original = next(
            (tree / path for tree in trees if blob_id(tree / path).startswith(blob)), None
        )
        if original is None and not repositories:
            return None
        if original is not None:
            originals[path] = original
    with TemporaryDirectory(prefix="kteardown-") as work:
        repository = Repository(Path(work), repositories, tree, patches)
        if originals:
            # All states of the files in between become known too, which later patches refer to.
            repository.commit(originals)
            repository.am()
            repository.git("am", "--abort")
        return repository.fitted("--3way")


def with_less_context(patches: Sequence[Path], tree: Path) -> list[tuple[str, bytes]] | None:
    """Apply ``patches`` to ``tree`` with one line of context, and return them as they then are, or
    None."""
    with TemporaryDirectory(prefix="kteardown-") as work:
        return Repository(Path(work), (), tree, patches).fitted("-C1")
