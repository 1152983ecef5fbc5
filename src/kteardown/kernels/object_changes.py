"""Which objects of a variant differ from those of its base, in code or data.

Debug information, the ids made from it, the line numbers of warnings, and numbers in names do not count: a
comment that a patch adds moves lines, and changes nothing that runs.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

_ALLOCATED = 0x2
_RELOCATIONS = (4, 9)  # SHT_RELA, SHT_REL
_EMPTY = 8  # SHT_NOBITS
_NOT_RUN = (b".note", b"__bug_table", b".debug", b".modinfo")
# Names with the number of their line, or of the names made before them, which a header may change.
_NUMBERED = re.compile(
    rb"(__initcall__kmod_\w+?__)\d+_\d+_|(__UNIQUE_ID_\w*?)\d+(?=[.\0])|(?<=\w)(?:\.\d+)+(?=\0)"
)
_NOT_COMPARED = re.compile(r"(?:scripts|tools|usr|arch/\w+/(?:boot|tools))/.*")
# They contain the configuration or the version, which a patch of Kconfig changes.
_GENERATED = ("kernel/configs.o", "init/version.o", "init/version-timestamp.o", "kernel/kheaders.o")


def changed_objects(base: Path, variant: Path) -> list[str]:
    """Return the objects compiled from source files that differ between two build folders, by name.

    An object that only one of them has differs.
    """
    every = _compiled(base)
    mine = _compiled(variant)
    changed = list(every.keys() ^ mine.keys())
    for name in every.keys() & mine.keys():
        one, other = every[name], mine[name]
        if one.stat().st_mtime_ns == other.stat().st_mtime_ns:
            continue  # The build of the variant began with a copy of the objects of base.
        if run_sections(one) != run_sections(other):
            changed.append(name)
    return sorted(name for name in changed if name not in _GENERATED)


def run_sections(path: Path) -> dict[bytes, tuple[bytes, ...]]:
    """Return the contents of the sections of an ELF file that are in memory when it runs, by name.

    A file that is no ELF file, or a damaged one, has one section, without a name.
    """
    data = path.read_bytes()
    try:
        return _sections(data) if data[:5] == b"\x7fELF\x02" else {b"": (data,)}
    except (struct.error, ValueError, IndexError):
        return {b"": (data,)}


def _sections(data: bytes) -> dict[bytes, tuple[bytes, ...]]:
    headers = list(_headers(data))
    if sum(size for _, kind, _, _, size, _ in headers if kind != _EMPTY) > 2 * len(data):
        raise ValueError  # Sections that overlap, thousands of times.
    names = headers[struct.unpack_from("<H", data, 62)[0]]
    found: dict[bytes, tuple[bytes, ...]] = {}
    kept: set[int] = set()
    for number, (name, kind, flags, offset, size, target) in enumerate(headers):
        title = data[names[3] + name : data.index(b"\0", names[3] + name)]
        if flags & _ALLOCATED and not title.startswith(_NOT_RUN):
            kept.add(number)
        elif not (kind in _RELOCATIONS and target in kept) and title != b".strtab":
            continue  # The names of symbols say which functions are called.
        content = b"%d" % size if kind == _EMPTY else data[offset : offset + size]
        if title == b".strtab":
            content = _NUMBERED.sub(rb"\1\2", content)
        found[title] = (*found.get(title, ()), content)
    return found


def _headers(data: bytes) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Yield name, type, flags, offset, size and the section that relocations are for, of each section."""
    (start,) = struct.unpack_from("<Q", data, 40)
    entry, count = struct.unpack_from("<HH", data, 58)
    for number in range(count):
        name, kind, flags, _, offset, size, _, info = struct.unpack_from(
            "<IIQQQQII", data, start + number * entry
        )
        yield name, kind, flags, offset, size, info


def _compiled(folder: Path) -> dict[str, Path]:
    """Return the objects that a compiler made of a source file, by their names below ``folder``."""
    found = {}
    for command in folder.rglob(".*.o.cmd"):
        path = command.with_name(command.name.removeprefix(".").removesuffix(".cmd"))
        name = str(path.relative_to(folder))
        if not path.is_file() or _NOT_COMPARED.fullmatch(name):
            continue
        with command.open(errors="replace") as stream:
            if any(line.startswith("source_") for line in stream):
                found[name] = path
    return found
