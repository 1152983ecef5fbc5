"""The tree of files of a guest, and a root file system of the user's that it begins with.

A root is a folder, or a tar archive, and hostile like any archive. It is never extracted: what is
read becomes entries of the guest's archive. Names stay inside of the tree, and no path goes through
a link.
"""

import bz2
import gzip
import hashlib
import io
import lzma
import os
import shutil
import stat
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from kteardown.errors import InputError, damaged, failing
from kteardown.vm.initramfs import ArchiveEntry

MOST_BYTES = (4 << 30) - 1
"""The contents of a root. It is in the memory of the guest."""

_MOST_ENTRIES = 500_000
_MOST_LINKS = 40
_MOST_READ = 16 << 20
_PART = 1 << 20
_PATH_BYTES = 4096
_NAME_BYTES = 255
# What the agent has, mounts or makes itself.
_OURS = frozenset(("init", "plan", "modules", "script", "files", "dev", "proc", "sys"))
_BEGINS = frozenset(("init", "plan"))
"""With what a guest begins. A script may name the first: `exec chroot . /init` in a root that it
mounted."""
_COMPRESSED: dict[bytes, Callable[[IO[bytes], str], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}
_HINT = (
    "check how it was made: `tar -tvf` lists it, and `docker export` and mmdebstrap make such "
    "archives."
)


@dataclass(eq=False)
class GuestNode:
    """A file, folder or symbolic link; two paths of one node are hard links."""

    mode: int
    data: bytes = b""


class GuestTree:
    """The files of a guest by their paths, which have no leading slash. The root itself has no
    node."""

    def __init__(self) -> None:
        self._nodes: dict[str, GuestNode] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._nodes

    def put(self, path: str, node: GuestNode) -> None:
        """Add ``node`` at ``path``, whose folders are made. A file replaces a file, but not the
        agent.

        Raises InputError if a folder of the path is something else, or what it replaces is of
        another kind.
        """
        if path in _BEGINS:
            return
        at = path
        while "/" in at:
            at = at.rpartition("/")[0]
            above = self._nodes.setdefault(at, GuestNode(stat.S_IFDIR | 0o755))
            if not stat.S_ISDIR(above.mode):
                raise InputError(
                    f"the guest cannot have a file /{path}, because /{at} is not a folder",
                    hint="rename one of the two, or give another --root.",
                )
        before = self._nodes.get(path)
        if before is not None and stat.S_ISDIR(before.mode) != stat.S_ISDIR(node.mode):
            raise InputError(
                f"the guest needs /{path} both as a file and as a folder",
                hint="rename one of the two.",
            )
        self._nodes[path] = node

    def node(self, path: str) -> GuestNode | None:
        return self._nodes.get(path)

    def resolve(self, path: str) -> str:
        """Return where ``path`` is in the guest: links are followed, also the last one."""
        resolved: list[str] = []
        waiting = path.split("/")[::-1]
        links = 0
        while waiting:
            name = waiting.pop()
            if name == "..":
                resolved = resolved[:-1]
            elif name not in ("", "."):
                entry = self._nodes.get("/".join((*resolved, name)))
                if entry is None or not stat.S_ISLNK(entry.mode):
                    resolved.append(name)
                    continue
                links += 1
                if links > _MOST_LINKS:
                    raise InputError(
                        f"the symbolic links of /{path} in the guest form a loop",
                        hint="fix the links in the root file system.",
                    )
                target = os.fsdecode(entry.data)
                resolved = [] if target.startswith("/") else resolved
                waiting += target.split("/")[::-1]
        return "/".join(resolved)

    def folder(self, path: str, permissions: int = 0o755) -> None:
        """Make a folder, unless the tree has one there."""
        where = self.resolve(path)
        if where not in self._nodes:
            self.put(where, GuestNode(stat.S_IFDIR | permissions))

    def file(self, path: str, data: bytes, permissions: int = 0o644) -> None:
        """Add a file; the folders of its path are looked up as the guest does."""
        above, _, name = path.rpartition("/")
        self.put(
            f"{self.resolve(above)}/{name}".lstrip("/"), GuestNode(stat.S_IFREG | permissions, data)
        )

    def symlink(self, path: str, target: str) -> None:
        """Add a symbolic link, unless there is something else."""
        above, _, name = path.rpartition("/")
        where = f"{self.resolve(above)}/{name}".lstrip("/")
        if where not in self._nodes:
            self.put(where, GuestNode(stat.S_IFLNK | 0o777, os.fsencode(target)))

    def entries(self) -> Iterator[ArchiveEntry]:
        """Yield the entries of the archive, by their paths: folders come before what is in them."""
        first: dict[int, str] = {}
        times = Counter(map(id, self._nodes.values()))
        for path, node in sorted(self._nodes.items()):
            same_as = first.setdefault(id(node), path) if times[id(node)] > 1 else path
            # The kernel makes no hard links of symbolic links.
            if same_as == path or stat.S_ISLNK(node.mode):
                yield ArchiveEntry(path, node.mode, node.data)
            else:
                yield ArchiveEntry(path, node.mode, same_as=same_as)

    def hashes(self) -> dict[str, str]:
        """Return the sha256 of each regular file, by its path with a leading slash."""
        return {
            "/" + os.fsencode(path).decode(errors="backslashreplace"): hashlib.sha256(
                node.data
            ).hexdigest()
            for path, node in sorted(self._nodes.items())
            if stat.S_ISREG(node.mode)
        }


def add_root(tree: GuestTree, root: Path, most: int = MOST_BYTES) -> list[str]:
    """Add what is in the folder or tar archive ``root``; return notes about what was left out.

    Owners become root, and times 0. Raises InputError if it is damaged, too large or cannot be
    read.
    """
    reader = _Root(tree, root, most)
    with failing(
        f"cannot read the root file system {root}", hint="check the path, and that you may read it."
    ):
        if stat.S_ISDIR(root.stat().st_mode):
            reader.folder()
        else:
            reader.archive()
    return reader.notes()


def _contents(path: str, size: int) -> bytes:
    """Return the contents of a file, which was no link when it was listed, up to the size it
    had."""
    with open(
        os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb"
    ) as stream:
        return stream.read(size)


class _Root:
    """Reads one root into a tree, and counts what it reads and leaves out."""

    def __init__(self, tree: GuestTree, root: Path, most: int) -> None:
        self._tree, self._root, self._most = tree, root, most
        self._bytes = self._entries = 0
        self._left_out: Counter[str] = Counter()

    def folder(self) -> None:
        """Read a folder of the host; links stay links. What is on another file system is left
        out."""
        node_by_inode: dict[tuple[int, int], GuestNode] = {}
        device = self._root.stat().st_dev
        waiting = [(str(self._root), "")]
        while waiting:
            where, above = waiting.pop()
            with os.scandir(where) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
            for entry in entries:
                path = f"{above}/{entry.name}".lstrip("/")
                status = entry.stat(follow_symlinks=False)
                elsewhere = "" if status.st_dev == device else "mounted file systems"
                if not self._wanted(path, status.st_mode, elsewhere):
                    continue
                if stat.S_ISDIR(status.st_mode):
                    self._tree.put(path, GuestNode(status.st_mode))
                    waiting.append((entry.path, path))
                elif stat.S_ISLNK(status.st_mode):
                    self._tree.put(
                        path, GuestNode(stat.S_IFLNK | 0o777, os.fsencode(os.readlink(entry.path)))
                    )
                else:
                    identity = (status.st_dev, status.st_ino)
                    if identity not in node_by_inode:
                        self._count(status.st_size, path)
                        node_by_inode[identity] = GuestNode(
                            status.st_mode, _contents(entry.path, status.st_size)
                        )
                    self._tree.put(path, node_by_inode[identity])

    def _wanted(self, path: str, mode: int, why_not: str = "") -> bool:
        """Return whether an entry is added; take note of it if not. Raises InputError about too
        many."""
        self._entries += 1
        if self._entries > _MOST_ENTRIES:
            raise InputError(
                f"the root file system {self._root} has more than {_MOST_ENTRIES} entries",
                hint="make a smaller root file system: the guest holds all of it in memory.",
            )
        top = path.partition("/")[0]
        if top in _OURS and not (path == top and stat.S_ISDIR(mode)):
            why_not = f"files in /{top}" if path != top else f"/{top}"
        elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            why_not = "devices, fifos and sockets"
        if why_not:
            self._left_out[why_not] += 1
        return not why_not

    def _count(self, size: int, path: str) -> None:
        """Raise InputError if a file of ``size`` bytes is more than the guest can have."""
        self._bytes += size
        if not 0 <= size <= self._most or self._bytes > self._most:
            raise InputError(
                f"the root file system {self._root} is larger than {self._most >> 20} MB: "
                f"/{path} is over the limit",
                hint="make a smaller root file system: the guest holds all of it in memory.",
            )

    def notes(self) -> list[str]:
        return [
            f"left out of {self._root}: {kind} ({number})"
            for kind, number in sorted(self._left_out.items())
        ]

    def archive(self) -> None:
        """Read the tar archive, compressed or not."""
        with self._root.open("rb") as file:
            magic = file.read(6)
            opener = next(
                (opener for start, opener in _COMPRESSED.items() if magic.startswith(start)), None
            )
            if magic.startswith(b"\x28\xb5\x2f\xfd"):
                raise InputError(
                    f"the root file system {self._root} is compressed with zstd",
                    hint=f"decompress it first: zstd -d {self._root}",
                )
            file.seek(0)
            with self._reading():
                stream = cast(IO[bytes], opener(file, "rb")) if opener else file
                # Twice: headers and padding count, too.
                bounded = cast(IO[bytes], _Bounded(stream, 2 * self._most + (64 << 20)))
                with tarfile.open(fileobj=bounded, mode="r:", errorlevel=2) as members:
                    while (member := members.next()) is not None:
                        self._member(members, member)
                        # It keeps each member in a list.
                        members.members.clear()  # type: ignore[attr-defined]

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn whatever a damaged archive makes the libraries raise into an InputError."""
        with damaged(f"the root file system {self._root}", hint=_HINT):
            try:
                yield
            except (OSError, EOFError) as error:
                raise ValueError(error) from error

    def _member(self, members: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = self._path(member.name)
        if not path:
            return
        mode = stat.S_IFREG if member.isreg() or member.islnk() else 0
        mode = stat.S_IFDIR if member.isdir() else mode
        mode = stat.S_IFLNK if member.issym() else mode
        if not self._wanted(path, mode):
            return
        mode |= member.mode & 0o7777
        if member.issym():
            if not member.linkname or len(os.fsencode(member.linkname)) >= _PATH_BYTES:
                raise InputError(f"the link /{path} in {self._root} refers to nothing", hint=_HINT)
            self._tree.put(path, GuestNode(stat.S_IFLNK | 0o777, os.fsencode(member.linkname)))
        elif member.islnk():
            target = self._path(member.linkname)
            node = self._tree.node(target)
            if node is None or stat.S_ISDIR(node.mode):
                raise InputError(
                    f"the hard link /{path} in {self._root} refers to /{target}, but no file of "
                    "this name comes before the link",
                    hint=_HINT,
                )
            self._tree.put(path, node)
        elif member.isdir():
            self._tree.put(path, GuestNode(mode))
        else:
            self._count(member.size, path)
            self._tree.put(path, GuestNode(mode, _all_of(members, member)))

    def _path(self, name: str) -> str:
        """Return the path in the tree of a name in the archive. Raises InputError if it leaves the
        tree."""
        parts = [part for part in name.split("/") if part not in ("", ".")]
        long = len(os.fsencode(name)) >= _PATH_BYTES or any(
            len(os.fsencode(part)) > _NAME_BYTES for part in parts
        )
        if ".." in parts or "\0" in name or long:
            excerpt = name if len(name) < 100 else f"{name[:100]}..."
            raise InputError(
                f"{self._root} contains a file name that is not allowed: {excerpt!r}", hint=_HINT
            )
        return "/".join(parts)


def _all_of(members: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """Return the contents of a member."""
    contents = io.BytesIO()
    shutil.copyfileobj(cast(IO[bytes], members.extractfile(member)), contents, _PART)
    if contents.tell() != member.size:  # words: quote
        raise ValueError(f"{member.name} ends too early")
    return contents.getvalue()


class _Bounded:
    """A stream for tarfile that gives no more than ``most`` bytes, and few at once.

    A header says how long the next one is, and what is compressed can be without an end.
    """

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream, self._most = stream, most

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MOST_READ:
            raise ValueError(f"a header of {size} bytes")
        self._check(self._stream.tell() + size)  # words: quote
        return self._stream.read(size)

    def seek(self, at: int, whence: int = os.SEEK_SET) -> int:
        if whence != os.SEEK_SET:
            raise ValueError("it can only be read from its start")
        self._check(at)
        return self._stream.seek(at)

    def tell(self) -> int:  # words: quote
        return self._stream.tell()  # words: quote

    def _check(self, at: int) -> None:
        if not 0 <= at <= self._most:
            raise ValueError("it is too large")
