"""Source files that no makefile names, because other source files include them.

``kernel/sched/build_policy.c`` has ``#include "rt.c"``; boot code and the vDSO include files of
``lib/``. Once base is built, its build folder knows them. Before that, this module reads the
sources: the folder of the file first, then wider folders. Reading all of them takes seconds.

Trees may be hostile, so the files, the bytes and the folders that are read are limited, and no
symbolic link is followed.
"""

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from kteardown.model.arch import ARCHITECTURES, Arch
from kteardown.patches.changed_lines import symbols_around
from kteardown.patches.makefiles import (
    NOT_BUILT,
    Trees,
    symbols_in_other_folders,
    symbols_of_object,
)

_INCLUDE = re.compile(rb'^[ \t]*+#[ \t]*+include[ \t]*+"([^"\n]{1,200}\.[cS])"', re.MULTILINE)
_SOURCE = (".c", ".S")
# fs/nfs/nfs4xdr.c and kernel/trace/trace.c include others after 200 kB.
_MOST_OF_FILE = 1 << 19
# Linux 7.3 has 35,000 such files with 714 MB, 14 MB of them in one folder.
_MOST_OF_FOLDER = 64 << 20
_MOST_OF_TREE = 2 << 30
_MOST_FOLDERS = 10_000
_MOST_ENTRIES = 20_000
_MOST_VISITED = 30
_MOST_CANDIDATES = 1000
# kernel/sched/build_policy.c includes 14.
_MOST_INCLUSIONS = 200


class _Inclusion(NamedTuple):
    """A line of the file ``user`` that includes a source file by the path ``quoted``."""

    user: str
    quoted: str


class _Folder(NamedTuple):
    """What one folder of a tree has, without what is in the folders below it."""

    inclusions: Mapping[str, list[_Inclusion]]
    """By the name of the included file, without its folder."""
    folders: tuple[str, ...] = ()
    read_bytes: int = 0


def symbols_of_source(
    trees: Trees, arch: Arch, name: str, config: Mapping[str, str]
) -> list[str] | None:
    """Return the fewest symbols that ``config`` lacks to compile the file ``name``.

    A makefile names it, or a file that is compiled includes it. None if neither is found.
    """
    return _Search(trees, arch, config).symbols_of(name, ())


class _Search:
    """Looks for the files that include a file, and asks the makefiles about these."""

    def __init__(self, trees: Trees, arch: Arch, config: Mapping[str, str]) -> None:
        self._trees = trees
        self._arch = arch
        self._config = config
        self._visited: set[str] = set()

    def symbols_of(self, name: str, needed: Sequence[str]) -> list[str] | None:
        """Return the missing symbols of ``name``, with those of ``needed``; None as above."""
        self._visited.add(name)
        found = symbols_of_object(self._trees, name, self._config)
        if found is None:
            found = self._of_users(name, _folders_above(name), deep=False)
        if found is None:
            found = symbols_in_other_folders(self._trees, self._arch, name, self._config)
        if found is None:
            found = self._of_users(name, _wider_folders(name, self._arch), deep=True)
        if found is None:
            return None
        return list(dict.fromkeys((*found, *self._lacking(needed))))

    def _of_users(self, name: str, folders: Sequence[str], *, deep: bool) -> list[str] | None:
        """Return the fewest symbols with which a file in the first of ``folders`` that has such a
        file includes ``name``."""
        for folder in folders:
            ways: list[list[str]] = []
            for user, quoted in _users(self._trees, self._arch, name, folder, deep=deep):
                if user in self._visited or len(self._visited) > _MOST_VISITED:
                    continue
                way = self.symbols_of(user, self._needed(user, quoted))
                if way == []:
                    return way
                ways += [] if way is None else [way]
            if ways:
                return min(ways, key=len)
        return None

    def _needed(self, user: str, quoted: str) -> Sequence[str]:
        """Return the symbols of the ``#if`` lines around the line with which ``user`` includes
        ``quoted``."""
        path = next(tree / user for tree in self._trees if (tree / user).is_file())
        lines = _beginning(path).decode("latin-1").split("\n")
        around = zip(lines, symbols_around(lines), strict=True)
        needed = [symbols for line, symbols in around if _quoted(line) == quoted]
        return min(needed, key=lambda symbols: len(self._lacking(symbols)), default=())

    def _lacking(self, symbols: Iterable[str]) -> list[str]:
        return [symbol for symbol in symbols if self._config.get(symbol, "n") == "n"]


def _folders_above(name: str) -> list[str]:
    """Return the folders that ``name`` is in, the nearest first, and the top of the tree last."""
    return [str(parent) for parent in PurePosixPath(name).parents]


def _wider_folders(name: str, arch: Arch) -> list[str]:
    """Return the folders whose whole contents may include ``name``, the nearest first."""
    arch_folder = f"arch/{ARCHITECTURES[arch].source_folder}"
    *above, top = [folder for folder in _folders_above(name) if folder != "arch"]
    # Boot code and the vDSO include files of lib/.
    return [*above, *([] if arch_folder in above else [arch_folder]), top]


def _users(trees: Trees, arch: Arch, name: str, folder: str, *, deep: bool) -> Iterator[_Inclusion]:
    """Yield the lines of files in ``folder`` that include ``name``; with ``deep``, also of files in
    the folders below it."""
    # No file of the source includes a file that only a patch adds.
    is_new = not (trees[-1] / name).is_file()
    for number, tree in enumerate(trees[:-1] if is_new else trees):
        earlier = trees[:number]
        of_that_name = _inclusions(tree, arch, folder, os.path.basename(name), deep=deep)
        for inclusion in islice(of_that_name, _MOST_CANDIDATES):
            is_replaced = any((other / inclusion.user).is_file() for other in earlier)
            if not is_replaced and _means(inclusion, name, trees):
                yield inclusion


def _means(inclusion: _Inclusion, name: str, trees: Trees) -> bool:
    """Return whether an ``#include`` means the file ``name``.

    It is looked up in the folder of the file with that line, and then, as with the ``-I`` of many
    makefiles, in the folders above.
    """
    for folder in _folders_above(inclusion.user):
        path = os.path.normpath(f"{folder}/{inclusion.quoted}")
        if path == name:
            return True
        if not path.startswith(("../", "/")) and any((tree / path).is_file() for tree in trees):
            return False
    return False


def _inclusions(
    tree: Path, arch: Arch, folder: str, name: str, *, deep: bool
) -> Iterator[_Inclusion]:
    """Yield where files in ``folder`` of a tree include a file ``name`` of any folder, breadth
    first, within the limits."""
    todo = deque([folder])
    read_bytes = 0
    for _ in range(_MOST_FOLDERS):
        if not todo or read_bytes > _MOST_OF_TREE:
            return
        current = todo.popleft()
        found = _read_folder(tree, current)
        read_bytes += found.read_bytes
        yield from found.inclusions.get(name, ())
        if not deep:
            return
        is_top = current == "."
        todo += [below for below in found.folders if not (is_top and below in NOT_BUILT)]
        todo += [f"arch/{ARCHITECTURES[arch].source_folder}"] if is_top else []


@lru_cache(2 * _MOST_FOLDERS)
def _read_folder(tree: Path, folder: str) -> _Folder:
    path = tree / folder
    if not path.is_dir() or path.resolve() != tree.resolve() / folder:
        return _Folder({})  # A link may lead out of the tree.
    inclusions: dict[str, list[_Inclusion]] = {}
    folders: list[str] = []
    read_bytes = 0
    with os.scandir(path) as entries:
        some = sorted(islice(entries, _MOST_ENTRIES), key=lambda entry: entry.name)
    for entry in some:
        inner = os.path.normpath(f"{folder}/{entry.name}")
        if entry.is_dir(follow_symlinks=False):
            folders.append(inner)
        elif entry.name.endswith(_SOURCE) and entry.is_file(follow_symlinks=False):
            text = _beginning(path / entry.name) if read_bytes < _MOST_OF_FOLDER else b""
            read_bytes += len(text)
            if b'.c"' in text or b'.S"' in text:
                for target in dict.fromkeys(_INCLUDE.findall(text)[:_MOST_INCLUSIONS]):
                    quoted = target.decode("latin-1")
                    name = os.path.basename(quoted)
                    inclusions.setdefault(name, []).append(_Inclusion(inner, quoted))
    return _Folder(inclusions, tuple(folders), read_bytes)


def _beginning(path: Path) -> bytes:
    with path.open("rb", buffering=0) as stream:
        return stream.read(_MOST_OF_FILE)


def _quoted(line: str) -> str:
    """Return what a line includes, or nothing."""
    match = _INCLUDE.match(line.encode("latin-1"))
    return match[1].decode("latin-1") if match else ""
