"""Problems of processes: zombies, threads, mappings, signals, timers, swapped memory."""

from __future__ import annotations

import mmap
import os
import signal
from typing import ClassVar

from vm.planted import calls
from vm.planted.problem import Expected, Held, Problem

_PROT_READ = 1


class Zombies(Held):
    objects = 1000
    release_is = "exit of their parent"

    def build(self) -> int:
        self._tasks = calls.Tasks(0)
        for _ in range(self.n):
            self._tasks.zombie()
        return os.getpid()

    def expected(self) -> list[Expected]:
        return [*self.process(), self.by_process("zombies")]


class ZombiesGroup(Zombies):
    """They are in a process group that their parent is not in, as the jobs of a shell are."""

    def build(self) -> int:
        self._tasks = calls.Tasks(0)
        group = 0
        for _ in range(self.n):
            pid = self._tasks.zombie()
            group = group or pid
            os.setpgid(pid, group)
        return group

    def expected(self) -> list[Expected]:
        return [*super().expected(), self.by_process("zombies_group")]


class Threads(Held):
    objects = 500

    def build(self) -> None:
        self._tasks = calls.Tasks(self.n)
        for _ in range(self.n):
            self._tasks.sleeper(calls.A_THREAD)

    def expected(self) -> list[Expected]:
        return [
            Expected("processes", 1),
            Expected("threads", self.n + 1, self.n + 1, f"[{self.pid}]"),
        ]


class Mappings(Held):
    objects = 2000

    def build(self) -> int:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            before = len(maps.readlines())
        size = calls.PAGE * (2 * self.n + 1)
        # Every second page has another protection, so that each page is a mapping.
        memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        start = calls.address_of(memory)
        for i in range(self.n):
            at = start + calls.PAGE * (2 * i + 1)
            calls.protect(at, _PROT_READ)
        with open("/proc/self/maps", encoding="utf-8") as maps:
            after = len(maps.readlines())
        assert not self.n or after - before >= 2 * self.n, (before, after)
        self._memory = memory
        return after

    def expected(self) -> list[Expected]:
        # The last lines of Python's own memory may still change.
        own = int(self.said)
        return [*self.process(), Expected("vmas", None, own, f"[{self.pid}]", within=0.01)]


class SignalsQueued(Held):
    objects = 2000

    def build(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
        for _ in range(self.n):
            calls.queue_signal(os.getpid(), signal.SIGRTMIN)

    def expected(self) -> list[Expected]:
        # Of a user, and not of a process.
        return [*self.process(), Expected("signals_queued", self.n)]


class PosixTimers(Held):
    objects = 1000

    def build(self) -> None:
        for _ in range(self.n):
            calls.posix_timer()

    def expected(self) -> list[Expected]:
        # The kernel reserves a queued signal for each timer.
        return [
            *self.process(),
            self.by_process("posix_timers"),
            Expected("signals_queued", self.n),
        ]


class SwappedPages(Held):
    objects = 2048
    modules: ClassVar[tuple[str, ...]] = ("zram",)
    _device: ClassVar[str] = "/sys/block/zram0/"
    _size: ClassVar[int] = 256 << 20

    def make(self) -> None:
        if not _swaps():
            with open(self._device + "disksize", "w", encoding="utf-8") as stream:
                stream.write(str(self._size))
            calls.swap_on("/dev/zram0", self._size)
        self._before_kb = _swaps()
        super().make()

    def build(self) -> None:
        self._memory = calls.pages_with_contents(self.n)
        calls.page_out(self._memory)

    def expected(self) -> list[Expected]:
        kb = self.n * calls.PAGE >> 10
        # The kernel leaves out pages that are in use at that moment.
        return [
            *self.process(),
            Expected("swapped_kb", kb, kb, f"[{self.pid}]", within=0.1),
            Expected("swap_used_kb", kb, within=0.1),
            Expected("zram_stored_kb", kb, within=0.1),
        ]


def _swaps() -> int:
    """Return how many swap devices are in use."""
    with open("/proc/swaps", encoding="utf-8") as stream:
        return len(stream.readlines()) - 1


PROBLEMS: dict[str, type[Problem]] = {
    "zombies": Zombies,
    "zombies_group": ZombiesGroup,
    "threads": Threads,
    "vmas": Mappings,
    "signals_queued": SignalsQueued,
    "posix_timers": PosixTimers,
    "swapped_pages": SwappedPages,
}
