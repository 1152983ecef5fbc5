"""ELF programs and the libraries that they load, read as hostile files."""

import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kteardown.errors import InputError
from kteardown.model.arch import Arch
from kteardown.paths import read_or_empty

MACHINES: dict[Arch, int] = {"x86_64": 62, "arm64": 183}
"""The number in an ELF file, by architecture."""
_MAGIC = b"\x7fELF"
_LOAD = 1
_DYNAMIC = 2
_INTERPRETER = 3
_NEEDED = 1
_STRTAB = 5
_STRSZ = 10
_RPATH = 15
_RUNPATH = 29
_DYNAMIC_ENTRIES = 4096
_LIBRARIES = 512
_PROGRAM_HEADERS = 512
_NAME_BYTES = 4096
_INCLUDE_DEPTH = 4
_FOLDERS = ("/lib/{triplet}", "/usr/lib/{triplet}", "/lib64", "/usr/lib64", "/lib", "/usr/lib")
_TRIPLETS = {62: "x86_64-linux-gnu", 183: "aarch64-linux-gnu"}


@dataclass(frozen=True)
class Elf:
    """What the dynamic loader needs to know of a 64-bit program or library."""

    machine: int
    interpreter: str
    """The path of the dynamic loader; empty for a library or a static program."""
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]


def is_elf(data: bytes) -> bool:
    """Return whether ``data`` begins as an ELF file does."""
    return data[:4] == _MAGIC


def read_elf(data: bytes, name: str) -> Elf:
    """Return what is known of the ELF file ``data``; ``name`` is for errors.

    Raises InputError if it is not a 64-bit little-endian ELF file, or is damaged.
    """
    try:
        return _Reader(data).read()
    except (struct.error, ValueError) as error:
        raise InputError(
            f"{name} is not a program that a guest can run: {error}",
            hint="install the program of this host's architecture anew, or do not name it.",
        ) from error


class _Reader:
    """Reads one file. Raises struct.error and ValueError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._loads: list[tuple[int, int, int]] = []

    def read(self) -> Elf:
        if len(self._data) < 64 or not is_elf(self._data):
            raise ValueError("it is not an ELF file")
        if self._data[4:6] != b"\x02\x01":
            raise ValueError("it is not a 64-bit little-endian ELF file")
        (machine,) = struct.unpack_from("<H", self._data, 18)
        (table,) = struct.unpack_from("<Q", self._data, 32)
        size, count = struct.unpack_from("<HH", self._data, 54)
        if (count and size != 56) or count > _PROGRAM_HEADERS:
            raise ValueError(f"its table of {count} program headers is damaged")
        segments = []
        for index in range(count):
            # Kind, flags, offset, address, physical address, size in the file.
            kind, _, offset, address, _, length = struct.unpack(
                "<IIQQQQ", self._part(table + 56 * index, 40)
            )
            segments.append((kind, offset, length))
            if kind == _LOAD:
                self._loads.append((address, offset, length))
        interpreter = next(
            (self._text(at, size) for kind, at, size in segments if kind == _INTERPRETER), ""
        )
        dynamic = next(((at, size) for kind, at, size in segments if kind == _DYNAMIC), None)
        needed, rpath, runpath = self._dynamic(*dynamic) if dynamic else ((), (), ())
        return Elf(machine, interpreter, needed, rpath, runpath)

    def _part(self, at: int, size: int) -> bytes:
        if at + size > len(self._data):
            raise ValueError("a part of it is beyond its end")
        return self._data[at : at + size]

    def _text(self, at: int, size: int) -> str:
        """Return the text that ends with a zero in the first ``size`` bytes from ``at``."""
        part = self._data[at : at + min(size, _NAME_BYTES)] if at < len(self._data) else b""
        text, end, _ = part.partition(b"\0")
        if not end:
            raise ValueError("a text in it has no end")
        return text.decode("utf-8", "strict")

    def _dynamic(
        self, at: int, size: int
    ) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Return the names of needed libraries, DT_RPATH and DT_RUNPATH."""
        count = size // 16
        if count > _DYNAMIC_ENTRIES:
            raise ValueError(f"its dynamic section has {count} entries")
        pairs = []
        for tag, value in struct.iter_unpack("<QQ", self._part(at, count * 16)):
            if tag == 0:
                break
            pairs.append((tag, value))
        known = dict(pairs)
        if _STRTAB not in known:
            return (), (), ()
        strings = self._offset(known[_STRTAB])
        length = known.get(_STRSZ, 0)

        def texts(wanted: int) -> list[str]:
            found = [value for tag, value in pairs if tag == wanted]
            return [self._text(strings + value, max(length - value, 0)) for value in found]

        rpath, runpath = (
            tuple(folder for text in texts(tag) for folder in text.split(":") if folder)
            for tag in (_RPATH, _RUNPATH)
        )
        return tuple(texts(_NEEDED)), rpath, runpath

    def _offset(self, address: int) -> int:
        """Return where in the file is what is at ``address`` in memory."""
        for start, offset, length in self._loads:
            if start <= address < start + length:
                return offset + address - start
        raise ValueError("an address in it is in none of its segments")


def libraries(path: Path, elf: Elf) -> Iterator[tuple[str, Path | None]]:
    """Yield each library that the program ``path`` needs, also those of its libraries, by its name.

    None: it is not on this host. The path is that by which the loader opens the library. Raises
    InputError if there are too many.
    """
    found: dict[str, Path | None] = {}
    # A library, and the folders of DT_RPATH of what loaded it.
    waiting: list[tuple[Path, Elf, tuple[str, ...]]] = [(path, elf, ())]
    for where, each, outer in waiting:
        own = () if each.runpath else tuple(_expanded(each.rpath, where))
        inherited = (*own, *outer)
        folders = (*inherited, *_expanded(each.runpath, where), *default_folders(elf.machine))
        for name in each.needed:
            if name in found:
                continue
            if len(found) == _LIBRARIES:
                raise InputError(
                    f"{path} needs more than {_LIBRARIES} libraries",
                    hint="link it statically, or use another.",
                )
            found[name] = None
            if hit := _find(name, folders, elf.machine):
                found[name] = hit[0]
                waiting.append((*hit, inherited))
            yield name, found[name]


def find_library(name: str, machine: int) -> Path | None:
    """Return a library of this host that programs load without needing it in their file."""
    hit = _find(name, default_folders(machine), machine)
    return hit and hit[0]


@cache
def default_folders(machine: int) -> tuple[str, ...]:
    """Return the folders of libraries of this host: of /etc/ld.so.conf, then those of the C
    library."""
    standard = (folder.format(triplet=_TRIPLETS.get(machine, "none")) for folder in _FOLDERS)
    return tuple(dict.fromkeys((*_configured(Path("/etc/ld.so.conf"), 0), *standard)))


def _configured(file: Path, depth: int) -> Iterator[str]:
    for line in read_or_empty(file).splitlines():
        words = line.partition("#")[0].split()
        if words[:1] == ["include"] and depth < _INCLUDE_DEPTH:
            for pattern in words[1:]:
                # A pattern may be relative to the file.
                whole = (file.parent / pattern).relative_to("/")
                for each in sorted(Path("/").glob(str(whole))):
                    yield from _configured(each, depth + 1)
        elif words and words[0].startswith("/"):
            yield words[0].rstrip("/") or "/"


def _expanded(folders: tuple[str, ...], of: Path) -> Iterator[str]:
    """Yield the folders of a DT_RPATH with $ORIGIN replaced; relative ones are left out."""
    for folder in folders:
        text = re.sub(r"\$(ORIGIN\b|\{ORIGIN\})", lambda _: str(of.parent), folder)
        if text.startswith("/") and "$" not in text:
            yield text


def _find(name: str, folders: tuple[str, ...], machine: int) -> tuple[Path, Elf] | None:
    """Return a library of this machine, as the loader finds it: the first file that fits."""
    for path in (Path(name),) if "/" in name else (Path(folder, name) for folder in folders):
        if path.is_absolute() and (elf := elf_of(path, machine)):
            return path, elf
    return None


def elf_of(path: Path, machine: int) -> Elf | None:
    """Return what is known of a file of this host, if it is a regular ELF file for ``machine``."""
    # Path.is_file() raises for folders that the user may not read.
    if not os.path.isfile(path):
        return None
    try:
        elf = read_elf(path.read_bytes(), str(path))
    except (InputError, OSError):
        return None
    return elf if elf.machine == machine else None
