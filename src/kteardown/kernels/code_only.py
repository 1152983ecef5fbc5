"""The part of a series that a kernel is built from: without documentation, tests and tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_SECTION = re.compile(rb"^(?=diff --git )", re.MULTILINE)
_NAME = re.compile(rb"diff --git a/(\S+) b/(\S+)")
# Nothing else of tools/ is left out: objtool and what it includes are built with the kernel.
_NOT_BUILT = re.compile(
    r"(?:Documentation|samples|LICENSES|tools/(?:testing|perf|mm|power|sched_ext|cgroup|accounting|lib/bpf))/.*"
    r"|MAINTAINERS|CREDITS|COPYING|README|\.[\w.-]+|.*\.(?:rst|txt|yaml|md)"
)


def is_code(name: str) -> bool:
    """Return whether a kernel may be built from the file ``name``."""
    return not _NOT_BUILT.fullmatch(name)


def code_only(patches: Sequence[Path]) -> tuple[list[tuple[str, bytes]], list[str]]:
    """Return the patches without the files that no kernel is built from, and the names of these files.

    Each patch is a file name and a text; a patch of which nothing is left is left out.
    """
    kept: list[tuple[str, bytes]] = []
    dropped: dict[str, None] = {}
    for patch in patches:
        head, *sections = _SECTION.split(patch.read_bytes())
        mine = [section for section in sections if is_code(_name(section))]
        dropped |= {_name(section): None for section in sections if section not in mine}
        if mine or not sections:
            kept.append((patch.name, head + b"".join(mine)))
    return kept, list(dropped)


def _name(section: bytes) -> str:
    match = _NAME.match(section)
    return match[2].decode(errors="replace") if match else ""
