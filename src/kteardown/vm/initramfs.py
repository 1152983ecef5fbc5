"""Write the root file system of a guest: a cpio archive in the kernel's "newc" format.

cpio(1) is not used, so that the same agent and plan give the same bytes on every host: inode
numbers are consecutive, owners are root, times are 0, and the order is that of the entries.
The kernel documents the format in Documentation/driver-api/early-userspace/buffer-format.rst.
The archive is not compressed: under emulation, a guest reads a megabyte faster than it unpacks it.
"""

import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kteardown.door import Entry
from kteardown.errors import LabError, failing


@dataclass(frozen=True)
class ArchiveEntry:
    """One file, folder or device node. ``path`` is relative to the root, without a leading
    slash."""

    path: str
    mode: int
    """Type and permissions, as in ``struct stat``."""
    data: bytes = b""
    """The contents of a file, or what a symbolic link refers to."""
    device: tuple[int, int] = (0, 0)
    """Major and minor number of a device node."""
    same_as: str = ""
    """Of a hard link: the path of an earlier file, which has the contents."""


def folder(path: str) -> ArchiveEntry:
    """Return a folder that all users may read."""
    return ArchiveEntry(path, stat.S_IFDIR | 0o755)


def file(path: str, data: bytes, permissions: int = 0o644) -> ArchiveEntry:
    return ArchiveEntry(path, stat.S_IFREG | permissions, data)


def symlink(path: str, target: str) -> ArchiveEntry:
    return ArchiveEntry(path, stat.S_IFLNK | 0o777, os.fsencode(target))


def character_device(path: str, major: int, minor: int) -> ArchiveEntry:
    return ArchiveEntry(path, stat.S_IFCHR | 0o600, device=(major, minor))


def archive(entries: Sequence[ArchiveEntry]) -> bytes:
    """Return ``entries`` as a newc archive, in their order. A folder must come before its
    contents."""
    inodes = {entry.path: number for number, entry in enumerate(entries, start=1)}
    links = Counter(entry.same_as for entry in entries if entry.same_as)
    parts: list[bytes] = []
    for number, entry in enumerate(entries, start=1):
        shared = 1 + links[entry.same_as or entry.path] if links else 1
        parts += _member(entry, inodes[entry.same_as] if entry.same_as else number, shared)
    # Joined once: the contents may be large.
    return b"".join([*parts, *_member(ArchiveEntry("TRAILER!!!", 0), 0, 1)])


def pack(
    target: Entry,
    *,
    agent: Path,
    plan: str,
    modules: Sequence[Path] = (),
    module_index: str = "",
    programs: Sequence[Path] = (),
    archives: Sequence[Path] = (),
    first: Path | None = None,
) -> Path:
    """Write the initramfs of one boot to ``target`` and return its path.

    ``/init`` is the agent and ``/plan`` its plan; ``/modules`` contains ``modules`` and ``/bin``
    contains ``programs``, under their own names. ``/modules/index`` is ``module_index``, unless
    that is empty. ``archives`` are in the same format and follow,
    with files that must not be among these. With another ``first`` process, that is ``/init``, and
    the agent is ``/agent``. The kernel opens ``/dev/console`` before PID 1 can mount anything.
    Raises InputError if a file cannot be read, LabError if ``target`` cannot be written.
    """
    entries = [folder("dev"), character_device("dev/console", 5, 1)]
    entries += [file("init", _read(first or agent), 0o755), file("plan", plan.encode())]
    entries += [file("agent", _read(agent), 0o755)] if first else []
    if modules or module_index:
        entries.append(folder("modules"))
        entries += [file(f"modules/{module.name}", _read(module)) for module in modules]
    if module_index:
        entries.append(file("modules/index", module_index.encode()))
    if programs:
        entries.append(folder("bin"))
        entries += [file(f"bin/{program.name}", _read(program), 0o755) for program in programs]
    hint = "free some space there, then resume the run with `kteardown run --resume`."
    content = b"".join([archive(entries), *map(_read, archives)])
    with failing(f"cannot write the guest's initramfs to {target}", hint=hint, kind=LabError):
        target.replace(content, synced=False)
    return target.path


def _read(path: Path) -> bytes:
    hint = "check that the file exists and that you may read it."
    with failing(f"cannot read {path} for the guest's initramfs", hint=hint):
        return path.read_bytes()


def _member(entry: ArchiveEntry, inode: int, links: int) -> Iterator[bytes]:
    """Yield the parts of one member; ``links`` is how many entries have the contents of this
    one."""
    name = os.fsencode(entry.path) + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else links
    # c_ino, c_mode, c_uid, c_gid, c_nlink, c_mtime, c_filesize, c_maj, c_min, c_rmaj, c_rmin,
    # c_namesize, c_chksum: each eight hexadecimal digits.
    fields = (inode, entry.mode, 0, 0, links, 0, len(entry.data), 0, 0, *entry.device, len(name), 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    yield header + bytes(-len(header) % 4)
    yield entry.data
    yield bytes(-len(entry.data) % 4)
