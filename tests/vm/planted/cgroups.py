"""Problems of cgroups: those that are removed and still there, those that exist, quotas."""

from __future__ import annotations

import os
import socket

from vm.planted import calls
from vm.planted.problem import Expected, Held, Problem

ROOT = "/sys/fs/cgroup"


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)


def read_stat(name: str) -> int:
    """Return a field of the root's cgroup.stat; 0 if the kernel lacks it."""
    with open(f"{ROOT}/cgroup.stat", encoding="utf-8") as stream:
        fields = dict(line.split() for line in stream)
    return int(fields.get(name, 0))


class _Below(Problem):
    """Cgroups in a folder of their own."""

    objects = 100
    controller = "memory"

    @property
    def folder(self) -> str:
        return f"{ROOT}/planted-{type(self).__name__.lower()}"

    def group(self, i: int) -> str:
        return f"{self.folder}/{i}"

    def make_folder(self) -> None:
        os.mkdir(self.folder)
        _write(f"{ROOT}/cgroup.subtree_control", "+memory +cpu")
        _write(f"{self.folder}/cgroup.subtree_control", f"+{self.controller}")

    def living(self, groups: int = 0, memory: int = 0) -> list[Expected]:
        """The folder with cgroups in it, and how many of these have the memory controller."""
        return [Expected("cgroups", 1 + groups), Expected("memory_cgroups", 1 + memory)]

    def clean(self) -> None:
        os.rmdir(self.folder)


class DyingPages(_Below):
    """Each had a process that wrote a page of one file, and was removed.

    A kernel that moves the pages to the parent frees the cgroup at once, and counts none.
    """

    release_is = "unlink of the file"
    path = "/tmp/planted-pages"

    def make(self) -> None:
        self._before = read_stat("nr_dying_descendants")
        self.make_folder()
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT)
        for i in range(self.n):
            os.mkdir(self.group(i))
            _write(f"{self.group(i)}/cgroup.procs", "0")
            os.pwrite(fd, b"page", i * calls.PAGE)
            _write(f"{ROOT}/cgroup.procs", "0")
            os.rmdir(self.group(i))
        os.close(fd)

    def expected(self) -> list[Expected]:
        dying = read_stat("nr_dying_descendants") - self._before
        return [
            *self.living(),
            Expected("dying_cgroups", dying),
            Expected("dying_memory_cgroups", dying),
        ]

    def release(self) -> None:
        os.unlink(self.path)


class DyingSockets(_Below):
    """Each had a process that made a TCP socket, and was removed; the socket stays."""

    release_is = "exit of the process that has the sockets"

    def make(self) -> None:
        self.make_folder()
        self._held = _Sockets(self)
        self._held.make()

    def expected(self) -> list[Expected]:
        return [
            *self._held.process(),
            *self.living(),
            Expected("dying_cgroups", self.n),
            Expected("dying_memory_cgroups", self.n),
            Expected("socket_descriptors", self.n, self.n, f"[{self._held.pid}]"),
        ]

    def tasks(self) -> tuple[int, ...]:
        return self._held.tasks()

    def release(self) -> None:
        self._held.release()


class _Sockets(Held):
    def __init__(self, of: _Below) -> None:
        super().__init__(of.n)
        self._of = of

    def build(self) -> None:
        self._sockets = []
        for i in range(self.n):
            group = self._of.group(i)
            os.mkdir(group)
            _write(f"{group}/cgroup.procs", "0")
            self._sockets.append(socket.socket())
            _write(f"{ROOT}/cgroup.procs", "0")
            os.rmdir(group)


class MemoryCgroups(_Below):
    release_is = "rmdir of each"

    def make(self) -> None:
        self.make_folder()
        for i in range(self.n):
            os.mkdir(self.group(i))

    def expected(self) -> list[Expected]:
        return self.living(self.n, self.n)

    def release(self) -> None:
        for i in range(self.n):
            os.rmdir(self.group(i))


class Quotas(MemoryCgroups):
    controller = "cpu"

    def make(self) -> None:
        super().make()
        for i in range(self.n):
            _write(f"{self.group(i)}/cpu.max", "50000 100000")

    def expected(self) -> list[Expected]:
        return [*self.living(self.n), Expected("cgroups_with_quota", self.n)]


class QuotaTasks(_Below):
    """Processes that sleep in one cgroup with a quota."""

    objects = 300
    controller = "cpu"
    release_is = "cgroup.kill, and wait for their parent"

    def make(self) -> None:
        self.make_folder()
        os.mkdir(self.group(0))
        _write(f"{self.group(0)}/cpu.max", "50000 100000")
        self._held = _Crowd(self)
        self._held.make()

    def expected(self) -> list[Expected]:
        every = self.n + 1
        return [
            *self._held.process(self.n),
            *self.living(1),
            Expected("cgroups_with_quota", 1),
            Expected("quota_tasks", every, every, f"/{self.folder.rpartition('/')[2]}/0"),
        ]

    def tasks(self) -> tuple[int, ...]:
        return self._held.tasks()

    def release(self) -> None:
        _write(f"{self.group(0)}/cgroup.kill", "1")
        os.waitpid(self._held.pid, 0)

    def clean(self) -> None:
        os.rmdir(self.group(0))
        super().clean()


class _Crowd(Held):
    def __init__(self, of: _Below) -> None:
        super().__init__(of.n)
        self._group = of.group(0)

    def build(self) -> None:
        _write(f"{self._group}/cgroup.procs", "0")
        self._tasks = calls.Tasks(self.n)
        for _ in range(self.n):
            self._tasks.sleeper()


PROBLEMS: dict[str, type[Problem]] = {
    "dying_cgroups_pages": DyingPages,
    "dying_cgroups_sockets": DyingSockets,
    "memory_cgroups": MemoryCgroups,
    "cgroups_with_quota": Quotas,
    "quota_tasks": QuotaTasks,
}
