"""Fit a series into a source to which it does not apply as posted.

Where the files that it was made from are known, by the ids on its ``index`` lines, it is merged (three-way).
Elsewhere its hunks may be applied with one line of context instead of three.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kteardown.kernels import apply_patches
from kteardown.kernels.toolchain import capture

_FILE = re.compile(r"^diff --git a/(\S+) b/(\S+)$")
_INDEX = re.compile(r"^index ([0-9a-f]{7,64})\.\.([0-9a-f]{7,64})")
_RENAME = re.compile(r"^rename from (\S+)$")
_IDENTITY = ("-c", "user.name=kteardown", "-c", "user.email=kteardown@localhost")


@dataclass(frozen=True)
class PreImage:
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
        repository = _Repository(Path(work), repositories)
        if originals:
            # All states of the files in between become known too, which later patches refer to.
            repository.commit(originals)
            repository.git("am", "-q", *map(str, patches))
            repository.git("am", "--abort")
        return repository.fitted(patches, tree, "--3way")


def with_less_context(patches: Sequence[Path], tree: Path) -> list[tuple[str, bytes]] | None:
    """Apply ``patches`` to ``tree`` with one line of context, and return them as they then are, or None."""
    with TemporaryDirectory(prefix="kteardown-") as work:
        return _Repository(Path(work), ()).fitted(patches, tree, "-C1")


class _Repository:
    """A scratch repository that has only the files that a series touches."""

    def __init__(self, folder: Path, repositories: Sequence[Path]) -> None:
        self._folder = folder
        kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        self._environment = {
            **kept,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
            "LC_ALL": "C",
        }
        self.git("init", "-q")
        objects = [path for each in repositories if (path := self._objects(each))]
        (folder / ".git/objects/info").mkdir(parents=True, exist_ok=True)
        (folder / ".git/objects/info/alternates").write_text("".join(f"{path}\n" for path in objects))

    def git(self, *argv: str) -> bool:
        """Run git, and return whether it succeeded."""
        done = capture(["git", *_IDENTITY, *argv], env=self._environment, cwd=self._folder)
        return done.returncode == 0

    def commit(self, files: Mapping[str, Path]) -> None:
        """Commit exactly these files, whatever was there."""
        self.git("rm", "-rqf", "--ignore-unmatch", ".")
        for name, path in files.items():
            (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, self._folder / name)
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "--allow-empty", "-m", "base")

    def fitted(self, patches: Sequence[Path], tree: Path, how: str) -> list[tuple[str, bytes]] | None:
        """Apply ``patches`` to ``tree`` and return them as they then are; None if that fails."""
        touched = dict.fromkeys(name for patch in patches for name, _ in apply_patches.files_in(patch))
        self.commit({name: tree / name for name in touched if (tree / name).is_file()})
        if not self.git("am", "-q", how, *map(str, patches)):
            return None
        return self.patches(len(patches))

    def patches(self, count: int) -> list[tuple[str, bytes]]:
        """Return the last ``count`` commits as patches, each a file name and a text."""
        options = ("-q", "--no-signature", "--zero-commit", "--full-index")  # Equal for equal patches.
        self.git("format-patch", *options, "-o", ".merged", f"-{count}")
        return [(path.name, path.read_bytes()) for path in sorted((self._folder / ".merged").iterdir())]

    def _objects(self, repository: Path) -> Path | None:
        done = capture(
            ["git", "-C", str(repository), "rev-parse", "--path-format=absolute", "--git-path", "objects"]
        )
        return Path(done.stdout.strip()) if done.returncode == 0 else None
