"""The modules in the package of a prebuilt kernel: what they need, and by which aliases the kernel
asks for them.

A package has no ``modules.alias`` and no ``modules.dep``: depmod writes them when it is installed.
So both are read from the modules themselves.
"""

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from kteardown.errors import InputError, LabError, damaged
from kteardown.kernels import unpack
from kteardown.progress import Task

_ELF = b"\x7fELF"
_MOST_BYTES = 512 << 20
"""Of a module, decompressed: half of the memory of a usual guest."""
_MOST_TEXT_BYTES = 16 << 20
"""Of a list of modules, and of all aliases of a package."""
_MOST_ALIAS = 1000
"""Characters of an alias of a module; the longest of 6.12 have 200."""
_MOST_MODULES = 64
"""That one alias loads, or a text names; and aliases of one of them."""
_WILD = re.compile(r"[*?\[]")
_FIRST = 4
"""Of the characters of an alias, how many are looked up at once."""
_SHORT = re.compile(r"[!-~]{1,60}")
_NAME = re.compile(r"[A-Za-z0-9_]{1,60}")


@dataclass(frozen=True)
class ModuleIndex:
    """The names and aliases of the modules of a package. In all of them ``-`` is ``_``."""

    modules: tuple[str, ...]
    builtin: tuple[str, ...]
    aliases: dict[str, tuple[str, ...]]
    """By alias, in which ``*``, ``?`` and ``[...]`` stand for other characters: the modules."""

    @cached_property
    def _modules(self) -> frozenset[str]:
        return frozenset(self.modules)

    @cached_property
    def _builtin(self) -> frozenset[str]:
        return frozenset(self.builtin)

    @cached_property
    def _patterns(self) -> dict[str, list[str]]:
        """The aliases with wildcards, by their first characters without one: there are many."""
        patterns: dict[str, list[str]] = {}
        for alias in self.aliases:
            if wild := _WILD.search(alias):
                patterns.setdefault(alias[: min(wild.start(), _FIRST)], []).append(alias)
        return patterns

    @cached_property
    def _aliases_of(self) -> dict[str, list[str]]:
        of: dict[str, list[str]] = {}
        for alias, modules in self.aliases.items():
            for module in modules:
                of.setdefault(module, []).append(alias)
        return of

    def find(self, word: str) -> tuple[str, ...] | None:
        """Return the modules that modprobe loads for a name or an alias: none if it is built in.

        None if there is no such module.
        """
        name = normalized(word)
        if name in self._builtin:
            return ()
        if name in self._modules:
            return (name,)
        aliases = [name] if name in self.aliases else []
        aliases += [
            alias
            for length in range(min(_FIRST, len(name)) + 1)
            for alias in self._patterns.get(name[:length], ())
            if fnmatch.fnmatchcase(name, alias)
        ]
        names = sorted({module for alias in aliases for module in self.aliases[alias]})
        loadable = tuple(module for module in names if module not in self._builtin)
        return loadable[:_MOST_MODULES] if names else None

    def named_in(self, words: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return the modules that a text may be about, each with its aliases, its name first.

        ``words`` are those of the text: a name, a kind of network devices, or a file system.
        """
        chosen: dict[str, tuple[str, ...]] = {}
        for word in words:
            for form in (word, f"rtnl-link-{word}", f"fs-{word}"):
                for module in self.find(form) or ():
                    aliases = [a for a in self._aliases_of.get(module, ()) if _SHORT.fullmatch(a)]
                    chosen[module] = (module, *aliases[: _MOST_MODULES - 1])
            if len(chosen) >= _MOST_MODULES:
                break
        return chosen


@dataclass
class PackageModules:
    """The modules below the folder in which a package was unpacked; each is read when it is
    needed."""

    folder: Path
    files: dict[str, Path] = field(default_factory=dict)
    builtin: set[str] = field(default_factory=set)
    contents: dict[str, bytes] = field(default_factory=dict)
    """What was read, decompressed."""

    def __post_init__(self) -> None:
        for root in self._roots():
            names = ((_module_name(path), path) for path in root.rglob("*.ko*"))
            self.files |= {name: path for name, path in names if _NAME.fullmatch(name)}
            for listing in root.glob("*/modules.builtin"):
                self.builtin |= {_module_name(Path(line)) for line in _text(listing).splitlines()}

    def _roots(self) -> Iterator[Path]:
        return (self.folder / root for root in ("lib/modules", "usr/lib/modules"))

    def load_order(
        self, names: Sequence[str], index: Callable[[], ModuleIndex] | None = None
    ) -> list[str]:
        """Return ``names`` and what they depend on in load order, and read them.

        With ``index``, modules that a module asks for without being linked to them (``softdep``)
        are loaded before it or after it, too. Raises KeyError with the name of one that is missing,
        LabError if one is damaged.
        """
        return load_order(names, _Depends(self), self.builtin, lambda name: self._soft(name, index))

    def find(self, word: str, index: Callable[[], ModuleIndex]) -> tuple[str, ...] | None:
        """Return as ``ModuleIndex.find``, without the index if ``word`` is a name."""
        name = normalized(word)
        if name in self.builtin:
            return ()
        return (name,) if name in self.files else index().find(word)

    def content(self, name: str) -> bytes:
        """Return a module. Raises KeyError, LabError if it is damaged, InputError if the modules
        that were read are too large together for a guest."""
        if name not in self.contents:
            self.contents[name] = _decompress(self.files[name])
            if sum(map(len, self.contents.values())) > _MOST_BYTES:
                raise InputError(
                    f"{name}: it and what it depends on have more than {_MOST_BYTES >> 20} MB",
                    hint="name another kernel; the guest holds its modules in memory.",
                )
        return self.contents[name]

    def _soft(
        self, name: str, index: Callable[[], ModuleIndex] | None
    ) -> tuple[list[str], list[str]]:
        """Return the modules before and after a module with which it is not linked."""
        if index is None:
            return [], []
        before, after = module_softdeps(self.content(name))
        return self._found(before, index), self._found(after, index)

    def _found(self, words: Iterable[str], index: Callable[[], ModuleIndex]) -> list[str]:
        return [module for word in words for module in self.find(word, index) or ()]

    def read_index(self, task: Task) -> ModuleIndex:
        """Read every module. Raises LabError if one is damaged, InputError if there is too much in
        them."""
        aliases: dict[str, dict[str, None]] = {}
        left = unpack.MOST_UNPACKED
        left_aliases = _MOST_TEXT_BYTES
        for done, name in enumerate(sorted(self.files)):
            task.update(done, total=len(self.files))
            content = _decompress(self.files[name])
            left -= len(content)
            for alias in _fields(content, "alias"):
                left_aliases -= len(alias) + len(name)
                aliases.setdefault(normalized(alias), {})[name] = None
            if min(left, left_aliases) < 0:
                raise InputError(
                    f"{self.files[name].name}: the modules of this kernel are too large to be read",
                    hint="name a package of your distribution.",
                )
        for root in self._roots():
            for listing in root.glob("*/modules.builtin.modinfo"):
                for name, alias in _builtin_aliases(_text(listing)):
                    aliases.setdefault(normalized(alias), {})[name] = None
        lists = {alias: tuple(names) for alias, names in sorted(aliases.items())}
        return ModuleIndex(tuple(sorted(self.files)), tuple(sorted(self.builtin)), lists)


class _Depends(Mapping[str, tuple[str, ...]]):
    """The dependencies of each module of a package."""

    def __init__(self, modules: PackageModules) -> None:
        self._modules = modules

    def __getitem__(self, name: str) -> tuple[str, ...]:
        return module_depends(self._modules.content(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules.files)

    def __len__(self) -> int:
        return len(self._modules.files)


def load_order(
    names: Sequence[str],
    depends: Mapping[str, tuple[str, ...]],
    builtin: set[str],
    soft: Callable[[str], tuple[Sequence[str], Sequence[str]]] = lambda _: ((), ()),
) -> list[str]:
    """Return the modules ``names`` and their dependencies in load order, without built-in ones.

    ``depends`` maps each module to its dependencies, ``soft`` to what is loaded before and after it
    besides. Raises KeyError with the name of a module that is neither built in nor in ``depends``.
    """
    order: list[str] = []
    begun = set(builtin)

    def add(name: str) -> Iterator[str]:
        if name in begun:
            return
        begun.add(name)
        depended = depends[name]
        before, after = soft(name)
        yield from (*before, *depended)
        order.append(name)
        yield from after

    # No recursion: who made a package decides how deep its dependencies are.
    waiting = [iter(names)]
    while waiting:
        name = next(waiting[-1], None)
        if name is None:
            waiting.pop()
        else:
            waiting.append(add(name))
    return order


def module_depends(data: bytes) -> tuple[str, ...]:
    """Return the dependencies that the ``depends`` field in a module file names."""
    first = next(_fields(data, "depends"), "")
    return tuple(normalized(name) for name in first.split(",") if name)


def module_softdeps(data: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names and aliases that are loaded before a module, and after it."""
    words: dict[str, list[str]] = {"": [], "pre:": [], "post:": []}
    for text in _fields(data, "softdep"):
        place = ""
        for word in text.split():
            if word in words:
                place = word
            else:
                words[place].append(word)
    return tuple(words["pre:"]), tuple(words["post:"])


def normalized(name: str) -> str:
    """Return a name or an alias with ``_`` in place of ``-``, but not in brackets, as kmod does."""
    done = ""
    while name:
        plain, bracket, name = name.partition("[")
        inside, end, after = name.partition("]")
        done += plain.replace("-", "_") + bracket
        if end:
            done += inside + end
            name = after
    return done


def _fields(data: bytes, name: str) -> Iterator[str]:
    """Yield the values of a field of the section ``.modinfo``, where zeros separate the fields."""
    # A regular expression would take half a minute for the modules of a package.
    key = b"\0" + name.encode() + b"="
    at = data.find(key)
    while at >= 0:
        start = at + len(key)
        end = data.find(b"\0", start)
        if start <= end <= start + _MOST_ALIAS:
            yield data[start:end].decode(errors="replace")
        at = data.find(key, start)


def _builtin_aliases(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and alias of each module that is built in: ``unix.alias=net-pf-1``."""
    for entry in text.split("\0"):
        key, _, alias = entry.partition("=")
        name, _, what = key.rpartition(".")
        if what == "alias" and len(alias) <= _MOST_ALIAS:
            yield normalized(name), alias


def _module_name(path: Path) -> str:
    return path.name.split(".ko")[0].replace("-", "_")


def _text(path: Path) -> str:
    with damaged(path.name, hint="name another package."):
        return unpack.unpacked(path, _MOST_TEXT_BYTES).decode(errors="replace")


def _decompress(path: Path) -> bytes:
    """Return the content of a module. Raises LabError if it is damaged."""
    try:
        content = unpack.unpacked(path, _MOST_BYTES)
        if not content.startswith(_ELF):
            raise ValueError("it is not an ELF file")
    except ValueError as error:
        raise LabError(
            f"{path.name}: the module is damaged: {error}",
            hint="empty the cache with `kteardown prune --all`, or name another kernel.",
        ) from error
    return content
