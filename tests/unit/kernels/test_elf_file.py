"""Whatever an ELF file says, its headers are read in little time and memory, or it is damaged."""

from __future__ import annotations

import io
import random
import struct
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from kteardown.coverage.direct_calls import DirectCalls
from kteardown.errors import InputError
from kteardown.kernels.elf_file import DamagedElf, elf_headers
from kteardown.script.elf import read_elf
from unit.script.test_elf import at, small

LONG = b"\0" + b"a" * 4_000_000


def sections(*headers: tuple[int, int, int, int], names: bytes = b"\0") -> bytes:
    """Return an ELF file of sections: the name, kind, link and size of each; names are in the
    first."""
    head = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 0, 64 + len(names), 0, 64, 56, 0, 64, 0, 0)
    table = b"".join(
        struct.pack("<IIQQQQIIQQ", name, kind, 6, 0, 64, size, link, 0, 1, 0)
        for name, kind, link, size in ((0, 3, 0, len(names)), *headers)
    )
    data = b"\x7fELF\x02\x01\x01" + bytes(9) + head + names + table
    return data[:60] + struct.pack("<H", len(headers) + 1) + data[62:]


def interpreted(data: bytes) -> bytes:
    """Return ``small()`` with a first segment that names an interpreter, up to its end."""
    return data[:64] + struct.pack("<IIQ", 3, 4, at(1)) + data[80:]


HOSTILE = {
    "a name without an end": small([(1, 1), (5, at(3)), (0, 0)], LONG),
    "a name that is needed often": small([*[(1, 1)] * 4000, (5, at(4002)), (0, 0)], LONG + b"\0"),
    "tags without an end": small([(21, 0)] * 500_000, b""),
    "an interpreter without an end": interpreted(small([(0, 0)], LONG.replace(b"\0", b"a"))),
    "names of sections": sections(*[(1, 1, 0, 0)] * 900, names=LONG + b"\0"),
    "more sections than fit": sections()[:60] + b"\0\0" + sections()[62:],
    "a section that refers to itself": sections((0, 0x6FFFFFFF, 1, 0)),
    "relocations of themselves": sections((0, 18, 1, 0), (0, 2, 1, 0)),
    "a hash table": sections((0, 5, 0, 1 << 40), names=b"\0" + b"\xff" * 4096),
    "a GNU hash table": sections((0, 0x6FFFFFF6, 0, 1 << 40), names=b"\0" + b"\xff" * 4096),
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_takes_little_time_and_memory(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "vmlinux").write_bytes(data)
    tracemalloc.start()
    try:
        read_elf(data, "x")
    except InputError as error:
        assert error.message.startswith("x is not a program that a guest can run: ")
        assert len(error.message) < 200
    DirectCalls(tmp_path / "vmlinux")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(data) + (40 << 20)


@pytest.mark.parametrize("change", [bytes.swapcase, lambda data: data[:100], lambda _: b""])
def test_any_error_of_the_library_is_one_of_ours(change: Callable[[bytes], bytes]) -> None:
    with (
        pytest.raises(DamagedElf),
        elf_headers(io.BytesIO(change(small([(0, 0)], b"")))) as file,
    ):
        list(file.iter_segments())


def test_changed_bytes_are_read_or_damaged(tmp_path: Path) -> None:
    """Of this Python, all headers: those of sections are at its end."""
    data = Path(sys.executable).resolve().read_bytes()
    head, tail = data[:8192], data[-8192:]
    for seed in range(300):
        chance = random.Random(seed)
        changed = bytearray(head + tail)
        changed[40:48] = struct.pack("<Q", len(changed) - chance.choice((64, 1856, 4096)))
        for _ in range(chance.randint(1, 20)):
            place = chance.randint(0, len(changed) - 8)
            changed[place : place + 8] = chance.choice(
                (chance.randbytes(8), b"\xff" * 8, bytes(8), struct.pack("<Q", place))
            )
        (tmp_path / "vmlinux").write_bytes(changed)
        DirectCalls(tmp_path / "vmlinux")
        try:
            read_elf(bytes(changed), "x")
        except InputError as error:
            assert error.message.startswith("x is not a program")
