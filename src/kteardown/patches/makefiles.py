"""What the makefiles of Kbuild say about a file: which symbols of the configuration compile it.

``obj-$(CONFIG_X) += file.o`` in the folder of the file names it, ``foo-y += file.o`` makes it a
part of an object of several files, and ``obj-$(CONFIG_Z) += folder/`` is in each folder above. Few
files are named by a makefile of another folder (``../../../virt/kvm/file.o``). What ends up in the
image in another way, such as the vDSO, is linked by rules; ``targets`` names the objects of rules.
"""

import heapq
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache, partial
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
_INCLUDE = re.compile(r"^-?include\s+\$\((srctree|src)\)/(\S+)\s*$", re.MULTILINE)
_LIST = re.compile(r"\$\([\w.-]+-(?:y|objs)\)")
_VARIABLE = re.compile(r"\$\((\w+)\)(?=/)")
_OF_RULES = ("$(targets)", "$(subdir-)")
_ROOTS = frozenset(("obj", "lib", "core", "libs", "drivers", "head", "net", "virt"))
_ARCH = re.compile("arch/[^/]+")
# The top Makefile names lib/ and the folder of the architecture, which has rules for its boot/.
_BY_THE_TOP = re.compile(r"\.|lib|arch/[^/]+(?:/boot)?")
_DEPTH = 12
# A patch may change a makefile: that of drivers/gpu/drm/amd is 11 kB, with its longest word of 60
# letters.
_MOST_TEXT = 1 << 18
_MOST_INCLUDED = 64
_INCLUDED_DEPTH = 3
_LONGEST_WORD = 200
NOT_BUILT = frozenset(("arch", "Documentation", "samples", "scripts", "tools", "usr"))
"""Folders of the top whose makefiles and sources build no kernel; of ``arch``, one folder does."""


def symbols_of_object(trees: Trees, name: str, config: Mapping[str, str]) -> list[str] | None:
    """Return the fewest symbols that ``config`` lacks to compile the file ``name``.

    None if no makefile of its folder or of a folder above names it.
    """
    path = PurePosixPath(name)
    place = (str(path.parent), path.with_suffix(".o").name)
    missing = _missing(trees, *place, config)
    # A list of Kbuild names more symbols than a rule, so rules are only asked about the rest.
    return _missing(trees, *place, config, by_rules=True) if missing is None else missing


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


def _missing(
    trees: Trees, folder: str, word: str, config: Mapping[str, str], *, by_rules: bool = False
) -> list[str] | None:
    """Return the fewest symbols that ``config`` lacks to build ``word``, an object or folder of
    ``folder``.

    None if no makefile builds it: no list of Kbuild or, with ``by_rules``, no rule either. Of ways
    with as many symbols the one that makefiles name first is taken: ``order`` has the place of each
    rule on a way. Each word is read once, whatever refers to it.
    """
    todo: list[tuple[int, tuple[int, ...], str, str, list[str]]] = [(0, (), folder, word, [])]
    visited: set[tuple[str, str]] = set()
    while todo:
        _, order, folder, word, symbols = heapq.heappop(todo)
        word = "" if by_rules and word in _OF_RULES else word
        if not word and _BY_THE_TOP.fullmatch(folder):
            return symbols
        path = PurePosixPath(folder)
        if not word:
            word = f"{path.name}/"
            path = path.parent
        if (str(path), word) in visited or len(order) == _DEPTH:
            continue
        visited.add((str(path), word))
        uses = _uses(trees, str(path))
        outer = [(str(path), *use) for use in uses.get(word, ())]
        if _ARCH.fullmatch(str(path)):
            # The top Makefile includes that of the architecture, which names folders from the top.
            outer += [(str(path), *use) for use in uses.get(f"{path}/{word}", ())]
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
            *(f for f in sorted(tree.iterdir()) if f.is_dir() and f.name not in NOT_BUILT),
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
            for _ in range(_INCLUDED_DEPTH):
                text = _INCLUDE.sub(partial(_included, trees, folder), text, _MOST_INCLUDED)
                text = text[:_MOST_TEXT]
            for word, user, symbols in _parse(text):
                uses.setdefault(word, {})[user, symbols] = None
    return uses


def _included(trees: Trees, folder: str, include: re.Match[str]) -> str:
    """Return the text of a makefile that a makefile of ``folder`` includes, or nothing."""
    start = folder if include[1] == "src" else "."
    name = os.path.normpath(f"{start}/{include[2]}")
    return "" if name.startswith(("../", "/")) else _text(trees, name)


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
            if target == "targets":
                # Also in $(patsubst $(obj)/%,%,$(list-y)).
                names += [found for word in names for found in _LIST.findall(word)]
            elif target == "subdir-":
                names = [f"{word.removesuffix('/')}/" for word in names]
            if not composite and len(names) == 1:
                values[target] = names[0]
            kind = "objs" if match[2] == "objs" else "y"
            users = (f"{target}.o", f"$({target}-{kind})") if composite else (f"$({target})",)
            for word, user in product(names, ("",) if target in _ROOTS else users):
                yield word, user, needed
