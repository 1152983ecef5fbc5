"""Boots that need not be run again: on the instruction clock, equal boots of one CPU give equal bytes.

With more CPUs the order of their turns may differ from boot to boot (METHODOLOGY.md).
"""

import json
import zlib
from collections.abc import Callable
from contextlib import suppress
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


class RepeatingMachine(QemuMachine):
    """Boots kernels in QEMU; of an equal boot that ended well, it returns the records that the cache has.

    ``BootEnd.kept_from`` then says when that boot was run. On the wall clock every boot is run.
    """

    def boot(self, job: BootJob, on_line: Callable[[bytes], None]) -> BootEnd:
        """Run one boot to its end, or repeat it. Raises as ``QemuMachine.boot``."""
        if job.acceleration != "icount" or (job.possible_cpus or job.cpus) > 1:
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
        end = super().boot(job, keep)
        if end.outcome == "ok":
            again = end.model_copy(update={"duration_s": 0.0, "first_record_s": None, "kept_from": began})
            texts = [file.content(LARGE).decode("latin-1") for file in outputs]
            _write(path, {"end": again.model_dump(mode="json"), "lines": lines, "outputs": texts})
        return end


def _identity(job: BootJob) -> str:
    """Return a hash of everything on which the bytes of a boot depend."""
    neutral = replace(
        job, image=Path("kernel"), initramfs=Path("files"), console=Entry(Path("console")), plugin=()
    )
    command = qemu_command(neutral, records=0, monitor=0)
    command += (word for word in job.plugin if not word.startswith("out="))
    files = [file_hash(job.image), file_hash(job.initramfs), str(main_loop_library(SilentReporter()))]
    return key_of(json.dumps([command, files, qemu_version(job.arch)]).encode())


def _read(path: Path) -> dict[str, Any] | None:
    """Return what was kept of a boot, and mark it as used now; None without it, or if it is damaged."""
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
