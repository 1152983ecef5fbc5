"""The content of files of the tree as one short hash, to see whether they have changed since.

Only what can change a figure counts: not the message of a patch, nor comments, texts for people and
the ``about`` of a workload, by which ``kteardown try`` chooses it.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path

_NOT_MEASURED = ("about", "contention", "help", "summary")
"""Keys of a workload or experiment."""
_AGENT_FLAGS = re.compile(rb"^(?:CC|CFLAGS|LDFLAGS|guest|COMMON)\b.*(?:\n\t.*)*", re.MULTILINE)
"""What of the agent's Makefile decides the bytes of the agent that every guest runs: which other
agents there are, and of what, changes none of them."""


def listed(root: Path, folders: Iterable[str]) -> list[str]:
    """The files that git lists below ``folders``, new ones included, without those that were
    removed."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z", "--", *folders]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return sorted(name for name in done.stdout.split("\0") if name and (root / name).is_file())


def is_text(name: str) -> bool:
    """Whether a file of a series is only read by people: nothing of it is built or run."""
    return name.startswith("series/") and name.endswith(".md")


def measured(name: str, content: bytes) -> bytes:
    """What of a file can change a figure."""
    if name == "agent/Makefile":
        return b"\n".join(_AGENT_FLAGS.findall(content))
    if name.endswith(".patch"):
        return content.partition(b"\ndiff --git ")[2] or content
    if name.endswith(".toml"):
        try:
            return json.dumps(_without_texts(tomllib.loads(content.decode()))).encode()
        except ValueError:
            return content
    return content


def _without_texts(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {key: _without_texts(part) for key, part in value.items() if key not in _NOT_MEASURED}


def files_id(root: Path, names: Iterable[str]) -> str:
    """The hash of the names and contents of files."""
    digest = hashlib.sha256()
    for name in sorted(names):
        content = hashlib.sha256(measured(name, (root / name).read_bytes())).hexdigest()
        digest.update(f"{name}\0{content}\0".encode())
    return digest.hexdigest()[:16]
