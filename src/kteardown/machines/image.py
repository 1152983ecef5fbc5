"""Whether a file is a kernel that this architecture boots, told before a machine is started.

QEMU does not say: given junk, it boots it, and nothing happens until somebody loses patience.
"""

from __future__ import annotations

import struct
from pathlib import Path

from kteardown.errors import InputError
from kteardown.machines.base import Arch

_HEAD = 0x210
_GZIP = b"\x1f\x8b"


def check_image(path: Path, arch: Arch) -> None:
    """Raise InputError where ``path`` is not a whole kernel image for ``arch``.

    x86_64: a bzImage by its setup header (Documentation/arch/x86/boot.rst), its length included.
    arm64: an Image by its magic (Documentation/arch/arm64/booting.rst), or one in gzip.
    """
    try:
        with path.open("rb") as image:
            head = image.read(_HEAD)
        size = path.stat().st_size
    except OSError as error:
        raise InputError(
            f"cannot read the kernel image {path}: {error.strerror}",
            hint="give the path of a bzImage (x86_64) or Image (arm64).",
        ) from error
    kind = _kind(head)
    if kind is None:
        raise InputError(
            f"not a kernel image: {path} ({size} bytes) has the header of no bzImage and of no arm64 Image",
            hint="give arch/x86/boot/bzImage or arch/arm64/boot/Image of a built kernel.",
        )
    if kind != arch:
        raise InputError(
            f"{path} is a kernel for {kind}, expected {arch}",
            hint="give an image of the experiment's architecture, or set machine.arch.",
        )
    whole = _bzimage_size(head) if kind == "x86_64" else 0
    if size < whole:
        raise InputError(
            f"the kernel image {path} is cut off: {size} bytes, its header says {whole}",
            hint="copy or build the image again.",
        )


def _kind(head: bytes) -> Arch | None:
    if head[0x202:0x206] == b"HdrS" and len(head) == _HEAD:
        return "x86_64"
    if head[0x38:0x3C] == b"ARM\x64" or head.startswith(_GZIP):
        return "arm64"
    return None


def _bzimage_size(head: bytes) -> int:
    """Bytes of boot sector, setup code and protected-mode code: setup_sects and syssize."""
    sectors = head[0x1F1] or 4
    (paragraphs,) = struct.unpack_from("<I", head, 0x1F4)
    return (sectors + 1) * 512 + int(paragraphs) * 16
