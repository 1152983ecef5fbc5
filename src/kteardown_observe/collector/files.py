"""How files and folders are read: a part of each, never waiting, never following a link.

A file is opened with O_NONBLOCK, so that a pipe in its place does not block, and with
O_NOFOLLOW. No more than a bound of bytes is read. That a file is not there, may not be read or
fails is normal.
"""

import array
import errno
import os
import re
import stat
import time
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set, Tuple

NAME_MOST = 100
READ_MOST = 65536
PIECE = 65536
LINE_MOST = 65536
CHECK_EVERY = 256
REASONS = {
    errno.EACCES: "permission",
    errno.EPERM: "permission",
    errno.ENOENT: "not there",
    errno.ENOTDIR: "not there",
    errno.ENODEV: "not there",
    errno.ENXIO: "not there",
    errno.EOPNOTSUPP: "not there",
    errno.ESRCH: "not there",
    errno.ETIMEDOUT: "time",
    errno.ENOMEM: "memory",
}
FILE_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC


class Unreadable(Exception):
    """A file that cannot be read; ``reason`` is one of the reasons of what is missing."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class Malformed(ValueError):
    """A text that is not what the kernel writes."""


def unreadable(error: OSError, path: str) -> Unreadable:
    """Return what an error of the system means for a file."""
    reason = REASONS.get(error.errno or 0, "error")
    name = errno.errorcode.get(error.errno or 0, "an error")
    return Unreadable(reason, f"{name} on {path}")


def number_in(text: bytes) -> int:
    """Return a decimal number, or raise Malformed."""
    if not re.match(rb"-?[0-9]{1,20}\Z", text):
        raise Malformed(printable(text))
    return int(text)


def printable(name: bytes) -> str:
    """Return a name of at most 100 characters, each of which can be printed on a terminal."""
    text = name[: NAME_MOST * 4].decode("utf-8", "replace")[:NAME_MOST]
    return "".join(c if c.isprintable() and c != "\ufffd" else "?" for c in text)


def shown(text: str) -> str:
    """Return a text with names of files in it as ``printable`` does, with twice the length."""
    encoded = os.fsencode(text)
    return printable(encoded[:NAME_MOST]) + printable(encoded[NAME_MOST : 2 * NAME_MOST])


class Host:
    """Where to read, and how much CPU time the present reading may still use."""

    def __init__(self, proc: str = "/proc", sys: str = "/sys") -> None:
        self.proc = proc
        self.sys = sys
        self.files = 0
        self.end_s = float("inf")
        self.end_elapsed_s = float("inf")
        self.late = False
        """Whether the present reading has used its elapsed time."""
        self.user_pids = array.array("q")
        """Processes that are neither zombies nor kernel threads, spread over all of them."""
        self.listed = 0
        """How many processes /proc has listed, kernel threads and zombies too."""
        self.page_tables: List[Tuple[int, int]] = []
        """Size of the page tables (kB) and process, of the processes with the largest ones."""
        self.page_tables_whole = False
        """Whether these are all processes."""
        self.mount_namespaces: Dict[str, int] = {}
        """A process of each mount namespace, by the link to it."""
        self.network_namespaces: Set[str] = set()
        """Each network namespace, as links to it call it."""
        self.network_visits: List[Visit] = []
        """The visits that found them."""
        self.namespaces_visit: Optional[Visit] = None
        """The visit that found the mount namespaces."""
        self.sockets: List[Tuple[int, str]] = []
        """A process and a descriptor of each socket."""
        self.descriptors_visit: Optional[Visit] = None
        """The visit that found them."""
        self.process_names: Dict[int, str] = {}
        self.kernel_threads = 0
        """How many /proc has listed: none in the PID namespace of a container."""
        self.inotify: Dict[int, Tuple[int, int]] = {}
        """Instances and watches of each process that has any."""
        self.limits: Dict[str, Dict[str, Any]] = {}
        """How many there are and may be, by the name of the limit."""
        self.quota_folders: List[str] = []
        """The folders of the cgroups with a limit of CPU time."""

    def allow(self, cpu_s: float, elapsed_s: float = float("inf")) -> None:
        """Begin a reading that may use so much CPU time, and so much time on a busy machine."""
        self.files = 0
        self.late = False
        self.end_s = time.process_time() + cpu_s
        self.end_elapsed_s = time.monotonic() + elapsed_s

    def spent(self) -> bool:
        """Return whether the present reading has used its time."""
        used = time.process_time() >= self.end_s
        return used or self.late or time.monotonic() >= self.end_elapsed_s

    def narrow(self, share: float) -> float:
        """Leave only a share of the time for what comes next; return the end of the reading."""
        end_s = self.end_s
        now_s = time.process_time()
        self.end_s = now_s + (end_s - now_s) * share
        return end_s

    def open(self, path: str) -> int:
        """Open a regular file, or raise Unreadable."""
        self.files += 1
        try:
            fd = os.open(path, FILE_FLAGS)
        except OSError as error:
            raise unreadable(error, path) from None
        except ValueError:
            raise Unreadable("error", "a name with a NUL byte") from None
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise Unreadable("error", f"not a regular file: {path}")
        return fd

    def read_part(self, path: str, most: int = READ_MOST) -> Tuple[bytes, bool]:
        """Return the first bytes of a file, at most ``most``, and whether these are all.

        Raises Unreadable.
        """
        fd = self.open(path)
        data = b""
        try:
            while len(data) <= most:
                piece = os.read(fd, most + 1 - len(data))
                if not piece:
                    return data, True
                data += piece
        except OSError as error:
            raise unreadable(error, path) from None
        finally:
            os.close(fd)
        return data[:most], False

    def read(self, path: str, most: int = READ_MOST) -> bytes:
        """Return the first bytes of a file; raises Unreadable."""
        return self.read_part(path, most)[0]

    def read_once(self, path: str, most: int = 16384) -> bytes:
        """Return what one system call reads; enough for a file that the kernel writes at once."""
        fd = self.open(path)
        try:
            return os.read(fd, most)
        except OSError as error:
            raise unreadable(error, path) from None
        finally:
            os.close(fd)

    def number(self, path: str, field: int = 0) -> int:
        """Return a number of a file with numbers in one line; raises Unreadable or Malformed."""
        fields = self.read(path, 4096).split()
        if field >= len(fields):
            raise Malformed(f"no field {field} in {path}")
        return number_in(fields[field])

    def link(self, path: str) -> str:
        """Return where a link points to; raises Unreadable."""
        self.files += 1
        try:
            return os.readlink(path)
        except OSError as error:
            raise unreadable(error, path) from None

    def lines(self, path: str, most: int) -> "Lines":
        """Return the lines of a file, which is read while they are used."""
        return Lines(self, path, most)

    def names(self, path: str, most: int = 1000000) -> Iterator["os.DirEntry[str]"]:
        """Yield what is in a folder until the time of the reading is used; raises Unreadable."""
        self.files += 1
        try:
            with os.scandir(path) as entries:
                for index, entry in enumerate(entries):
                    if index >= most or (index % CHECK_EVERY == CHECK_EVERY - 1 and self.spent()):
                        return
                    yield entry
        except OSError as error:
            raise unreadable(error, path) from None

    def process_name(self, pid: int) -> str:
        """Return ``bash[123]``; ``[123]`` if the process is gone."""
        if pid not in self.process_names:
            try:
                comm = self.read_once(f"{self.proc}/{pid}/comm", 100)
            except Unreadable:
                comm = b""
            self.process_names[pid] = f"{printable(comm[:-1])[:64]}[{pid}]"
        return self.process_names[pid]


class Lines:
    """The lines of a file without their ends. ``whole`` tells whether the last one was reached.

    Iterating raises Unreadable if the file cannot be opened. If it fails later, or the reading has
    used its time, or a line is too long, the lines end and ``whole`` stays False.
    """

    def __init__(self, host: Host, path: str, most: int) -> None:
        self.host = host
        self.path = path
        self.most = most
        self.whole = False

    def __iter__(self) -> Iterator[bytes]:
        fd = self.host.open(self.path)
        rest = b""
        had = 0
        try:
            while had < self.most and len(rest) < LINE_MOST and not self.host.spent():
                piece = os.read(fd, PIECE)
                if not piece:
                    self.whole = True
                    break
                had += len(piece)
                found = (rest + piece).split(b"\n")
                rest = found.pop()
                yield from found
        except OSError as error:
            if not had:
                raise unreadable(error, self.path) from None
            return
        finally:
            os.close(fd)
        if self.whole and rest:
            yield rest


class Visit:
    """Goes through many entities until the time is used, and keeps what could not be read."""

    def __init__(self, host: Host, entities: Iterable[int], of: int, whole: bool = True) -> None:
        self.host = host
        self.entities = entities
        self.of = of
        self.whole = whole
        self.seen = 0
        self.read_ok = 0
        self.failed: Dict[str, int] = {}
        self.examples: Dict[str, str] = {}

    def __iter__(self) -> Iterator[int]:
        for entity in self.entities:
            if self.host.spent():
                self.whole = False
                return
            self.seen += 1
            yield entity

    def fail(self, failure: Unreadable) -> None:
        """Count one entity that could not be read."""
        self.examples.setdefault(failure.reason, failure.detail)
        self.failed[failure.reason] = self.failed.get(failure.reason, 0) + 1

    def read(self, path: str, most: int = 16384) -> Optional[bytes]:
        """Return what one system call reads; None, and count it, if that fails."""
        try:
            data = self.host.read_once(path, most)
        except Unreadable as failure:
            self.fail(failure)
            return None
        self.read_ok += 1
        return data

    def complete(self) -> bool:
        """Return whether every entity that still exists was read."""
        return self.whole and not (set(self.failed) - {"not there"})


def spread(length: int) -> Iterator[int]:
    """Yield each index below ``length`` once, such that the first ones are spread over all.

    The step is near the golden section of the length, and has no divisor in common with it.
    """
    step = max(1, int(length * 0.6180339887))
    while _divisor(step, length) > 1:
        step += 1
    for number in range(length):
        yield number * step % length


def _divisor(first: int, second: int) -> int:
    while second:
        first, second = second, first % second
    return first
