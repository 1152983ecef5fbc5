"""Problems of descriptors and what they refer to: locks, watches, events, pipes, sockets,
terminals."""

from __future__ import annotations

import array
import fcntl
import os
import select
import socket
import struct
from typing import ClassVar

from vm.planted import calls
from vm.planted.problem import Expected, Held, Problem, Undone

_OFD_SETLK = 37
_SETLEASE = 1024
_FDS_OF_MESSAGE = 200


class _OneFile(Held):
    """Objects of one inode, whose name is in the list of locks."""

    objects = 1000
    count: ClassVar[str]

    def make(self) -> None:
        self.path = f"/tmp/planted-{type(self).__name__}"
        with open(self.path, "w", encoding="utf-8"):
            pass
        super().make()

    def expected(self) -> list[Expected]:
        inode = str(os.stat(self.path).st_ino)
        return [*self.process(), Expected(self.count, self.n, self.n, f"inode {inode}")]

    def clean(self) -> None:
        os.unlink(self.path)


class Flocks(_OneFile):
    count = "flocks"

    def build(self) -> None:
        for _ in range(self.n):
            fcntl.flock(os.open(self.path, os.O_RDONLY), fcntl.LOCK_SH)


class PosixLocks(_OneFile):
    count = "posix_locks"

    def build(self) -> None:
        fd = os.open(self.path, os.O_RDWR)
        for i in range(self.n):
            fcntl.lockf(fd, fcntl.LOCK_EX, 1, 2 * i)


class PosixUnlocks(_OneFile, Undone):
    count = "posix_locks"
    release_is = "fcntl(F_UNLCK) of each in their process, the youngest first"

    def build(self) -> None:
        self._fd = os.open(self.path, os.O_RDWR)
        for i in range(self.n):
            fcntl.lockf(self._fd, fcntl.LOCK_EX, 1, 2 * i)

    def undo(self) -> None:
        for i in range(self.calls - 1, -1, -1):
            fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, 2 * i)

    def clean(self) -> None:
        Undone.clean(self)
        super().clean()


class OfdLocks(_OneFile):
    count = "ofd_locks"

    def build(self) -> None:
        for i in range(self.n):
            fd = os.open(self.path, os.O_RDWR)
            one = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 2 * i, 1, 0)
            fcntl.fcntl(fd, _OFD_SETLK, one)


class Leases(_OneFile):
    count = "leases"
    objects = 300

    def build(self) -> None:
        for _ in range(self.n):
            fcntl.fcntl(os.open(self.path, os.O_RDONLY), _SETLEASE, fcntl.F_RDLCK)


class InotifyWatches(Held):
    objects = 1000
    folder = "/tmp/planted-watched"

    def build(self) -> None:
        os.makedirs(self.folder, exist_ok=True)
        fd = calls.inotify()
        for i in range(self.n):
            path = f"{self.folder}/{i}"
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
            calls.inotify_watch(fd, path)

    def expected(self) -> list[Expected]:
        return [
            *self.process(),
            Expected("inotify_watches", self.n, self.n),
            Expected("inotify_instances", 1, 1, f"[{self.pid}]"),
        ]


class EpollItems(Held):
    objects = 1000

    def build(self) -> None:
        self._epoll = select.epoll()
        for _ in range(self.n):
            self._epoll.register(os.eventfd(0), select.EPOLLIN)

    def expected(self) -> list[Expected]:
        return [
            *self.process(),
            Expected("epoll_items", self.n, self.n),
            Expected("epolls", 1),
            self.by_process("eventfds"),
        ]


class Eventfds(Held):
    objects = 1500

    def build(self) -> None:
        for _ in range(self.n):
            os.eventfd(0)

    def expected(self) -> list[Expected]:
        return [*self.process(), self.by_process("eventfds")]


class Timerfds(Held):
    objects = 1000

    def build(self) -> None:
        for _ in range(self.n):
            calls.timer_fd()

    def expected(self) -> list[Expected]:
        return [*self.process(), self.by_process("timerfds")]


class Pipes(Held):
    objects = 500

    def build(self) -> None:
        for _ in range(self.n):
            os.pipe()

    def expected(self) -> list[Expected]:
        return [*self.process(), self.by_process("pipes")]


class Memfds(Held):
    objects = 500

    def build(self) -> None:
        for i in range(self.n):
            os.memfd_create(f"planted-{i}")

    def expected(self) -> list[Expected]:
        return [*self.process(), self.by_process("memfds")]


class UnixPairs(Held):
    objects = 500

    def build(self) -> None:
        self._pairs = [socket.socketpair() for _ in range(self.n)]

    def expected(self) -> list[Expected]:
        return [
            *self.process(),
            Expected("unix_sockets", 2 * self.n),
            self.by_process("socket_descriptors", 2),
        ]


class UnixInFlight(Held):
    """Open files in the queue of one socket, which nobody receives."""

    objects = 1000

    def build(self) -> None:
        self._ends = socket.socketpair()
        self._ends[0].setsockopt(socket.SOL_SOCKET, 32, 1 << 28)  # SO_SNDBUFFORCE
        for at in range(0, self.n, _FDS_OF_MESSAGE):
            wanted = range(min(_FDS_OF_MESSAGE, self.n - at))
            files = array.array("i", [os.open("/dev/null", os.O_RDONLY) for _ in wanted])
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)]
            self._ends[0].sendmsg([b"x"], rights)
            for fd in files:
                os.close(fd)

    def expected(self) -> list[Expected]:
        return [
            *self.process(),
            self.by_process("unix_in_flight"),
            Expected("unix_sockets", 2),
            Expected("socket_descriptors", 2),
        ]


class Terminals(Held):
    objects = 100

    def build(self) -> None:
        for _ in range(self.n):
            os.openpty()

    def expected(self) -> list[Expected]:
        return [*self.process(), Expected("ptys", self.n)]


class Keys(Held):
    """Keys of one keyring, which is that of the session of their process."""

    objects = 1000

    def build(self) -> None:
        calls.join_session_keyring()
        for i in range(self.n):
            calls.add_key(f"planted-{i}")

    def expected(self) -> list[Expected]:
        return [*self.process(), Expected("keys", self.n + 1)]


class KeysUnlinked(Keys, Undone):
    release_is = "keyctl(KEYCTL_UNLINK) of each in their process"

    def build(self) -> None:
        calls.join_session_keyring()
        self._keys = [calls.add_key(f"planted-{i}") for i in range(self.n)]
        self._keys += [-1] * (self.calls - self.n)

    def undo(self) -> None:
        for key in self._keys:
            calls.unlink_key(key)


PROBLEMS: dict[str, type[Problem]] = {
    "flocks": Flocks,
    "posix_locks": PosixLocks,
    "posix_locks_unlocked": PosixUnlocks,
    "ofd_locks": OfdLocks,
    "leases": Leases,
    "inotify_watches": InotifyWatches,
    "epoll_items": EpollItems,
    "eventfds": Eventfds,
    "timerfds": Timerfds,
    "pipes": Pipes,
    "memfds": Memfds,
    "unix_pairs": UnixPairs,
    "unix_in_flight": UnixInFlight,
    "ptys": Terminals,
    "keys": Keys,
    "keys_unlinked": KeysUnlinked,
}
