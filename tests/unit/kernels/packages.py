"""Debian packages for tests, made with ``ar`` and ``tar``."""

import lzma
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path


def make_deb(target: Path, files: Mapping[str, bytes]) -> Path:
    """Make a package of ``files``, contents by path."""
    with tempfile.TemporaryDirectory() as root:
        for name, content in files.items():
            file = Path(root) / "data" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        subprocess.run(
            ["tar", "-C", f"{root}/data", "-cJf", f"{root}/data.tar.xz", "."], check=True
        )
        (Path(root) / "debian-binary").write_text("2.0\n")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        members = [f"{root}/debian-binary", f"{root}/data.tar.xz"]
        subprocess.run(["ar", "rcD", str(target), *members], check=True)
    return target


def module(*fields: str) -> bytes:
    """Return a module with these fields in its section .modinfo, compressed as a distribution's."""
    return lzma.compress(
        b"\x7fELF\0" + b"".join(f"{field}\0".encode() for field in ("license=GPL", *fields))
    )
