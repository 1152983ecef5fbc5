"""A kernel of a few bytes: it has the header of Linux, and executes what a test gives it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kteardown.door import Entry
from kteardown.vm.job import BootJob

HALT = b"\xf4\xeb\xfd"  # hlt; jmp to it
RESET = b"\xb0\x06\xba\xf9\x0c\xee" + HALT  # mov al,6; mov dx,0xcf9; out dx,al: QEMU ends.
PATIENCE_S = 300
_numbers: Iterator[int] = itertools.count()


def tiny_job(
    folder: Path, code: bytes, on_vcpus: Callable[[Sequence[int]], None] | None = None
) -> BootJob:
    """Return a job whose guest executes ``code`` as soon as it has control. Its files are in
    ``folder``."""
    number = next(_numbers)
    image = bytearray(4096)
    image[0x1F1] = 1  # One sector of setup code.
    image[0x1FE:0x208] = (
        b"\x55\xaa" + b"\xeb\x66" + b"HdrS" + b"\x02\x02"
    )  # It jumps over the header.
    image[0x211] = 1  # The rest is loaded above 1 MB.
    image[0x268 : 0x268 + len(code)] = code
    kernel, files = folder / f"bzImage-{number}", folder / f"initramfs-{number}"
    kernel.write_bytes(image)
    files.write_bytes(b"none")
    return BootJob(
        image=kernel,
        initramfs=files,
        arch="x86_64",
        acceleration="mttcg",
        cpus=1,
        memory_mb=64,
        seed=1,
        console=Entry(folder) / f"console-{number}",
        silence_s=PATIENCE_S,
        on_vcpus=on_vcpus,
    )
