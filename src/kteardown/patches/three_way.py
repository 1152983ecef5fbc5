"""Fit a series into a source to which it does not apply as posted.

Where the files that it was made from are known, by the ids on its ``index`` lines, it is merged (three-way).
Elsewhere its hunks may be applied with one line of context instead of three.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from kteardown.kernels import apply_patches, git

_FILE = re.compile(r"^diff --git a/(\S+) b/(\S+)$")
_INDEX = re.compile(r"^index ([0-9a-f]{7,64})\.\.([0-9a-f]{7,64})")
_RENAME = re.compile(r"^rename from (\S+)$")
_IDENTITY = ("-c", "user.name=kteardown", "-c", "user.email=kteardown@localhost")


class PreImage(NamedTuple):
    """A file as the author of a series had it: its path, and the id of its content, abbreviated."""

    path: str
    blob: str


def pre_images(patches: Sequence[Path]) -> tuple[PreImage, ...]:
    """Return the files that a series changes, as they were before it; without those that it creates.

    Empty if the diffs have no ``index`` lines.
    """
    seen: dict[str, str] = {}
    for patch in patches:
        file = old = ""
        for line in patch.read_text(errors="replace").splitlines():
            if match := _FILE.match(line):
                old, file = match[1], match[2]
            elif match := _RENAME.match(line):
                old = match[1]
            elif file and (match := _INDEX.match(line)):
                if old not in seen:
                    seen[old] = "" if set(match[1]) == {"0"} else match[1]
                seen.setdefault(file, "")
                file = ""
    return tuple(PreImage(path, blob) for path, blob in seen.items() if blob)


def blob_id(path: Path) -> str:
    """Return what ``git hash-object`` prints for a file; empty if there is no such file."""
    if not path.is_file():
        return ""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def merge(
    patches: Sequence[Path], tree: Path, known: Sequence[Path], repositories: Sequence[Path]
) -> list[tuple[str, bytes]] | None:
    """Merge ``patches`` into ``tree`` with ``git am --3way``, and return them as they then are.

    ``known`` are trees, and ``repositories`` git trees, that may have the files that the series was made
    from. Returns None if these are not known, or if the merge has conflicts.
    """
    originals: dict[str, Path] = {}
    for image in pre_images(patches):
        found = next((k / image.path for k in known if blob_id(k / image.path).startswith(image.blob)), None)
        if found is None and not repositories:
            return None
        if found is not None:
            originals[image.path] = found
    with TemporaryDirectory(prefix="kteardown-") as work:
        repository = _Repository(Path(work), repositories, tree, patches)
        if originals:
            # All states of the files in between become known too, which later patches refer to.
            repository.commit(originals)
            repository.am()
            repository.git("am", "--abort")
        return repository.fitted("--3way")


def with_less_context(patches: Sequence[Path], tree: Path) -> list[tuple[str, bytes]] | None:
    """Apply ``patches`` to ``tree`` with one line of context, and return them as they then are, or None."""
    with TemporaryDirectory(prefix="kteardown-") as work:
        return _Repository(Path(work), (), tree, patches).fitted("-C1")


class _Repository:
    """A scratch repository that has only the files that a series touches."""

    def __init__(
        self, folder: Path, repositories: Sequence[Path], tree: Path, patches: Sequence[Path]
    ) -> None:
        # Nothing of git is in the work tree, which has what the patches put there.
        self._git_dir, self._work, self._out = (folder / name for name in ("git", "tree", "out"))
        self._work.mkdir()
        self._tree = tree
        git.prepare(self._git_dir)
        self.git("init", "-q", "--template=")
        objects = [git.folders(each)[1] / "objects" for each in repositories]
        alternates = self._git_dir / "objects/info/alternates"
        alternates.write_text("".join(f"{path}\n" for path in objects))
        self._series = apply_patches.read_series(tree, patches)

    def git(self, *argv: str) -> git.Done:
        """Run git in the work tree."""
        work_tree = f"--work-tree={self._work}"
        return git.run(*_IDENTITY, work_tree, *argv, git_dir=self._git_dir, cwd=self._work)

    def commit(self, files: Mapping[str, Path]) -> None:
        """Commit exactly these files, whatever was there."""
        self.git("rm", "-rqf", "--ignore-unmatch", ".")
        apply_patches.copy_files(files, self._work)
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "--allow-empty", "-m", "base")

    def am(self, *how: str) -> bool:
        """Commit the patches until one does not apply, and return whether all do. Raises InputError."""
        for patch in self._series:
            if not self.git("am", "-q", *how, f"-p{patch.strip}", str(patch.path.absolute())).ok:
                return False
            apply_patches.check_links(self._work, patch)
        return True

    def fitted(self, how: str) -> list[tuple[str, bytes]] | None:
        """Apply the patches to the tree and return them as they then are; None if that fails."""
        self.commit(apply_patches.touched(self._tree, self._series))
        if not self.am(how):
            return None
        options = ("--no-signature", "--zero-commit", "--full-index")  # Equal for equal patches.
        written = self.git("format-patch", *options, "-o", str(self._out), f"-{len(self._series)}")
        return [(path.name, path.read_bytes()) for path in map(Path, written.text.splitlines())]
