"""ELF programs and the libraries that they load, read as hostile files."""

import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kteardown.errors import InputError
from kteardown.kernels.elf_file import DamagedElf, elf_headers
from kteardown.model.arch import Arch
from kteardown.paths import read_or_empty

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

MACHINES: dict[Arch, str] = {"x86_64": "EM_X86_64", "arm64": "EM_AARCH64"}
"""The machine that an ELF file names, by architecture."""
_MAGIC = b"\x7fELF"
_LIBRARIES = 512
_NAME_BYTES = 4096
_INCLUDE_DEPTH = 4
_FOLDERS = ("/lib/{triplet}", "/usr/lib/{triplet}", "/lib64", "/usr/lib64", "/lib", "/usr/lib")
_TRIPLETS = {"EM_X86_64": "x86_64-linux-gnu", "EM_AARCH64": "aarch64-linux-gnu"}


@dataclass(frozen=True)
class Elf:
    """What the dynamic loader needs to know of a 64-bit program or library."""

    machine: str
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
        with elf_headers(io.BytesIO(data)) as file:
            return _read(file)
    except DamagedElf as error:
        raise InputError(
            f"{name} is not a program that a guest can run: {error}",
            hint="reinstall the program for the architecture of this host, or leave it out.",
        ) from error


def _read(file: "ELFFile") -> Elf:
    from elftools.elf.dynamic import DynamicSegment
    from elftools.elf.segments import InterpSegment

    if file.elfclass != 64 or not file.little_endian:
        raise ValueError("it is not a 64-bit little-endian ELF file")
    # A loader reads no sections: they may be missing, or contradict the segments.
    file.header["e_shoff"] = 0
    segments = list(file.iter_segments())
    interpreters = (s.get_interp_name() for s in segments if isinstance(s, InterpSegment))
    dynamic = next((s for s in segments if isinstance(s, DynamicSegment)), None)
    if dynamic and dynamic.get_table_offset("DT_STRTAB") == (None, None):
        dynamic = None

    def texts(name: str) -> Iterator[str]:
        for tag in dynamic.iter_tags(f"DT_{name.upper()}") if dynamic else ():
            yield _short(getattr(tag, name))

    rpath, runpath = (
        tuple(folder for text in texts(name) for folder in text.split(":") if folder)
        for name in ("rpath", "runpath")
    )
    interpreter = _short(next(interpreters, ""))
    return Elf(str(file["e_machine"]), interpreter, tuple(texts("needed")), rpath, runpath)


def _short(text: str) -> str:
    if len(text) > _NAME_BYTES:
        raise ValueError("a name in the file is too long")
    return text


def libraries(path: Path, elf: Elf) -> Iterator[tuple[str, Path | None]]:
    """Yield each library that the program ``path`` needs, also those of its libraries, by its name.

    None: it is not on this host. The path is that by which the loader opens the library. Raises
    InputError if there are too many.
    """
    path_by_name: dict[str, Path | None] = {}
    # A library, and the folders of DT_RPATH of what loaded it.
    waiting: list[tuple[Path, Elf, tuple[str, ...]]] = [(path, elf, ())]
    for where, binary, outer in waiting:
        rpath_folders = () if binary.runpath else tuple(_expanded(binary.rpath, where))
        inherited = (*rpath_folders, *outer)
        folders = (*inherited, *_expanded(binary.runpath, where), *default_folders(elf.machine))
        for name in binary.needed:
            if name in path_by_name:
                continue
            if len(path_by_name) == _LIBRARIES:
                raise InputError(
                    f"{path} needs more than {_LIBRARIES} libraries",
                    hint="link the program statically, or use another one.",
                )
            path_by_name[name] = None
            if hit := _find(name, folders, elf.machine):
                path_by_name[name] = hit[0]
                waiting.append((*hit, inherited))
            yield name, path_by_name[name]


def find_library(name: str, machine: str) -> Path | None:
    """Return a library of this host that programs load without needing it in their file."""
    hit = _find(name, default_folders(machine), machine)
    return hit and hit[0]


@cache
def default_folders(machine: str) -> tuple[str, ...]:
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
                below_root = (file.parent / pattern).relative_to("/")
                for included in sorted(Path("/").glob(str(below_root))):
                    yield from _configured(included, depth + 1)
        elif words and words[0].startswith("/"):
            yield words[0].rstrip("/") or "/"


def _expanded(folders: tuple[str, ...], of: Path) -> Iterator[str]:
    """Yield the folders of a DT_RPATH with $ORIGIN replaced; relative ones are left out."""
    for folder in folders:
        text = re.sub(r"\$(ORIGIN\b|\{ORIGIN\})", lambda _: str(of.parent), folder)
        if text.startswith("/") and "$" not in text:
            yield text


def _find(name: str, folders: tuple[str, ...], machine: str) -> tuple[Path, Elf] | None:
    """Return a library of this machine, as the loader finds it: the first file that fits."""
    for path in (Path(name),) if "/" in name else (Path(folder, name) for folder in folders):
        if path.is_absolute() and (elf := elf_of(path, machine)):
            return path, elf
    return None


def elf_of(path: Path, machine: str) -> Elf | None:
    """Return what is known of a file of this host, if it is a regular ELF file for ``machine``."""
    # Path.is_file() raises for folders that the user may not read.
    if not os.path.isfile(path):
        return None
    try:
        elf = read_elf(path.read_bytes(), str(path))
    except (InputError, OSError):
        return None
    return elf if elf.machine == machine else None
