from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest

from kteardown.vm import direct_boot
from kteardown.vm.direct_boot import without_decompressor

NOTE_AT = 64 + 56


def elf(owner: bytes = b"Xen\0", kind: int = 18) -> bytes:
    """Return a 64-bit ELF file that has one segment, with one note."""
    note = struct.pack("<III", len(owner), 4, kind) + owner + struct.pack("<I", 0x1000000)
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 4, 4, NOTE_AT, 0, 0, len(note), len(note), 4)
    return ident + header + segment + note


def bzimage(payload: bytes, *, sectors: int = 2, offset: int = 100) -> bytes:
    header = bytearray((1 + (sectors or 4)) * 512)
    header[0x1F1] = sectors
    header[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", header, 0x248, offset, len(payload))
    return bytes(header) + bytes(offset) + payload + b"what follows"


def kernel_in(folder: Path, image: bytes) -> bytes | None:
    path = folder / "image"
    path.write_bytes(image)
    file = without_decompressor(path)
    if file is None:
        return None
    with file:
        file.seek(0)
        return file.read()


@pytest.mark.parametrize("sectors", [0, 1, 30])
def test_the_kernel_of_a_bzimage_is_unpacked(tmp_path: Path, sectors: int) -> None:
    assert kernel_in(tmp_path, bzimage(gzip.compress(elf()), sectors=sectors)) == elf()


def test_a_changed_image_is_unpacked_anew(tmp_path: Path) -> None:
    other = elf() + b"another kernel"
    assert kernel_in(tmp_path, bzimage(gzip.compress(elf()))) == elf()
    assert kernel_in(tmp_path, bzimage(gzip.compress(other))) == other


@pytest.mark.parametrize(
    "image",
    [
        b"",
        b"\x7fELF".ljust(4096, b"\0"),
        bzimage(b"\xfd7zXZ\0 compressed by xz"),
        bzimage(gzip.compress(elf(owner=b"GNU\0"))),
        bzimage(gzip.compress(elf(kind=3))),
        bzimage(gzip.compress(b"no kernel")),
        bzimage(gzip.compress(elf())[:-20]),
        bzimage(gzip.compress(elf()), offset=0)[:-40],
    ],
)
def test_qemu_starts_what_has_no_entry_of_this_kind(tmp_path: Path, image: bytes) -> None:
    assert kernel_in(tmp_path, image) is None


def test_a_kernel_without_an_end_takes_no_more_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_boot, "_MOST_BYTES", 1 << 16)
    assert kernel_in(tmp_path, bzimage(gzip.compress(elf() + bytes(1 << 20)))) is None
