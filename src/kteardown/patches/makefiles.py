"""What the makefiles of Kbuild say about a file: which symbols of the configuration compile it.

``obj-$(CONFIG_X) += file.o`` in the folder of the file names it, ``foo-y += file.o`` makes it a
part of an object of several files, and ``obj-$(CONFIG_Z) += folder/`` is in each folder above. Few
files are named by a makefile of another folder (``../../../virt/kvm/file.o``).
"""

import heapq
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path, PurePosixPath

from kteardown.model.arch import ARCHITECTURES, Arch

Trees = tuple[Path, ...]
"""A file is looked up in the first tree that has it."""

_ASSIGNMENT = re.compile(r"^([\w.-]+?)(?:-(y|m|objs|\$\((CONFIG_\w+)\)))?\s*[:+?]?=\s*(.*)$")
# What a condition says plainly. Any other condition is taken as true.
_IF = re.compile(
    r"^(?:ifdef\s+(CONFIG_\w+)|ifeq\s+\(\$\((CONFIG_\w+)\),\s*y\)|ifneq\s+\(\$\((CONFIG_\w+)\),\s*\))"
)
_INCLUDE = re.compile(r"^-?include\s+\$\((?:srctree|src)\)/((?!/|\S*\.\.)\S+)\s*$", re.MULTILINE)
_VARIABLE = re.compile(r"\$\((\w+)\)(?=/)")
_ROOTS = frozenset(("obj", "lib", "core", "libs", "drivers", "head", "net", "virt"))
_DEPTH = 12
# A patch may change a makefile: that of drivers/gpu/drm/amd is 11 kB, with its longest word of 60
# letters.
_MOST_TEXT = 1 << 18
_MOST_INCLUDED = 16
_LONGEST_WORD = 200
_NOT_BUILT = frozenset(("arch", "Documentation", "samples", "scripts", "tools", "usr"))


def symbols_of_object(trees: Trees, name: str, config: Mapping[str, str]) -> list[str] | None:
    """Return the fewest symbols that ``config`` lacks to compile the file ``name``.

    None if no makefile of its folder or of a folder above names it.
    """
    path = PurePosixPath(name)
    return _missing(trees, str(path.parent), path.with_suffix(".o").name, config)


def symbols_in_other_folders(
    trees: Trees, arch: Arch, name: str, config: Mapping[str, str]
) -> list[str] | None:
    """Return the same for a file that only makefiles of other folders may name.

    The first call reads every makefile, which takes seconds.
    """
    path = PurePosixPath(name).with_suffix(".o")
    relative = ((folder, os.path.relpath(path, folder)) for folder in _reaching_out(trees, arch))
    ways = (_missing(trees, folder, word, config) for folder, word in relative)
    return min((way for way in ways if way is not None), key=len, default=None)


def _missing(trees: Trees, folder: str, word: str, config: Mapping[str, str]) -> list[str] | None:
    """Return the fewest symbols that ``config`` lacks to build ``word``, an object or folder of
    ``folder``.

    None if no makefile builds it. Of ways with as many symbols the one that makefiles name first is
    taken: ``order`` has the place of each rule on a way. Each word is read once, whatever refers to
    it.
    """
    todo: list[tuple[int, tuple[int, ...], str, str, list[str]]] = [(0, (), folder, word, [])]
    visited: set[tuple[str, str]] = set()
    while todo:
        _, order, folder, word, symbols = heapq.heappop(todo)
        # The top Makefile names lib/ and the folder of the architecture.
        if not word and (folder in (".", "lib") or re.fullmatch("arch/[^/]+", folder)):
            return symbols
        path = PurePosixPath(folder)
        if not word:
            path, word = path.parent, f"{path.name}/"
        if (str(path), word) in visited or len(order) == _DEPTH:
            continue
        visited.add((str(path), word))
        outer = [(str(path), *use) for use in _uses(trees, str(path)).get(word, ())]
        # A makefile further up may name it with its path.
        outer += [(str(path.parent), f"{path.name}/{word}", ())] if path.name else []
        for place, (up, name, needed) in enumerate(outer):
            lacking = [s for s in dict.fromkeys((*symbols, *needed)) if config.get(s, "n") != "y"]
            heapq.heappush(todo, (len(lacking), (*order, place), up, name, lacking))
    return None


@cache
def _reaching_out(trees: Trees, arch: Arch) -> tuple[str, ...]:
    """Return the folders of which a makefile names files of a folder that is not below it."""
    arch_folder = f"arch/{ARCHITECTURES[arch].source_folder}"
    reaching: dict[str, None] = {}
    for tree in trees:
        tops = [
            tree / arch_folder,
            *(f for f in sorted(tree.iterdir()) if f.is_dir() and f.name not in _NOT_BUILT),
        ]
        files = (
            file for top in tops for name in ("Makefile", "Kbuild") for file in top.rglob(name)
        )
        folders = dict.fromkeys(str(file.parent.relative_to(tree)) for file in files)
        reaching |= {
            f: None for f in folders if any(word.startswith("../") for word in _uses(trees, f))
        }
    return tuple(reaching)


@cache
def _uses(trees: Trees, folder: str) -> Mapping[str, dict[tuple[str, tuple[str, ...]], None]]:
    """Return by each word of the makefiles of ``folder`` what contains it, with the symbols of
    that."""
    uses: dict[str, dict[tuple[str, tuple[str, ...]], None]] = {}
    for name in ("Kbuild", "Makefile"):
        if folder != "." or name != "Makefile":
            text = _text(trees, f"{folder}/{name}")
            # Some include others, by their path in the tree.
            text = _INCLUDE.sub(lambda match: _text(trees, match[1]), text, _MOST_INCLUDED)
            for word, user, symbols in _parse(text[:_MOST_TEXT]):
                uses.setdefault(word, {})[user, symbols] = None
    return uses


def _text(trees: Trees, name: str) -> str:
    """Return the beginning of a file, or nothing if there is none."""
    path = next((tree / name for tree in trees if (tree / name).is_file()), None)
    if path is None:
        return ""
    with path.open(errors="replace") as stream:
        return stream.read(_MOST_TEXT)


def _parse(text: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield each word that a makefile adds to a list, the name of the list, and the symbols it
    needs.

    The name is that of the object or the variable; it is empty for the list of what the folder
    builds.
    """
    around: list[str] = []
    values: dict[str, str] = {}
    for line in text.replace("\\\n", " ").replace("$(BITS)", "64").splitlines():
        words = line.split("#", 1)[0].strip()
        if words.startswith(("ifdef", "ifeq", "ifneq", "ifndef")):
            match = _IF.match(words)
            around.append(next(filter(None, match.groups()), "") if match else "")
        elif words.startswith("else") and around:
            around[-1] = ""
        elif words.startswith("endif") and around:
            around.pop()
        elif match := _ASSIGNMENT.match(words):
            target = match[1]
            composite = bool(match[2])
            symbols = dict.fromkeys(symbol for symbol in (*around[:_DEPTH], match[3]) if symbol)
            needed = tuple(symbol.removeprefix("CONFIG_") for symbol in symbols)
            # A word may be the path of a folder below, or of a file beside it ($(src)/x.o).
            parts = (
                word.removeprefix("$(src)/").removeprefix("$(obj)/") for word in match[4].split()
            )
            parts = (
                _VARIABLE.sub(lambda name: values.get(name[1], name[0]), word) for word in parts
            )
            names = [word for word in parts if len(word) <= _LONGEST_WORD]
            if not composite and len(names) == 1:
                values[target] = names[0]
            users = (f"{target}.o", f"$({target}-y)") if composite else (f"$({target})",)
            for word, user in product(names, ("",) if target in _ROOTS else users):
                yield word, user, needed
