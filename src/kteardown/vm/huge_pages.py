"""Whether the memory of a guest can be of huge pages of the host."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path("/")
SIZE_MB = 2


def reserved(memory_mb: int, node: int, root: Path = _ROOT) -> bool:
    """Return whether enough huge pages are reserved and free on a node of the host for a whole guest."""
    file = root / f"sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/free_hugepages"
    try:
        free_mb = int(file.read_text()) * SIZE_MB
    except (OSError, ValueError):
        return False
    return memory_mb % SIZE_MB == 0 and free_mb >= memory_mb


def words(from_reserved: bool, root: Path = _ROOT) -> str:
    """Return what the memory of a guest is made of. QEMU asks for transparent huge pages by itself."""
    if from_reserved:
        return f"reserved pages of {SIZE_MB} MB"
    try:
        enabled = (root / "sys/kernel/mm/transparent_hugepage/enabled").read_text()
    except OSError:
        return "small pages"
    transparent = "[always]" in enabled or "[madvise]" in enabled
    return "transparent huge pages where the host finds some" if transparent else "small pages"
