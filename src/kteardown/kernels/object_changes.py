"""Which objects of a variant differ from those of its base, in code or data, and which of their
functions.

Debug information, the ids made from it, the line numbers of warnings, and numbers in names do not
count: a comment that a patch adds moves lines, and changes nothing that runs. A diff does not say
which functions use the macro or the structure that it changes; the compiled code does.
"""

import re
import shutil
import struct
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from kteardown import sandbox
from kteardown.errors import BuildError
from kteardown.model.arch import ARCHITECTURES, Arch

_ALLOCATED = 0x2
_RELOCATIONS = (4, 9)  # SHT_RELA, SHT_REL
_EMPTY = 8  # SHT_NOBITS
_NOT_RUN = (b".note", b"__bug_table", b".debug", b".modinfo")
# Names with the number of their line, or of the names made before them, which a header may change.
_NUMBERED = re.compile(
    rb"(__initcall__kmod_\w+?__)\d+_\d+_|(__UNIQUE_ID_\w*?)(?<!\d)\d++(?=\.|\Z)|(?<=\w)(?:\.\d++)++\Z"
)
# No kernel has a symbol, a section or all names of an object as long as this; longer ones are not
# searched.
_LONGEST_SYMBOL = 512
_LONGEST_TITLE = 4096
_MOST_SYMBOLS = 4 << 20
_NAME = re.compile(r"(?!-)[\w.,+/-]{1,200}", re.ASCII)
_NOT_COMPARED = re.compile(r"(?:scripts|tools|usr|arch/\w+/(?:boot|tools))/.*")
# They contain the configuration or the version, which a patch of Kconfig changes.
_GENERATED = ("kernel/configs.o", "init/version.o", "init/version-timestamp.o", "kernel/kheaders.o")
Functions = Mapping[str, Sequence[str]]
"""By the name of an object, the names of functions."""
_FILE = re.compile(r"^(\S+):\s+file format .*$", re.MULTILINE)
_FUNCTION = re.compile(r"^[0-9a-f]++ <([^>\n]++)>:\n((?:.++\n)*+)", re.MULTILINE)
# What depends on where a function, a string or a static variable is: addresses, and offsets in
# sections.
_ADDRESS = re.compile(
    r"^ *+[0-9a-f]++:\t|(?<=\t)[0-9a-f]++: (?=R_)|\b[0-9a-f]++ (?=<)|(?<! ) ++# [^\t\n]*"
    r"|<[^<>\n]*+>(?=\t[0-9a-f]++: R_)",  # Whatever is there before the relocation.
    re.MULTILINE,
)
_PLACE = re.compile(r"(?<=\t)\.(?:L\w+|([\w.]+))(?:[+-]0x[0-9a-f]+)?$", re.MULTILINE)
# Where a field is in its structure: displacements, what is added to an address, and what code is
# skipped.
_FIELD = re.compile(
    r"-?\b0x[0-9a-f]+(?=\()|(?<=\t)(?:add|sub)\w? +\$-?0x[0-9a-f]+(?=,)"
    r"|\+0x[0-9a-f]+(?=>)|#-?\w+(?=\])"
    r"|(?<=\w)[+-]0x[0-9a-f]+$|^.*\bnop\w?\b.*\n",
    re.MULTILINE,
)
_PADDING = re.compile(r"(?:data16 |cs )*(?:nop\w?\b.*|xchg +%ax,%ax|int3)")


def changed_objects(base: Path, variant: Path) -> list[str]:
    """Return the objects compiled from source files that differ between two build folders, by name.

    An object that only one of them has differs.
    """
    in_base = _compiled(base)
    in_variant = _compiled(variant)
    changed = list(in_base.keys() ^ in_variant.keys())
    for name in in_base.keys() & in_variant.keys():
        base_object = in_base[name]
        variant_object = in_variant[name]
        if base_object.stat().st_mtime_ns == variant_object.stat().st_mtime_ns:
            continue  # The build of the variant began with a copy of the objects of base.
        if run_sections(base_object) != run_sections(variant_object):
            changed.append(name)
    return sorted(name for name in changed if name not in _GENERATED)


def run_sections(path: Path) -> dict[bytes, list[bytes]]:
    """Return the contents of the sections of an ELF file that are in memory when it runs, by name.

    A file that is no ELF file, or a damaged one, has one section, without a name.
    """
    data = path.read_bytes()
    try:
        return _sections(data) if data[:5] == b"\x7fELF\x02" else {b"": [data]}
    except (struct.error, ValueError, IndexError):
        return {b"": [data]}


def changed_functions(
    base: Path, variant: Path, objects: Sequence[str], arch: Arch
) -> tuple[Functions, Functions] | None:
    """Return the functions that differ in ``objects``, which are in the build folders of two
    kernels.

    A function that only one of them has differs. The second are those of the first that differ only
    in where the fields of structures are. None if no disassembler is installed.
    """
    program = ARCHITECTURES[arch].compiler.removesuffix("gcc") + "objdump"
    if shutil.which(program) is None:
        return None
    before, after = (_functions(program, folder, objects) for folder in (base, variant))
    differing_by_object: dict[str, Sequence[str]] = {}
    moved_by_object: dict[str, Sequence[str]] = {}
    for name in objects:
        old = before.get(name, {})
        new = after.get(name, {})
        every = sorted(old.keys() | new.keys())
        differing = tuple(function for function in every if old.get(function) != new.get(function))
        only_moved = tuple(
            function
            for function in differing
            if _without_fields(old, function) == _without_fields(new, function)
        )
        differing_by_object |= {name: differing} if differing else {}
        moved_by_object |= {name: only_moved} if only_moved else {}
    return differing_by_object, moved_by_object


def _without_fields(functions: Mapping[str, list[str]], name: str) -> list[str]:
    return sorted(_FIELD.sub("", body) for body in functions.get(name, ()))


def _sections(data: bytes) -> dict[bytes, list[bytes]]:
    # Name, type, flags, offset, size and the section that relocations are for, of each section.
    (table,) = struct.unpack_from("<Q", data, 40)
    entry, count = struct.unpack_from("<HH", data, 58)
    headers = [
        struct.unpack_from("<IIQ8xQQ4xI", data, table + index * entry) for index in range(count)
    ]
    if sum(size for _, kind, _, _, size, _ in headers if kind != _EMPTY) > 2 * len(data):
        raise ValueError  # Sections that overlap, thousands of times.
    names = headers[struct.unpack_from("<H", data, 62)[0]]
    sections: dict[bytes, list[bytes]] = {}
    loaded: set[int] = set()
    for number, (name, kind, flags, offset, size, target) in enumerate(headers):
        start = names[3] + name
        title = data[start : data.index(b"\0", start, start + _LONGEST_TITLE)]
        if flags & _ALLOCATED and not title.startswith(_NOT_RUN):
            loaded.add(number)
        elif not (kind in _RELOCATIONS and target in loaded) and title != b".strtab":
            continue  # The names of symbols say which functions are called.
        content = b"%d" % size if kind == _EMPTY else data[offset : offset + size]
        if title == b".strtab" and size <= _MOST_SYMBOLS:
            symbols = content.split(b"\0")
            content = b"\0".join(
                _NUMBERED.sub(rb"\1\2", symbol) if len(symbol) <= _LONGEST_SYMBOL else symbol
                for symbol in symbols
            )
        sections.setdefault(title, []).append(content)
    return sections


def _compiled(folder: Path) -> dict[str, Path]:
    """Return the objects that a compiler made of a source file, by their names below ``folder``.

    Raises BuildError for a name that no object of a kernel has: it would be shown to the user.
    """
    path_by_name = {}
    for command in folder.rglob(".*.o.cmd"):
        path = command.with_name(command.name.removeprefix(".").removesuffix(".cmd"))
        name = str(path.relative_to(folder))
        if not path.is_file() or _NOT_COMPARED.fullmatch(name):
            continue
        with command.open(errors="replace") as stream:
            if not any(line.startswith("source_") for line in stream):
                continue
        if not _NAME.fullmatch(name):
            raise BuildError(
                f"the build made an object named {name[:200]!a}",
                hint="check which files the patch adds to the makefiles.",
            )
        path_by_name[name] = path
    return path_by_name


def _functions(
    program: str, folder: Path, objects: Sequence[str]
) -> Mapping[str, Mapping[str, list[str]]]:
    """Return the instructions of each function of each object, without what depends on where they
    are."""
    present = [name for name in objects if (folder / name).is_file()]
    if not present:
        return {}
    argv = [program, "--disassemble", "--reloc", "--wide", "--no-show-raw-insn", *present]
    _, *parts = _FILE.split(sandbox.capture(argv, [folder], folder))
    return {name: _bodies(text) for name, text in zip(parts[::2], parts[1::2], strict=True)}


def _bodies(text: str) -> dict[str, list[str]]:
    bodies_by_function: dict[str, list[str]] = defaultdict(list)
    for function in _FUNCTION.finditer(text):
        body = _PLACE.sub(r".\1", _ADDRESS.sub("", function[2])).splitlines()
        while body and _PADDING.fullmatch(body[-1]):
            body.pop()
        # The compiler divides functions, and makes copies of them: f.cold, f.constprop.0.
        name = function[1].split(".")[0]
        if body and name and not name.startswith("__pfx_"):
            bodies_by_function[name].append("".join(f"{line}\n" for line in body))
    return {name: sorted(bodies) for name, bodies in bodies_by_function.items()}
