"""Boots that need not be run again: on the instruction clock, equal boots of one CPU give equal
bytes.

With more CPUs the order of their turns may differ from boot to boot (METHODOLOGY.md).
"""

import json
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kteardown.door import LARGE, Entry
from kteardown.kernels.source import file_hash
from kteardown.model.record import BootEnd
from kteardown.paths import cache_dir, key_of
from kteardown.progress import SilentReporter
from kteardown.vm.host import qemu_version
from kteardown.vm.job import BootJob
from kteardown.vm.qemu import QemuMachine
from kteardown.vm.qemu_command import qemu_command
from kteardown.vm.qemu_library import main_loop_library

_LOOK_S = 0.1
_SETTLED_S = 1.0
"""Another boot that follows one that has ended has begun by then."""


class RepeatingMachine(QemuMachine):
    """Boots kernels in QEMU; of an equal boot that ended well, it returns the records that the
    cache has.

    ``BootEnd.kept_from`` then says when that boot was run. On the wall clock every boot is run. A
    machine that is ``patient`` runs boots only where the others in this process leave CPUs of the
    host idle, and at most ``most`` guests of all run then.
    """

    def __init__(
        self,
        on_command: Callable[[list[str]], None] = lambda argv: None,
        *,
        patient: bool = False,
        most: int | None = None,
    ) -> None:
        super().__init__(on_command)
        self._patient = patient
        self._most = most or os.cpu_count() or 1
        if patient:
            _guests.expect_more()

    def boot(self, job: BootJob, on_line: Callable[[bytes], None]) -> BootEnd:
        """Run one boot to its end, or repeat it. Raises as ``QemuMachine.boot``."""
        is_repeated = job.acceleration == "icount" and (job.possible_cpus or job.cpus) == 1
        # What is counted of contention is read while the guest runs.
        if not is_repeated or job.counts_contention:
            with self._turn():
                return super().boot(job, on_line)
        counts = (Entry.of(Path(word[4:])) for word in job.plugin if word.startswith("out="))
        outputs = [job.console, *counts]
        path = cache_dir() / "boots" / f"{_identity(job)}.json.z"
        if kept := _read(path):
            for file, text in zip(outputs, kept["outputs"], strict=True):
                file.replace(text.encode("latin-1"), synced=False)
            for line in kept["lines"]:
                on_line(line.encode("latin-1"))
            return BootEnd(**kept["end"])
        lines: list[str] = []

        def keep(line: bytes) -> None:
            lines.append(line.decode("latin-1"))
            on_line(line)

        began = datetime.now(UTC).isoformat(timespec="seconds")
        with self._turn():
            end = super().boot(job, keep)
        if end.outcome == "ok":
            repeated = end.model_copy(
                update={"duration_s": 0.0, "first_record_s": None, "kept_from": began}
            )
            texts = [file.content(LARGE).decode("latin-1") for file in outputs]
            _write(
                path, {"end": repeated.model_dump(mode="json"), "lines": lines, "outputs": texts}
            )
        return end

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Run a boot in the block, after a wait if this machine is patient; ``stop`` ends the
        wait."""
        while (
            not (began := _guests.begin(patient=self._patient, most=self._most))
            and not self._stopped
        ):
            time.sleep(_LOOK_S)
        try:
            yield
        finally:
            if began:
                _guests.end(patient=self._patient)


class _Guests:
    """The guests of all machines of this process. May be used from several threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._expected_s = 0.0
        """Until then, of ``time.monotonic()``, another guest is expected that does not wait."""

    def expect_more(self) -> None:
        self._expected_s = time.monotonic() + _SETTLED_S

    def begin(self, *, patient: bool, most: int) -> bool:
        """Count a guest that begins, and return True; False if a patient one has to wait, as for
        ``most``."""
        with self._lock:
            busy = self._running >= most or time.monotonic() < self._expected_s
            if patient and busy:
                return False
            self._running += 1
            return True

    def end(self, *, patient: bool) -> None:
        with self._lock:
            self._running -= 1
            if not patient:
                self.expect_more()


_guests = _Guests()


def _identity(job: BootJob) -> str:
    """Return a hash of everything on which the bytes of a boot depend."""
    neutral = replace(
        job,
        image=Path("kernel"),
        initramfs=Path("files"),
        console=Entry(Path("console")),
        plugin=(),
    )
    command = qemu_command(neutral, records=0, monitor=0)
    command += (word for word in job.plugin if not word.startswith("out="))
    files = [
        file_hash(job.image),
        file_hash(job.initramfs),
        str(main_loop_library(SilentReporter())),
    ]
    return key_of(json.dumps([command, files, qemu_version(job.arch)]).encode())


def _read(path: Path) -> dict[str, Any] | None:
    """Return what was kept of a boot, and mark it as used now; None without it, or if it is
    damaged."""
    with suppress(OSError, zlib.error, ValueError, KeyError, TypeError):
        kept: dict[str, Any] = json.loads(zlib.decompress(Entry.of(path).content(LARGE)))
        BootEnd(**kept["end"])
        path.touch()
        return kept
    return None


def _write(path: Path, kept: dict[str, Any]) -> None:
    # A boot that cannot be kept is run again.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        Entry.of(path).replace(zlib.compress(json.dumps(kept).encode(), 1), synced=False)
