"""Read the header of a kernel image: whether it is a kernel, its architecture and its release.

QEMU does not check this: it boots any file, and the guest stays silent.
"""

import gzip
import re
import struct
from pathlib import Path

from kteardown.errors import InputError, failing
from kteardown.model.arch import ARCHITECTURES, Arch

_GZIP = b"\x1f\x8b"
# Offsets of Documentation/arch/x86/boot.rst.
_HEAD = 0x210
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
    arch = _arch(data)
    if arch == "x86_64" and data[_BOOT_FLAG : _BOOT_FLAG + 2] == b"\x55\xaa":
        if not struct.unpack_from("<H", data, _XLOADFLAGS)[0] & _XLF_KERNEL_64:
            raise _not_a_kernel(name, "it is a 32-bit kernel")
        start = struct.unpack_from("<H", data, _VERSION)[0] + 0x200
        words = data[start : start + 256].split(b"\0")[0].decode(errors="replace").split()
        if not words:
            raise _not_a_kernel(name, "its header has no version")
        return arch, words[0], data
    if arch == "arm64":
        match = re.search(rb"Linux version (\S+) ", data)
        if not match:
            raise _not_a_kernel(name, "it has the header of an arm64 Image and no version")
        return arch, match[1].decode(), data
    if data.startswith(b"\x7fELF"):
        raise _not_a_kernel(name, "it is an ELF file, such as vmlinux, which does not boot by itself")
    raise _not_a_kernel(name, "it has the header of neither")


def check_image(path: Path, arch: Arch) -> None:
    """Raise InputError if ``path`` is not a complete kernel image for ``arch``. Only the header is read."""
    hint = "give the path of a bzImage (x86_64) or an Image (arm64)."
    with failing(f"cannot read the kernel image {path}", hint=hint):
        with path.open("rb") as image:
            head = image.read(_HEAD)
        size = path.stat().st_size
    found = "arm64" if head.startswith(_GZIP) else _arch(head)
    if found is None:
        raise InputError(
            f"not a kernel image: {path} ({size} bytes) is neither a bzImage nor an arm64 Image",
            hint="give arch/x86/boot/bzImage or arch/arm64/boot/Image of a built kernel.",
        )
    if found != arch:
        raise InputError(
            f"{path} is a kernel for {found}, expected {arch}",
            hint="give an image for the experiment's architecture, or set machine.arch.",
        )
    whole = 0
    if found == "x86_64":  # Boot sector, setup code and protected-mode code.
        (paragraphs,) = struct.unpack_from("<I", head, _SYSSIZE)
        whole = ((head[_SETUP_SECTS] or 4) + 1) * 512 + int(paragraphs) * 16
    if size < whole:
        raise InputError(
            f"the kernel image {path} is cut off: it has {size} bytes, but its header says {whole}",
            hint="copy or build the image again.",
        )


def _arch(data: bytes) -> Arch | None:
    for name, known in ARCHITECTURES.items():
        offset, magic = known.image_magic
        if data[offset : offset + len(magic)] == magic and len(data) >= (_HEAD if name == "x86_64" else 0):
            return name
    return None


def _not_a_kernel(name: str, reason: str) -> InputError:
    return InputError(
        f"{name} is neither an x86-64 bzImage nor an arm64 Image: {reason}",
        hint="give arch/x86/boot/bzImage, arch/arm64/boot/Image, or a linux-image package.",
    )
