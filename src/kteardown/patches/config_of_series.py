"""Which files of a series the configuration of base compiles, and which symbols would build the
others.

Kbuild's makefiles say so (``makefiles``), or the files that include it (``included``). Of a file
that is compiled, ``#if`` lines may leave out what a patch changes.
"""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from kteardown import paths
from kteardown.kernels import apply_patches, build, build_plan
from kteardown.kernels.request import KernelRequest
from kteardown.kernels.source import Sources
from kteardown.model.arch import ARCHITECTURES, Arch
from kteardown.patches import renames
from kteardown.patches.changed_lines import missing_symbols
from kteardown.patches.dependencies import with_dependencies
from kteardown.patches.find_base import is_code
from kteardown.patches.included import symbols_of_source
from kteardown.patches.makefiles import Trees
from kteardown.progress import Reporter

# With one of these it is another kernel, about which the mail does not ask.
_MODEL = re.compile(
    r"PREEMPT\w*|SMP|NUMA|EXPERT|64BIT|X86(?:_64|_32)?|ARM64|RISCV|K[AMC]S?SAN\w*|UBSAN\w*|LOCKDEP|LOCK_STAT|KMEMLEAK"
    r"|PROVE_\w+|DEBUG_(?!FS\b|KERNEL\b)\w+|\w+_DEBUG"
)
_SOURCE = (".c", ".S", ".rs")
_HEADER = re.compile(rb"(?<![\w.-])[\w.-]{1,100}\.h\b")
_HEADERS_DEPTH = 5
_MOST_COMPARED = 200


@dataclass(frozen=True)
class TouchedFile:
    """A file of a series. ``symbols`` are those that have to be set so that it is compiled."""

    name: str
    built: bool
    symbols: tuple[str, ...] = ()
    reason: str = ""
    """Why it is not compiled, and cannot be."""


@dataclass(frozen=True)
class SeriesConfig:
    """The files that a series touches, and the symbols that compile those that base does not
    compile."""

    files: tuple[TouchedFile, ...]
    recompiled: float = 0.0
    """The share of the objects of a kernel that include a touched header."""
    users: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By each touched header, the files that are compiled with it; without those of which it is not
    known."""

    @property
    def compiled(self) -> bool:
        """Whether any of the files can be in a kernel of this architecture."""
        return any(file.built or file.symbols for file in self.files)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols, without CONFIG_, in the order in which they were found."""
        return tuple(dict.fromkeys(symbol for file in self.files for symbol in file.symbols))

    @property
    def fragments(self) -> tuple[str, ...]:
        """The symbols as fragments; Kconfig may refuse one, for base has no symbol that the series
        adds."""
        return tuple(f"CONFIG_{symbol}=y?" for symbol in self.symbols)


def config_of_series(
    base: KernelRequest, patches: Sequence[Path], sources: Sources, reporter: Reporter
) -> SeriesConfig:
    """Return what ``patches`` need so that all that they touch is compiled. Compiles no kernel.

    Raises BuildError, LabError.
    """
    tree = sources.tree(sources.identify(base.source))
    objects = build_plan.base_objects(base, sources)
    config = build.resolved_config(base, sources, reporter)
    names = [name for patch in patches for name, _ in apply_patches.files_in(patch, tree=tree)]
    names = [name for name in dict.fromkeys(names) if is_code(name)]
    with TemporaryDirectory(prefix="kteardown-") as folder:
        apply_patches.apply(tree, patches, Path(folder), base.source)
        files = tuple(built_files(names, (Path(folder), tree), config, base.arch, objects))
    # What includes a header differs little between versions.
    built = objects or next(
        (path.parent for path in sorted(sources.folder.glob("trees/*/.config"))), None
    )
    users = _users_of_headers(built, names) if built else {}
    share = (
        max(map(len, users.values())) / len(_dependencies(built)[""]) if built and users else 0.0
    )
    # What another version does not include, because it has other headers, may be included here.
    compiled = () if objects or not built or not users else _dependencies(built)
    known_users = {
        name: including
        for name, including in users.items()
        if including or not _is_named(name, tree, compiled)
    }
    return SeriesConfig(files, share, known_users)


def reasons(files: Sequence[TouchedFile]) -> str:
    """Return why files are not compiled, at most three."""
    sentences = [f"{file.name} {why(file)}" for file in files if not file.built and why(file)]
    ending = f" and {len(sentences) - 3} more" if len(sentences) > 3 else ""
    if sentences:
        return "; ".join(sentences[:3]) + ending
    if any(file.built for file in files):
        return (
            "its files are compiled, but it changes only comments, or what their conditions leave "
            "out"
        )
    return "it has documentation, tests or tools only"


def why(file: TouchedFile) -> str:
    """Return why a file is not compiled in base, as the end of a sentence."""
    if file.symbols:
        return "needs " + ", ".join(f"CONFIG_{symbol}" for symbol in file.symbols)
    return file.reason if not file.reason.startswith("no ") else f"is not compiled: {file.reason}"


def built_files(
    names: Sequence[str], trees: Trees, config: Mapping[str, str], arch: Arch, objects: Path | None
) -> list[TouchedFile]:
    """Return for each of ``names`` whether it is compiled with ``config``.

    ``trees``: a file is looked up in the first that has it, so that patched makefiles come before
    those of the source. ``objects`` is the build folder of a base kernel with this configuration,
    if it is in the cache; only it knows which headers are included.
    """
    compiled = [_compiled(name, trees, config, arch, objects) for name in names]
    files = _with_new_headers(
        [_in_conditions(file, trees, config, arch) for file in compiled], trees
    )
    files = _without_followers(files, trees)
    same_model = [file for file in files if not any(map(_MODEL.fullmatch, file.symbols))]
    if not any(file.built or file.symbols for file in same_model):
        return files
    return [file if file in same_model else _as_it_is(file) for file in files]


def _as_it_is(file: TouchedFile) -> TouchedFile:
    """Return ``file`` without its symbols, of which one makes another kernel, and with how to ask
    for it."""
    model = next(
        (symbol for symbol in file.symbols if _MODEL.fullmatch(symbol) and symbol != "EXPERT"),
        "EXPERT",
    )
    fragments = sorted(paths.data_dir("kernels").glob("fragments/*.config"))
    named = [path.stem for path in fragments if f"CONFIG_{model}=y\n" in path.read_text()]
    options = min(named, key=len, default="") or " --config ".join(
        f"CONFIG_{symbol}=y" for symbol in file.symbols
    )
    return TouchedFile(file.name, False, reason=f"also changes CONFIG_{model}: --config {options}")


def _compiled(
    name: str, trees: Trees, config: Mapping[str, str], arch: Arch, objects: Path | None
) -> TouchedFile:
    """Return whether any of a file is compiled, whatever the ``#if`` lines in it say."""
    path = PurePosixPath(name)
    arch_folder = ARCHITECTURES[arch].source_folder
    if path.parts[0] == "arch" and len(path.parts) > 2 and path.parts[1] != arch_folder:
        return TouchedFile(name, False, reason=f"is for {path.parts[1]}")
    if not (trees[-1] / name).is_file():
        objects = None  # A new file; the build folder of base cannot know it.
    if path.suffix == ".h":
        included = objects is None or name in _dependencies(objects)
        return TouchedFile(
            name, included, reason="" if included else "no compiled file includes it"
        )
    if path.suffix not in _SOURCE:
        built = path.name.startswith(("Kconfig", "Makefile", "Kbuild"))
        return TouchedFile(name, False, reason="" if built else "is not compiled")
    if objects and ((objects / path.with_suffix(".o")).is_file() or name in _dependencies(objects)):
        return TouchedFile(name, True)
    missing = symbols_of_source(trees, arch, name, config)
    if missing:
        symbols = with_dependencies(trees, arch, missing, config)
        return TouchedFile(name, False, symbols=tuple(symbols))
    built = objects is None and missing is not None
    # The makefile has conditions that are not read here; the build folder knows.
    reason = (
        "no makefile names it, and no file that is compiled includes it"
        if missing is None
        else "is for other configurations"
    )
    return TouchedFile(name, built, reason="" if built else reason)


def _without_followers(files: list[TouchedFile], trees: Trees) -> list[TouchedFile]:
    """Return ``files`` without the symbols of those in which the series only follows a rename.

    They have the same changes of names and arguments as files that base compiles, and no others.
    """
    built = [file for file in files if file.built]
    following = [file for file in files if file.symbols][:_MOST_COMPARED]
    if not (following and any(file.name.endswith(_SOURCE) for file in built)):
        return files
    known: set[renames.Edit] = set()
    for texts in (_texts(file, trees) for file in built[:_MOST_COMPARED]):
        known |= renames.edits(*texts).found if texts else frozenset()
    found = {}
    for file in following:
        changes = renames.edits(*texts) if (texts := _texts(file, trees)) else None
        if changes and changes.complete and changes.found <= known:
            what = "follows a rename" if changes.found else "has other comments"
            symbols = ", ".join(f"CONFIG_{symbol}" for symbol in file.symbols)
            reason = f"only {what}, and would be compiled with {symbols}"
            found[file.name] = TouchedFile(file.name, False, reason=reason)
    return [found.get(file.name, file) for file in files]


def _texts(file: TouchedFile, trees: Trees) -> tuple[str, str] | None:
    """Return a C file before and after the series; None if it is new, removed or in another
    language."""
    before = trees[-1] / file.name
    after = trees[0] / file.name
    if not (file.name.endswith((".c", ".h")) and before.is_file() and after.is_file()):
        return None
    return before.read_text(encoding="latin-1"), after.read_text(encoding="latin-1")


def _in_conditions(
    file: TouchedFile, trees: Trees, config: Mapping[str, str], arch: Arch
) -> TouchedFile:
    """Return ``file`` with the symbols of the ``#if`` lines around all that is changed in it."""
    texts = _texts(file, trees) if file.built else None
    missing = missing_symbols(*texts, config) if texts else []
    if not missing:
        return file
    symbols = with_dependencies(trees, arch, missing, config)
    return TouchedFile(file.name, False, symbols=tuple(symbols))


def _with_new_headers(files: list[TouchedFile], trees: Trees) -> list[TouchedFile]:
    """Return ``files``, of which each new header is compiled as a file of the series that includes
    it is.

    No file of the source includes a new header; but one of another folder may replace a header of
    the same name.
    """
    names = Counter(PurePosixPath(file.name).name for file in files)
    new = {
        file.name
        for file in files
        if file.name.endswith(".h")
        and "/asm" not in file.name
        and names[PurePosixPath(file.name).name] == 1
        and (trees[0] / file.name).is_file()
        and not (trees[-1] / file.name).is_file()
    }
    if not new:
        return files
    unused = "no compiled file includes it"
    found = {
        file.name: TouchedFile(file.name, False, reason=unused) if file.name in new else file
        for file in files
    }
    users: dict[str, list[str]] = defaultdict(list)
    for name in found:
        path = trees[0] / name
        for header in set(_HEADER.findall(path.read_bytes())) if path.is_file() else ():
            users[header.decode()].append(name)
    for _ in range(_HEADERS_DEPTH):
        for name in new:
            others = [found[user] for user in users[PurePosixPath(name).name] if user != name]
            able = [user for user in others if user.built or user.symbols]
            best = min(able, key=lambda user: len(user.symbols), default=found[name])
            found[name] = replace(best, name=name)
    return list(found.values())


@cache
def _dependencies(objects: Path) -> Mapping[str, list[str]]:
    """Return by each file of the source tree which C files of a build depend on it; "" for all."""
    users: dict[str, list[str]] = defaultdict(list)
    for path in objects.rglob(".*.o.cmd"):
        words = re.findall(r"^[ \t]++\.\./(\S+)", path.read_text(errors="replace"), re.MULTILINE)
        # A path from an -I or an #include may lead up: arch/x86/boot/compressed/../cmdline.c.
        words = [os.path.normpath(word) if "/../" in word else word for word in words]
        files = {str(path.relative_to(objects).with_name(path.name[1:-6] + ".c"))}
        files |= {word for word in words if word.endswith(".c")}  # Few include others.
        for word in {*words, ""}:
            users[word] += files
    return users


def _users_of_headers(objects: Path, names: Sequence[str]) -> dict[str, Collection[str]]:
    """Return by each header of ``names`` the C files of a build that depend on it."""
    return {name: _dependencies(objects).get(name, ()) for name in names if name.endswith(".h")}


def _is_named(header: str, tree: Path, files: Iterable[str]) -> bool:
    """Return whether one of ``files`` of ``tree`` names ``header``, as a file that includes it
    does."""
    name = re.split(r"(?:^|/)include/(?:uapi/)?", header)[-1].encode()
    return any(name in path.read_bytes() for file in files if (path := tree / file).is_file())
