"""What a program and all that it started may use, and the guard that kills those that use more."""

import math
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import psutil

MB = 1 << 20
_FREE_MB = 256
_FREE_FILES = 10_000
_FREE_MEMORY = 1 / 16
_OTHERS_USE = 1 / 4  # What other programs may write meanwhile, of the free part of a disk.


@dataclass(frozen=True)
class Limits:
    """What a program and all that it started may use before they are killed."""

    silence_s: float = 1800.0
    """The time without a line of output."""
    total_s: float = math.inf
    output_mb: int = 1024
    disk_mb: int = 24 << 10
    file_mb: int = 2 << 10
    memory_mb: int = field(
        default_factory=lambda: int(psutil.virtual_memory().total // MB * 3 // 4)
    )
    processes: int = 8192


ANALYSIS = Limits(total_s=900, output_mb=512)
"""The limits of one analysis: of a kernel of the lab, objdump prints 141 MB in 15 s, with 20 MB of
memory."""


class Guard:
    """Kills a program that exceeds what the kernel does not limit: the memory and disk of all
    together."""

    def __init__(
        self,
        process: subprocess.Popen[str],
        limits: Limits,
        writable: Sequence[Path],
        first: int | None,
    ) -> None:
        self.exceeded = ""
        self._process = process
        self._limits, self._first = limits, first
        self._began = self._last_line = time.monotonic()
        self._letters = 0
        memory = psutil.virtual_memory()
        # Files in memory belong to no process, and a walk of the folders finds no files that were
        # deleted while open, are too deep, or shut. So what the host has left counts, although
        # others use it, too.
        self._memory = max(memory.available - limits.memory_mb * MB, memory.total * _FREE_MEMORY)
        self._disk = {}
        for folder in writable:
            free = shutil.disk_usage(folder).free
            self._disk[folder] = max(
                free - max(limits.disk_mb * MB, free * _OTHERS_USE), _FREE_MB * MB
            )
        self._ended = threading.Event()
        # Many files take long to count.
        checks = (self._too_much, self._too_large)
        self._threads = [
            threading.Thread(target=self._watch, args=(check,), daemon=True) for check in checks
        ]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def lines(self, stdout: TextIO) -> Iterator[str]:
        """Yield the lines that the program prints, long ones in parts, and take note of the
        time."""
        most = self._limits.output_mb
        while line := stdout.readline(1 << 16):
            self._last_line = time.monotonic()
            self._letters += len(line)
            if self._letters > most * MB:
                self._stop(f"it printed more than {most} MB")
                return
            yield line

    def _watch(self, check: Callable[[], str]) -> None:
        while not self._ended.wait(1.0):
            if reason := check():
                self._stop(reason)
                return

    def _stop(self, reason: str) -> None:
        self.exceeded = self.exceeded or reason
        with suppress(ProcessLookupError):
            # The first process of the namespace, too: it may have changed how it ends.
            if self._first is not None:
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            os.killpg(self._process.pid, signal.SIGKILL)

    def _too_much(self) -> str:
        limits = self._limits
        now = time.monotonic()
        memory = psutil.virtual_memory().available
        checks = [
            (
                now - self._last_line > limits.silence_s,
                f"it printed nothing for {limits.silence_s:.0f} s",
            ),
            (now - self._began > limits.total_s, f"it took more than {limits.total_s:.0f} s"),
            (
                memory < self._memory,
                f"less than {self._memory // MB:.0f} MB of the host's memory were left",
            ),
        ]
        for folder, least in self._disk.items():
            disk = os.statvfs(folder)
            free = disk.f_bavail * disk.f_frsize
            files = disk.f_favail if disk.f_files else math.inf
            checks.append((free < least, f"less than {least // MB:.0f} MB of the disk were left"))
            checks.append(
                (files < _FREE_FILES, f"less than {_FREE_FILES} files could be added to the disk")
            )
        return next((reason for exceeded, reason in checks if exceeded), "")

    def _too_large(self) -> str:
        used = 0
        most = self._limits.disk_mb
        folders = [str(folder) for folder in self._disk]
        while folders and used <= most * MB:
            # It was removed in the meantime, or it cannot be read.
            with suppress(OSError), os.scandir(folders.pop()) as entries:
                for entry in entries:
                    # An empty file takes a place, too.
                    used += max(4096, entry.stat(follow_symlinks=False).st_blocks * 512)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        return f"it wrote more than {most} MB" if used > most * MB else ""
