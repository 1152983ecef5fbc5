"""Where the direct calls and jumps of a kernel lead, read from its vmlinux at one address after
another.

To disassemble a whole kernel takes seconds. Of the instructions that were executed it is known
where each begins, and these three operation codes of x86-64 contain the distance to their target.
"""

import mmap
import struct
from bisect import bisect_right
from pathlib import Path
from typing import BinaryIO

from kteardown.kernels.elf_file import elf_headers

_EXECUTABLE = 0x4  # SHF_EXECINSTR
_MOST_SECTIONS = 1000
"""A kernel has five with code."""
_DISTANCES = {0xE8: struct.Struct("<i"), 0xE9: struct.Struct("<i"), 0xEB: struct.Struct("<b")}
"""By the first byte of a call or a jump, the form of the distance that follows it."""


class DirectCalls:
    """The code of one kernel. A file that is no ELF file, or a damaged one, has no calls."""

    def __init__(self, vmlinux: Path) -> None:
        self._data: bytes | mmap.mmap = b""
        self._sections: list[tuple[int, int, int]] = []
        with vmlinux.open("rb") as file:
            try:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                self._sections = sorted(_executable_sections(file))
            except ValueError:  # An empty file cannot be mapped.
                self._sections = []
        self._starts = [start for start, _, _ in self._sections]

    def target(self, address: int) -> int | None:
        """Return where the instruction at ``address`` calls or jumps to; None if it does neither.

        A conditional jump, one through a pointer and one with a prefix are not among them.
        """
        number = bisect_right(self._starts, address) - 1
        if number < 0:
            return None
        start, offset, size = self._sections[number]
        if address >= start + size:
            return None
        at = offset + address - start
        form = _DISTANCES.get(self._data[at])
        if form is None or at + 1 + form.size > offset + size:
            return None
        (distance,) = form.unpack_from(self._data, at + 1)
        return int(address + 1 + form.size + distance)


def _executable_sections(file: BinaryIO) -> list[tuple[int, int, int]]:
    """Return address, offset in the file and size of each section of an ELF file that has code.

    Raises DamagedElf.
    """
    with elf_headers(file) as elf:
        if elf.num_sections() > _MOST_SECTIONS:
            return []
        return [
            (section["sh_addr"], section["sh_offset"], section["sh_size"])
            for section in elf.iter_sections("SHT_PROGBITS")
            if section["sh_flags"] & _EXECUTABLE
            and section["sh_offset"] + section["sh_size"] <= elf.stream_len
        ]
