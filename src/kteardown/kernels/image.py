"""What a kernel image says of itself, read from its header."""

from __future__ import annotations

import gzip
import re
import struct
from dataclasses import dataclass
from pathlib import Path

from kteardown.errors import InputError
from kteardown.machines.base import Arch

# Offsets of Documentation/arch/x86/boot.rst.
_BOOT_FLAG, _MAGIC, _VERSION, _XLOADFLAGS = 0x1FE, 0x202, 0x20E, 0x236
_XLF_KERNEL_64 = 1
# Offset of Documentation/arch/arm64/booting.rst.
_ARM64_MAGIC = 56


@dataclass(frozen=True)
class ImageFacts:
    arch: Arch
    release: str
    data: bytes
    """The image as it boots, decompressed where the file was not."""


def read(path: Path, called: str) -> ImageFacts:
    """Architecture and release of the image in ``path``, which messages name ``called``.

    Raises InputError where it is no kernel that boots here.
    """
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError) as error:
            raise _no_kernel(called, f"its compressed contents are damaged: {error}") from error
    if data[_MAGIC : _MAGIC + 4] == b"HdrS" and data[_BOOT_FLAG : _BOOT_FLAG + 2] == b"\x55\xaa":
        return ImageFacts("x86_64", _bzimage_release(data, called), data)
    if data[_ARM64_MAGIC : _ARM64_MAGIC + 4] == b"ARM\x64":
        match = re.search(rb"Linux version (\S+) ", data)
        if not match:
            raise _no_kernel(called, "it has the header of an arm64 Image and no version")
        return ImageFacts("arm64", match[1].decode(), data)
    if data.startswith(b"\x7fELF"):
        raise _no_kernel(called, "it is an ELF file, such as vmlinux, which does not boot by itself")
    raise _no_kernel(called, "it has the header of neither")


def _bzimage_release(data: bytes, called: str) -> str:
    if not struct.unpack_from("<H", data, _XLOADFLAGS)[0] & _XLF_KERNEL_64:
        raise _no_kernel(called, "it is a 32-bit kernel")
    start = struct.unpack_from("<H", data, _VERSION)[0] + 0x200
    text = data[start : start + 256].split(b"\0")[0].decode(errors="replace")
    if not text.split():
        raise _no_kernel(called, "its header has no version")
    return text.split()[0]


def _no_kernel(called: str, reason: str) -> InputError:
    return InputError(
        f"{called} is neither an x86-64 bzImage nor an arm64 Image: {reason}",
        hint="Name arch/x86/boot/bzImage, arch/arm64/boot/Image, or a linux-image package.",
    )
