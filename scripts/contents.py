"""The content of files of the tree as one short hash, to see whether they have changed since."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable
from pathlib import Path


def listed(root: Path, folders: Iterable[str]) -> list[str]:
    """The files that git lists below ``folders``, new ones included, without those that were
    removed."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z", "--", *folders]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return sorted(name for name in done.stdout.split("\0") if name and (root / name).is_file())


def is_text(name: str) -> bool:
    """Whether a file of a series is only read by people: nothing of it is built or run."""
    return name.startswith("series/") and name.endswith(".md")


def files_id(root: Path, names: Iterable[str]) -> str:
    """The hash of the names and contents of files."""
    digest = hashlib.sha256()
    for name in sorted(names):
        content = hashlib.sha256((root / name).read_bytes()).hexdigest()
        digest.update(f"{name}\0{content}\0".encode())
    return digest.hexdigest()[:16]
