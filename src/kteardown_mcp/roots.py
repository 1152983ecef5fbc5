"""Which files of this host a client may name: those below the roots that the user named.

The server reads files by itself, by ``kteardown.door``: no link below a root is followed, and no
device or pipe is opened. kteardown gets copies. Only git trees and kernel images, which are large,
are opened by kteardown under their own path.
"""

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path

from kteardown.door import Entry
from kteardown.errors import InputError
from kteardown.kernels import git
from kteardown_mcp.outside import quoted

_ALTERNATES = "objects/info/alternates"
_PLAIN = re.compile(r"[\w./+-]+")


class Roots:
    """The folders below which paths may lie, resolved. A relative path begins at the first one."""

    def __init__(self, named: Sequence[Path]) -> None:
        self.folders = tuple(folder.resolve() for folder in named)
        self._names = tuple(folder.absolute() for folder in named)

    @classmethod
    def of(cls, named: Sequence[Path]) -> "Roots":
        """Return the roots that the user named, or else the current folder.

        Clients start a server in the folder of a project, which is what their program may read
        anyway. Some start it in / or in the home folder: neither is a root unless the user names
        it. Raises InputError.
        """
        for folder in named:
            if not folder.is_dir():
                raise InputError(f"--root {folder}: there is no such folder", hint="name a folder.")
        if not named and Path.home().resolve().is_relative_to(Path.cwd()):
            raise InputError(
                f"the current folder is {Path.cwd()}, below which is everything",
                hint="name the folder of your patches and scripts with --root.",
            )
        return cls(named or (Path.cwd(),))

    def entry(self, path: str) -> Entry:
        """Return the file or folder at ``path``. Raises InputError if it is not below a root."""
        if "\0" in path:
            raise self._refused(path, "it has a zero byte")
        whole = Path(os.path.normpath(self.folders[0] / path))
        for name, root in zip(self._names, self.folders, strict=True):
            for base in (root, name):
                if whole.is_relative_to(base):
                    return Entry(root, whole.relative_to(base).parts)
        raise self._refused(path, "it is not below a root of this server")

    def content(self, path: str, most: int) -> tuple[str, bytes]:
        """Return the name of a file and all that is in it. Raises InputError."""
        entry = self.entry(path)
        try:
            return entry.name, entry.content(most)
        except OSError as error:
            raise self._refused(path, error.strerror or "it cannot be read") from error

    def plain(self, path: str) -> Path:
        """Return the path of a file that kteardown opens by itself. Raises InputError."""
        try:
            return self._part_of_source(path, self.entry(path).plain())
        except OSError as error:
            raise self._refused(path, error.strerror or "it cannot be read") from error

    def tree(self, path: str) -> Path:
        """Return the path of a git tree with its objects below the roots. Raises InputError."""
        entry = self.entry(path)
        try:
            if not stat.S_ISDIR(entry.status().st_mode):
                raise self._refused(path, "it is no folder")
            self._check_git(path, entry.path)
        except OSError as error:
            raise self._refused(path, error.strerror or "it cannot be read") from error
        return self._part_of_source(path, entry.path)

    def _part_of_source(self, path: str, found: Path) -> Path:
        """Return a path that stands in the name of a source, in which ``@`` and `` on `` separate
        paths. Raises InputError."""
        if not _PLAIN.fullmatch(str(found)):
            raise self._refused(path, "it has other characters than letters, digits and _./+-")
        return found

    def _check_git(self, path: str, tree: Path) -> None:
        """Raise InputError if git would read anything of this tree outside of the roots.

        git itself says where its folders are: they may be those of another tree, as after `git
        worktree`, and git searches for them upwards.
        """
        try:
            folders = git.folders(tree)
        except InputError as error:
            raise self._refused(path, "git does not take it as a tree") from error
        for folder in {*folders}:
            whole = folder.resolve()
            if not any(whole.is_relative_to(root) for root in self.folders):
                raise self._refused(path, "its git folder is not below a root of this server")
            if (whole / _ALTERNATES).exists():
                raise self._refused(path, "it borrows objects of another tree (alternates)")
            if _has_link(whole):  # Its name is from outside, so it is not said.
                raise self._refused(path, "its git folder has a link")

    def _refused(self, path: str, why: str) -> InputError:
        roots = ", ".join(map(str, self.folders))
        return InputError(
            f"the path {quoted(path)} is refused: {why}",
            hint=f"name a file or folder below {roots}, without links.",
        )


def _has_link(git_folder: Path) -> bool:
    """Return whether anything of a git folder is a link: of its files, its objects by folder and
    pack, and all its references."""
    places = [git_folder, git_folder / "objects", git_folder / "objects/pack"]
    places += [Path(folder) for folder, _, _ in os.walk(git_folder / "refs")]
    return any(
        entry.is_symlink() for place in places if place.is_dir() for entry in os.scandir(place)
    )
