from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest

from kteardown.errors import InputError
from kteardown.vm.image_header import check_image


def bzimage(paragraphs: int = 100, setup_sectors: int = 31) -> bytes:
    image = bytearray((setup_sectors + 1) * 512 + paragraphs * 16)
    image[0x1F1] = setup_sectors
    struct.pack_into("<I", image, 0x1F4, paragraphs)
    image[0x202:0x206] = b"HdrS"
    return bytes(image)


def arm64_image() -> bytes:
    return bytes(0x38) + b"ARM\x64" + bytes(4096)


@pytest.mark.parametrize("data", [bzimage(), bzimage() + b"a signature behind it"])
def test_a_bzimage_is_a_kernel(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "image").write_bytes(data)
    check_image(tmp_path / "image", "x86_64")


@pytest.mark.parametrize("data", [arm64_image(), gzip.compress(arm64_image(), mtime=0)])
def test_an_arm64_image_is_a_kernel(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "image").write_bytes(data)
    check_image(tmp_path / "image", "arm64")


@pytest.mark.parametrize("data", [b"", b"MZ", bytes(range(256)) * 40, b"\x7fELF" + bytes(9000)])
def test_any_other_file_is_not_a_kernel(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "image").write_bytes(data)
    with pytest.raises(InputError, match="not a kernel image") as caught:
        check_image(tmp_path / "image", "x86_64")
    assert caught.value.hint


@pytest.mark.parametrize("missing", [1, 500, 1600])
def test_a_cut_bzimage_is_an_error(tmp_path: Path, missing: int) -> None:
    (tmp_path / "image").write_bytes(bzimage()[:-missing])
    with pytest.raises(InputError, match="cut off"):
        check_image(tmp_path / "image", "x86_64")


def test_an_image_for_another_architecture_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(arm64_image())
    with pytest.raises(InputError, match="kernel for arm64, expected x86_64"):
        check_image(tmp_path / "image", "x86_64")


def test_a_missing_image_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the kernel image"):
        check_image(tmp_path / "image", "x86_64")
