"""Which files of a series a configuration compiles, and which symbols would build the others.

Kbuild's own makefiles say so: ``obj-$(CONFIG_X) += file.o`` in the folder of the file, ``foo-y += file.o``
for an object of several files, and ``obj-$(CONFIG_Z) += folder/`` in each folder above. Few files are named
by a makefile of another folder (``../../../virt/kvm/file.o``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path, PurePosixPath

from kteardown.kernels.kconfig_refusal import conditions_of, selectors_of
from kteardown.model.arch import ARCHITECTURES, Arch
from kteardown.patches import changed_lines

_PLAIN = re.compile(r"([A-Z][A-Z0-9_]*)(?:\s*!=\s*n|\s*=\s*y)?")
_MOST_NEEDED = 40
_ASSIGNMENT = re.compile(r"^([\w.-]+?)(?:-(y|m|objs|\$\((CONFIG_\w+)\)))?\s*[:+?]?=\s*(.*)$")
_IF = re.compile(
    r"^(?:ifdef\s+(CONFIG_\w+)|ifeq\s+\(\$\((CONFIG_\w+)\),\s*y\)|ifneq\s+\(\$\((CONFIG_\w+)\),\s*\))"
)
_INCLUDE = re.compile(r"^-?include\s+\$\((?:srctree|src)\)/((?!/|\S*\.\.)\S+)\s*$", re.MULTILINE)
_VARIABLE = re.compile(r"\$\((\w+)\)(?=/)")
_SOURCE = (".c", ".S", ".rs")
_ROOTS = frozenset(("obj", "lib", "core", "libs", "drivers", "head", "net", "virt"))
_DEPTH = 12
_NOT_BUILT = frozenset(("arch", "Documentation", "samples", "scripts", "tools", "usr"))
Trees = tuple[Path, ...]


@dataclass(frozen=True)
class TouchedFile:
    """A file of a series. ``symbols`` are those that have to be set so that it is compiled."""

    name: str
    built: bool
    symbols: tuple[str, ...] = ()
    reason: str = ""
    """Why it is not compiled, and cannot be."""


@dataclass(frozen=True)
class _Rule:
    """One assignment of a makefile: words are added to ``target`` if all ``symbols`` are set."""

    target: str
    composite: bool
    """Whether it is a list of the parts of an object, such as ``foo-y``."""
    symbols: tuple[str, ...]
    words: tuple[str, ...]


def built_files(
    names: Sequence[str], trees: Trees, config: Mapping[str, str], arch: Arch, objects: Path | None
) -> list[TouchedFile]:
    """Return for each of ``names`` whether it is compiled with ``config``.

    ``trees``: a file is looked up in the first that has it, so that patched makefiles come before those of
    the source. ``objects`` is the build folder of a base kernel with this configuration, if it is in the
    cache; only it knows which headers are included.
    """
    return [_touched(name, trees, config, arch, objects) for name in names]


def _touched(
    name: str, trees: Trees, config: Mapping[str, str], arch: Arch, objects: Path | None
) -> TouchedFile:
    path = PurePosixPath(name)
    own = ARCHITECTURES[arch].source_folder
    if path.parts[0] == "arch" and len(path.parts) > 2 and path.parts[1] != own:
        return TouchedFile(name, False, reason=f"is for {path.parts[1]}")
    if not (trees[-1] / name).is_file():
        objects = None  # A new file; the build folder of base cannot know it.
    if path.suffix == ".h":
        return _in_conditions(_header(name, objects), trees, config, arch)
    if path.suffix not in _SOURCE:
        built = path.name.startswith(("Kconfig", "Makefile", "Kbuild"))
        return TouchedFile(name, False, reason="" if built else "is not compiled")
    return _in_conditions(_compiled(name, trees, config, arch, objects), trees, config, arch)


def _in_conditions(file: TouchedFile, trees: Trees, config: Mapping[str, str], arch: Arch) -> TouchedFile:
    """Return ``file`` with the symbols of the ``#if`` lines around all that is changed in it."""
    after, before = trees[0] / file.name, trees[-1] / file.name
    if not file.built or not file.name.endswith((".c", ".h")) or not (after.is_file() and before.is_file()):
        return file
    old, new = (path.read_text(encoding="latin-1") for path in (before, after))
    missing = changed_lines.missing_symbols(old, new, config)
    if not missing:
        return file
    symbols = with_dependencies(trees, arch, missing, config)
    return TouchedFile(file.name, False, symbols=tuple(symbols))


def _compiled(
    name: str, trees: Trees, config: Mapping[str, str], arch: Arch, objects: Path | None
) -> TouchedFile:
    path = PurePosixPath(name)
    if objects is not None and ((objects / path.with_suffix(".o")).is_file() or _is_included(name, objects)):
        return TouchedFile(name, True)
    ways = list(_conditions(trees, str(path.parent), path.with_suffix(".o").name, _DEPTH))
    ways = ways or list(_from_elsewhere(trees, str(path.with_suffix(".o")), arch))
    if not ways:
        return TouchedFile(name, False, reason="no makefile of its folder names it")
    missing = min(({s: None for s in way if config.get(s, "n") != "y"} for way in ways), key=len)
    if missing:
        wanted = with_dependencies(trees, arch, list(missing), config)
        return TouchedFile(name, False, symbols=tuple(wanted))
    # The makefile has conditions that are not read here; the build folder knows.
    return TouchedFile(name, objects is None, reason="" if objects is None else "is for other configurations")


def _header(name: str, objects: Path | None) -> TouchedFile:
    if objects is None:
        return TouchedFile(name, True)
    included = _is_included(name, objects)
    return TouchedFile(name, included, reason="" if included else "no compiled file includes it")


def _is_included(name: str, objects: Path) -> bool:
    return name in _dependencies(objects)


@cache
def _dependencies(objects: Path) -> frozenset[str]:
    """Return every file of the source tree that an object of a build depends on."""
    found: set[str] = set()
    for path in objects.rglob(".*.o.cmd"):
        found.update(re.findall(r"^\s+\.\./(\S+)", path.read_text(errors="replace"), re.MULTILINE))
    return frozenset(found)


def _conditions(trees: Trees, folder: str, word: str, depth: int) -> Iterator[tuple[str, ...]]:
    """Yield the sets of symbols with which ``word``, an object or a folder, is built from ``folder``."""
    if depth == 0:
        return
    for rule in _rules(trees, folder):
        if word not in rule.words:
            continue
        if rule.target in _ROOTS:
            outer: Iterable[tuple[str, ...]] = _folder_conditions(trees, folder, depth - 1)
        elif rule.composite:
            outer = _conditions(trees, folder, f"{rule.target}.o", depth - 1)
            outer = chain(outer, _conditions(trees, folder, f"$({rule.target}-y)", depth - 1))
        else:
            outer = _conditions(trees, folder, f"$({rule.target})", depth - 1)
        for symbols in outer:
            yield (*rule.symbols, *symbols)
    if folder != ".":
        # A makefile further up may name it with its path.
        parent = PurePosixPath(folder)
        yield from _conditions(trees, str(parent.parent), f"{parent.name}/{word}", depth - 1)


def _from_elsewhere(trees: Trees, path: str, arch: Arch) -> Iterator[tuple[str, ...]]:
    """Yield the sets of symbols with which makefiles of other folders build the object ``path``."""
    for folder in _reaching_out(trees, arch):
        yield from _conditions(trees, folder, os.path.relpath(path, folder), _DEPTH)


@cache
def _reaching_out(trees: Trees, arch: Arch) -> tuple[str, ...]:
    """Return the folders of which a makefile names files of a folder that is not below it."""
    own = f"arch/{ARCHITECTURES[arch].source_folder}"
    found: dict[str, None] = {}
    for tree in trees:
        tops = [tree / own, *(f for f in sorted(tree.iterdir()) if f.is_dir() and f.name not in _NOT_BUILT)]
        files = (file for top in tops for name in ("Makefile", "Kbuild") for file in top.rglob(name))
        folders = dict.fromkeys(str(file.parent.relative_to(tree)) for file in files)
        found |= {f: None for f in folders if any(w.startswith("../") for w in _words(trees, f))}
    return tuple(found)


def _words(trees: Trees, folder: str) -> Iterator[str]:
    return (word for rule in _rules(trees, folder) for word in rule.words)


def _folder_conditions(trees: Trees, folder: str, depth: int) -> Iterator[tuple[str, ...]]:
    path = PurePosixPath(folder)
    # The top Makefile names lib/ and the folder of the architecture.
    if folder in (".", "lib") or (len(path.parts) == 2 and path.parts[0] == "arch"):
        yield ()
        return
    yield from _conditions(trees, str(path.parent), f"{path.name}/", depth)


@cache
def _rules(trees: Trees, folder: str) -> tuple[_Rule, ...]:
    found: list[_Rule] = []
    for name in ("Kbuild", "Makefile"):
        path = next((t / folder / name for t in trees if (t / folder / name).is_file()), None)
        if path is not None and not (folder == "." and name == "Makefile"):
            found += _parse(_with_included(trees, path.read_text(errors="replace")))
    return tuple(found)


def _with_included(trees: Trees, text: str) -> str:
    """Return a makefile with the text of those in its place that it includes by their path in the tree."""

    def included(found: re.Match[str]) -> str:
        path = next((t / found[1] for t in trees if (t / found[1]).is_file()), None)
        return path.read_text(errors="replace") if path else ""

    return _INCLUDE.sub(included, text)


def _parse(text: str) -> Iterator[_Rule]:
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
            symbols = [symbol for symbol in (*around, match[3] or "") if symbol]
            named = (symbol.removeprefix("CONFIG_") for symbol in symbols)
            # A word may be the path of a folder below, or of a file beside it ($(src)/x.o).
            parts = tuple(word.removeprefix("$(src)/").removeprefix("$(obj)/") for word in match[4].split())
            parts = tuple(_VARIABLE.sub(lambda name: values.get(name[1], name[0]), word) for word in parts)
            if not match[2] and len(parts) == 1:
                values[match[1]] = parts[0]
            yield _Rule(match[1], bool(match[2]), tuple(dict.fromkeys(named)), parts)


def with_dependencies(
    trees: Sequence[Path], arch: Arch, symbols: Sequence[str], config: Mapping[str, str]
) -> list[str]:
    """Return ``symbols`` with those that they depend on and that ``config`` does not set.

    Of alternatives the first is taken. What this does not find, the build reports: Kconfig has the last word.
    """
    wanted: dict[str, None] = {}
    todo = list(symbols)
    while todo and len(wanted) < _MOST_NEEDED:
        symbol = todo.pop()
        if symbol in wanted or config.get(symbol, "n") == "y":
            continue
        wanted[symbol] = None
        has_prompt, conditions, defaults = conditions_of(trees, arch, symbol)
        if not has_prompt:
            # Only its default or another symbol can set it.
            conditions = [*conditions, *defaults]
            todo += [] if defaults else selectors_of(trees, arch, symbol)[:1]
        for condition in conditions:
            todo += _needed(condition, config)
    return list(wanted)


def _needed(condition: str, config: Mapping[str, str]) -> list[str]:
    """Return symbols that make ``condition`` true: A && (B || C != n) gives A, and B unless C is set."""
    needed: list[str] = []
    for part in _split(condition, "&&"):
        choices = _split(part.strip().removeprefix("(").removesuffix(")"), "||")
        plain = [found[1] for choice in choices if (found := _PLAIN.fullmatch(choice.strip()))]
        if plain and not any(config.get(choice, "n") == "y" for choice in plain):
            needed.append(plain[0])
    return needed


def _split(text: str, operator: str) -> list[str]:
    """Split a condition at an operator that is not inside of parentheses."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and text.startswith(operator, place):
            parts.append(text[start:place])
            start = place + len(operator)
    return [part.strip() for part in (*parts, text[start:])]
