"""Read the header of a kernel image: whether it is a kernel, its architecture and its release.

QEMU does not check this: it boots any file, and the guest stays silent.
"""

import gzip
import re
import struct
from pathlib import Path

from kteardown.errors import InputError
from kteardown.model.arch import ARCHITECTURES, Arch

_GZIP = b"\x1f\x8b"
# Offsets of Documentation/arch/x86/boot.rst.
_HEAD = 0x238
_SETUP_SECTS, _SYSSIZE, _BOOT_FLAG, _VERSION, _XLOADFLAGS = 0x1F1, 0x1F4, 0x1FE, 0x20E, 0x236
_XLF_KERNEL_64 = 1


def read_header(path: Path, name: str) -> tuple[Arch, str, bytes]:
    """Return architecture and release of the image in ``path``, and the image as it boots, decompressed.

    Messages refer to it as ``name``.
    Raises InputError if it is not a kernel that can be booted.
    """
    data = path.read_bytes()
    if data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError) as error:
            raise _not_a_kernel(name, f"its compressed contents are damaged: {error}") from error
    magics = {arch: known.image_magic for arch, known in ARCHITECTURES.items()}
    arch = next((arch for arch, (at, magic) in magics.items() if data.startswith(magic, at)), None)
    if arch == "x86_64" and len(data) >= _HEAD and data[_BOOT_FLAG : _BOOT_FLAG + 2] == b"\x55\xaa":
        return arch, _release_of_bzimage(data, name), data
    if arch == "arm64":
        match = re.search(rb"Linux version (\S+) ", data)
        if not match:
            raise _not_a_kernel(name, "it has the header of an arm64 Image and no version")
        return arch, match[1].decode(), data
    if data.startswith(b"\x7fELF"):
        raise _not_a_kernel(name, "it is an ELF file, such as vmlinux, which does not boot by itself")
    raise _not_a_kernel(name, "it has the header of neither")


def _release_of_bzimage(data: bytes, name: str) -> str:
    if not struct.unpack_from("<H", data, _XLOADFLAGS)[0] & _XLF_KERNEL_64:
        raise _not_a_kernel(name, "it is a 32-bit kernel")
    start = struct.unpack_from("<H", data, _VERSION)[0] + 0x200
    words = data[start : start + 256].split(b"\0")[0].decode(errors="replace").split()
    if not words:
        raise _not_a_kernel(name, "its header has no version")
    # Boot sector, setup code and protected-mode code.
    (paragraphs,) = struct.unpack_from("<I", data, _SYSSIZE)
    whole = ((data[_SETUP_SECTS] or 4) + 1) * 512 + int(paragraphs) * 16
    if len(data) < whole:
        raise _not_a_kernel(name, f"it is cut off: it has {len(data)} bytes, and its header says {whole}")
    return words[0]


def _not_a_kernel(name: str, reason: str) -> InputError:
    return InputError(
        f"{name} is neither an x86-64 bzImage nor an arm64 Image: {reason}",
        hint="give arch/x86/boot/bzImage, arch/arm64/boot/Image, or a linux-image package.",
    )
