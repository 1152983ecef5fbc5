"""The one door to the files of a run, a hunt or a bisection: it follows no link and opens no
device.

A run directory may come from a stranger, and what a stranger can put there is any name, link or
special file. So the files below it are reached part by part from the folder itself.
``scripts/check_doors.py`` finds code that opens them in another way.
"""

import errno
import fcntl
import fnmatch
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

SMALL = 64 << 20
"""Bytes: the most of a file that is read at once, unless more is asked for."""
LARGE = 256 << 20
"""Bytes: the most of a file with records, of a plan, of a result, or of a console."""
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1 << 20


class RefusedError(OSError):
    """What has this name is not opened: a link, a device, a pipe, a socket, or a file that is too
    large."""


@dataclass(frozen=True)
class Entry:
    """A file or a folder by its names below ``root``, whether it exists or not.

    ``root`` is a folder that the user named, or that this program made; its path may have links.
    What is below it may not. Methods raise OSError with the whole path as its file name, and
    RefusedError for what is not opened. It is not an ``os.PathLike``, so that no other function
    opens it by accident.
    """

    root: Path
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, path: Path) -> "Entry":
        """Return the file at ``path``, of which only the last part may not be a link."""
        return cls(path.parent, (path.name,))

    def __truediv__(self, name: object) -> "Entry":
        """Return the entry ``name`` of this folder; the name may have several parts."""
        return Entry(self.root, (*self.names, *str(name).split("/")))

    def __str__(self) -> str:
        return str(self.path)

    @property
    def path(self) -> Path:
        """The path for messages, and for programs that are started; see ``plain``."""
        return self.root.joinpath(*self.names)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def parent(self) -> "Entry":
        return Entry(self.root, self.names[:-1])

    def with_suffix(self, suffix: str) -> "Entry":
        return self.parent / self.path.with_suffix(suffix).name

    def plain(self) -> Path:
        """Return the path for a program that opens it by itself, after it was seen to be a plain
        file."""
        os.close(self._open(os.O_RDONLY))
        return self.path

    # Reading.

    def exists(self) -> bool:
        """Return whether there is anything of this name, a link included: reading then says what is
        wrong."""
        try:
            self.status()
        except (RefusedError, PermissionError):
            return True
        except OSError:
            return False
        return True

    def status(self) -> os.stat_result:
        """Return the status of what has this name, of a link that of the link."""
        if not self.names:
            return os.stat(self.root)
        with self._above() as folder:
            return os.stat(self.names[-1], dir_fd=folder, follow_symlinks=False)

    def stream(self) -> BinaryIO:
        """Open the file for reading, of whatever size."""
        return os.fdopen(self._open(os.O_RDONLY), "rb")

    def content(self, most: int = SMALL) -> bytes:
        """Return the whole file as it is now. Raises RefusedError if it has more than ``most``
        bytes."""
        with self.stream() as stream:
            return stream.read(self._size_of(stream, most))

    def text(self, most: int = SMALL) -> str:
        """Return the whole file as text; bytes that are not UTF-8 are replaced. Raises as
        ``content``."""
        return self.content(most).decode("utf-8", "replace")

    def count(self, word: bytes, most: int = LARGE) -> int:
        """Return how often ``word`` is in the file. Raises as ``content``; little of it is in
        memory."""
        total = 0
        tail = b""
        with self.stream() as stream:
            self._size_of(stream, most)
            while chunk := stream.read(_CHUNK):
                text = tail + chunk
                total += text.count(word)
                tail = text[1 - len(word) :]
        return total

    def entries(self, pattern: str = "*") -> list["Entry"]:
        """Return what is in this folder under a name that fits ``pattern``, sorted; nothing without
        it."""
        try:
            with self._inside(self.names) as folder:
                fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
                try:
                    names = os.listdir(fd)
                finally:
                    os.close(fd)
        except FileNotFoundError:
            return []
        return [self / name for name in sorted(names) if fnmatch.fnmatchcase(name, pattern)]

    # Writing.

    def replace(
        self, content: str | bytes, *, synced: bool = True, permissions: int = 0o666
    ) -> None:
        """Write the file anew and give it its name; if ``synced``, it is on the disk on return.

        A file or a link that has the name is replaced and not written to. The umask takes its part
        of the ``permissions``.
        """
        data = content.encode() if isinstance(content, str) else content
        partial = f".{secrets.token_hex(8)}.partial"
        with self._above() as folder:
            flags = _FILE | os.O_WRONLY | os.O_CREAT | os.O_EXCL
            try:
                fd = os.open(partial, flags, permissions, dir_fd=folder)
                with os.fdopen(fd, "wb", buffering=0) as file:
                    rest = memoryview(data)
                    while rest:
                        rest = rest[file.write(rest) :]
                    if synced:
                        os.fsync(file.fileno())
                os.rename(partial, self.names[-1], src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:  # Ctrl-C too leaves nothing behind.
                with suppress(OSError):
                    os.unlink(partial, dir_fd=folder)
                raise
            if synced:
                _sync_folder(folder)

    def create(self) -> BinaryIO:
        """Make an empty file for writing, in place of a file or a link that has the name."""
        with self._above() as folder:
            with suppress(FileNotFoundError):
                os.unlink(self.names[-1], dir_fd=folder)
            flags = _FILE | os.O_WRONLY | os.O_CREAT | os.O_EXCL
            return os.fdopen(os.open(self.names[-1], flags, 0o666, dir_fd=folder), "wb")

    def append(self) -> int:
        """Return a descriptor that reads, and writes at the end of the file, which is made if need
        be.

        Raises RefusedError if the file has a second name: what is written would also be in that.
        """
        fd = self._open(os.O_RDWR | os.O_CREAT | os.O_APPEND)
        if os.fstat(fd).st_nlink > 1:
            os.close(fd)
            raise _refused(
                self,
                "it is a hard link, and the other file would change too: copy it",
                errno.EMLINK,
            )
        return fd

    def make_folder(self) -> None:
        """Make this folder and those above it, unless they exist; ``root`` must have a folder above
        it."""
        with suppress(FileExistsError):
            os.mkdir(self.root)
        for number in range(len(self.names)):
            with self._inside(self.names[:number]) as folder, suppress(FileExistsError):
                os.mkdir(self.names[number], dir_fd=folder)
        with self._inside(self.names):
            pass

    def make_new_folder(self) -> None:
        """Make this folder. Raises FileExistsError if anything has its name."""
        with self._above() as folder:
            os.mkdir(self.names[-1], dir_fd=folder)

    def remove(self) -> None:
        """Remove the file or the link, unless there is none."""
        with suppress(FileNotFoundError), self._above() as folder:
            os.unlink(self.names[-1], dir_fd=folder)

    def remove_tree(self) -> None:
        """Remove this folder with what is in it; links in it are removed and not followed."""
        with suppress(OSError), self._above() as folder:
            shutil.rmtree(self.names[-1], ignore_errors=True, dir_fd=folder)

    def move_to(self, other: "Entry") -> None:
        """Give this file or folder the name ``other``, in the same file system."""
        with self._above() as here, other._above() as there:
            os.rename(self.names[-1], other.names[-1], src_dir_fd=here, dst_dir_fd=there)

    def link_to(self, other: "Entry") -> bool:
        """Give this file the further name ``other``; return whether that is a name of this file
        now.

        It is not if anything else has that name, which is kept.
        """
        self.plain()
        with self._above() as here, other._above() as there:
            ours = self.names[-1]
            theirs = other.names[-1]
            try:
                os.link(ours, theirs, src_dir_fd=here, dst_dir_fd=there, follow_symlinks=False)
            except FileExistsError:
                # A network file system may answer a request that it has carried out with an error,
                # if it was sent twice.
                return os.path.samestat(self.status(), other.status())
        return True

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold a lock (flock) on this file, which is made. Raises BlockingIOError if it is held
        already."""
        fd = self._open(os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        finally:
            os.close(fd)

    # The way to an entry.

    def _open(self, flags: int) -> int:
        with self._above() as folder:
            with suppress(FileNotFoundError):  # To open a device can have an effect.
                self._check(os.stat(self.names[-1], dir_fd=folder, follow_symlinks=False))
            fd = os.open(self.names[-1], flags | _FILE, 0o666, dir_fd=folder)
            try:
                self._check(os.fstat(fd))
            except BaseException:
                os.close(fd)
                raise
            return fd

    def _size_of(self, stream: BinaryIO, most: int) -> int:
        size = os.fstat(stream.fileno()).st_size
        if size > most:
            raise _refused(
                self, f"it has more than {most >> 20} MB, which is too large", errno.EFBIG
            )
        return size

    def _check(self, status: os.stat_result) -> None:
        if stat.S_ISLNK(status.st_mode):
            raise _refused(self, "it is a link, which is not followed", errno.ELOOP)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise _refused(
                self, "it is a device, a pipe or a socket, which is not opened", errno.EINVAL
            )

    def _above(self) -> AbstractContextManager[int]:
        """Yield a descriptor of the folder that has this entry; raises as ``_inside``."""
        if not self.names:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(self.root))
        return self._inside(self.names[:-1])

    @contextmanager
    def _inside(self, names: tuple[str, ...]) -> Iterator[int]:
        """Yield a descriptor of the folder ``names``; OSErrors of the block get the path of this
        entry."""
        fd = -1
        try:
            if not all(map(_is_name, self.names)):
                raise _refused(self, "its name leads out of the folder", errno.EINVAL)
            fd = os.open(self.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            for name in names:
                outer = fd
                try:
                    fd = os.open(name, _FOLDER, dir_fd=outer)
                except NotADirectoryError:
                    if stat.S_ISLNK(os.stat(name, dir_fd=outer, follow_symlinks=False).st_mode):
                        raise _refused(
                            self, f"{name} is a link, which is not followed", errno.ELOOP
                        ) from None
                    raise
                os.close(outer)
            yield fd
        except OSError as error:
            error.filename = str(self.path)
            raise
        finally:
            if fd >= 0:
                os.close(fd)


def _is_name(text: str) -> bool:
    """Return whether a file can have this name, and has it in the folder in which it is looked
    for."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return "\0" not in text and text not in ("", ".", "..")


def _refused(entry: Entry, reason: str, number: int) -> RefusedError:
    return RefusedError(number, reason, str(entry.path))


def _sync_folder(folder: int) -> None:
    """Write the names in a folder to the disk; ``folder`` is a descriptor for its path alone."""
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
