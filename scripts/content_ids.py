"""Content ids: one short hash for each thing that a test or a published figure depends on.

An id changes with what is built and run, not with what is written about it. So of a patch only its diffs
count, not its message; a cover letter does not count at all; and of the agent's C files comments and
indentation do not count. Figures can therefore be spliced into messages without making themselves stale.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kteardown.model.workload import Workload

_C_COMMENT = re.compile(r'("(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\')|//[^\n]*|/\*.*?\*/', re.DOTALL)
_WORDS = {"help", "summary", "invariants"}
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def listed(root: Path, folders: Iterable[str]) -> list[str]:
    """The files that git lists below ``folders``, new ones included, without those that were removed."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z", "--", *folders]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return sorted(name for name in done.stdout.split("\0") if name and (root / name).is_file())


def text_id(text: str) -> str:
    """The id of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def files_id(root: Path, names: Iterable[str]) -> str:
    """The id of files: of their names, and of what counts in each."""
    counted = ((_order(name), what_counts(name, (root / name).read_bytes())) for name in sorted(names))
    return text_id("".join(f"{name}\0{text_id(text)}\0" for name, text in counted if text is not None))


def what_counts(name: str, content: bytes) -> str | None:
    """What is built or run of a file; None if nothing is."""
    text = content.decode("utf-8", errors="backslashreplace")
    path = Path(name)
    if path.parts[0] == "series" and path.suffix == ".md":
        return None
    if path.suffix == ".patch":
        return _diffs(text)
    return _code(text) if path.suffix in (".c", ".h") else text


def agent_files(root: Path, workloads: Iterable[str], *, counts: bool = False) -> list[str]:
    """The files of the agent that guests with these workloads run code of.

    These are the core, the workloads' own files, and of ``lib`` what they include, directly or not. The other
    workloads are in the binary too, but nothing in them runs. ``counts``: also those that count.
    """
    agent = root / "agent"
    pending = [agent / "Makefile", *sorted(agent.glob("core/*.[ch]"))]
    if counts:
        pending += sorted(agent.glob("counts/*.[ch]"))
    for name in workloads:
        for own in (agent / "workloads" / name, agent / "stress" / name):
            pending += sorted(own.glob("*.[ch]")) if own.is_dir() else [own.with_suffix(".c")]
    found: set[Path] = set()
    while pending:
        path = pending.pop()
        if path in found or not path.is_file():
            continue
        found.add(path)
        if path.suffix in (".c", ".h"):
            included = _INCLUDE.findall(path.read_text(encoding="utf-8"))
            headers = [folder / name for name in included for folder in (path.parent, agent)]
            pending += [file for header in headers for file in (header, header.with_suffix(".c"))]
    return sorted(path.relative_to(root).as_posix() for path in found)


def workload_id(workload: Workload) -> str:
    """The id of a workload's description, without the texts that are only for readers."""
    unnamed = {key: spec.model_copy(update={"name": ""}) for key, spec in workload.metrics.items()}
    bare = workload.model_copy(update={"metrics": unnamed})
    described = _without_words(bare.model_dump(mode="json", exclude_defaults=True))
    return text_id(json.dumps(described, sort_keys=True))


def _without_words(described: Any) -> Any:
    if isinstance(described, dict):
        return {key: _without_words(value) for key, value in described.items() if key not in _WORDS}
    return described


def _order(name: str) -> str:
    """The name of a file; of a patch only its folder and number, since the rest is the subject."""
    path = Path(name)
    numbered = re.match(r"\d{4}-", path.name) if path.suffix == ".patch" else None
    return (path.parent / numbered[0]).as_posix() if numbered else name


def _diffs(text: str) -> str:
    """The diffs of a patch, without its message and git's version; all of it where no diff begins."""
    start = text.find("\ndiff --git ")
    if start < 0:
        return text
    body = text[start + 1 :]
    return re.sub(r"\n-- \n[^\n]*\n?\s*\Z", "\n", body)


def _code(text: str) -> str:
    """C without comments, indentation and empty lines."""
    bare = _C_COMMENT.sub(lambda match: match[1] or " ", text)
    lines = (line.strip() for line in bare.splitlines())
    return "\n".join(line for line in lines if line)
