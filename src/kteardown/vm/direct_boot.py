"""Start the kernel of a bzImage without the code that unpacks it.

Under emulation a guest needs 0.27 s to unpack the base kernel, this program 0.1 s once. QEMU starts
an uncompressed kernel by its PVH entry (Documentation/arch/x86/boot.rst and the PVH boot ABI of
Xen, docs/misc/pvh.pandoc there), which CONFIG_PVH adds. Such a guest cannot wake from suspend to
memory: QEMU resets the machine for that, and writes the kernel as it was at the start over the one
that was suspended.
"""

import os
import struct
import threading
import zlib
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

# The setup header of Documentation/arch/x86/boot.rst; payload_offset exists since protocol 2.08.
_MAGIC_AT = 0x202
_MAGIC = b"HdrS"
_SECTORS_AT = 0x1F1
_SECTOR_BYTES = 512
_DEFAULT_SECTORS = 4
_PAYLOAD_AT = 0x248
_HEADER_BYTES = 0x250
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31
_SIZE_BYTES = 4
# The base kernel has 3.6 MB, unpacked 17 MB; a hostile one must not fill the memory of the host.
_MOST_PACKED_BYTES = 64 << 20
_MOST_BYTES = 256 << 20
_ELF = b"\x7fELF"
# The note that has the entry, XEN_ELFNOTE_PHYS32_ENTRY of include/xen/interface/elfnote.h: the
# lengths of its owner and of the address, its type, and its owner.
_PVH_NOTES = tuple(
    struct.pack("<III4s", 4, address_bytes, 18, b"Xen\0") for address_bytes in (4, 8)
)

_unpacking = threading.Lock()


def without_decompressor(image: Path) -> BinaryIO | None:
    """Return the ELF file inside a bzImage, in memory and readable by every user.

    None if the image is no bzImage, its kernel is not compressed by gzip, or has no PVH entry: then
    QEMU has to start the image itself. Raises OSError.
    """
    status = image.stat()
    if status.st_size > _MOST_PACKED_BYTES:
        return None
    # Boots that begin together would unpack the same kernel, each for itself.
    with _unpacking:
        kernel = _kernel_of(image, status.st_ino, status.st_mtime_ns, status.st_size)
    if kernel is None:
        return None
    file = os.fdopen(os.memfd_create("kernel"), "w+b")
    file.write(kernel)
    file.flush()
    return file


# A run boots each of its kernels many times.
@lru_cache(maxsize=4)
def _kernel_of(image: Path, inode: int, changed_ns: int, size_bytes: int) -> bytes | None:
    kernel = _unpacked(image.read_bytes())
    return kernel if kernel is not None and _has_pvh_entry(kernel) else None


def payload_of(image: bytes) -> bytes:
    """Return the compressed kernel in a bzImage; empty if it is none."""
    if len(image) < _HEADER_BYTES or image[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] != _MAGIC:
        return b""
    sectors = image[_SECTORS_AT] or _DEFAULT_SECTORS
    offset, length = struct.unpack_from("<II", image, _PAYLOAD_AT)
    start = (1 + sectors) * _SECTOR_BYTES + offset
    payload = image[start : start + length]
    # What no file format has: the size of the kernel, behind any but gzip, which ends with it.
    return payload if payload.startswith(_GZIP) else payload[:-_SIZE_BYTES]


def _unpacked(image: bytes) -> bytes | None:
    payload = payload_of(image)
    if not payload.startswith(_GZIP):
        return None
    stream = zlib.decompressobj(_GZIP_WINDOW)
    try:
        kernel = stream.decompress(payload, _MOST_BYTES)
    except zlib.error:
        return None
    return kernel if stream.eof else None


def _has_pvh_entry(kernel: bytes) -> bool:
    return kernel.startswith(_ELF) and any(note in kernel for note in _PVH_NOTES)
