"""Content ids: one short hash for each thing that a test or a published figure depends on.

An id changes with what is built and run, not with what is written about it. So of a patch only its
diffs count, not its message; a cover letter does not count at all; and of the agent's C files
comments and indentation do not count. Figures can therefore be spliced into messages without making
themselves stale.
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
_C_SUMMARY = re.compile(r'\.summary\s*=\s*(?:"(?:\\.|[^"\\])*"\s*)+,')
_WORDS = {"help", "summary", "invariants", "decides"}
_FLAGS = re.compile(r"^(?:CFLAGS|LDFLAGS|guest)\s*[:?+]?=.*$", re.MULTILINE)
_CORE = ("boot", "perturb", "profile", "record", "trial", "util")
"""What runs between the boot and the last record. Not the rest of the core: it reads the plan,
describes the guest and marks the kernel's log, outside of every stretch that is measured.
"""
_MEASURED_WITH = (
    "agent",
    "experiments",
    "kernels",
    "plugins",
    "postings",
    "series",
    "src",
    "workloads",
)
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def listed(root: Path, folders: Iterable[str]) -> list[str]:
    """The files that git lists below ``folders``, new ones included, without those that were
    removed."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z", "--", *folders]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return sorted(name for name in done.stdout.split("\0") if name and (root / name).is_file())


def text_id(text: str) -> str:
    """The id of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def files_id(root: Path, names: Iterable[str]) -> str:
    """The id of files: of their names, and of what counts in each."""
    counted = (
        (_order(name), what_counts(name, (root / name).read_bytes())) for name in sorted(names)
    )
    return text_id(
        "".join(f"{name}\0{text_id(text)}\0" for name, text in counted if text is not None)
    )


def what_counts(name: str, content: bytes) -> str | None:
    """What is built or run of a file; None if nothing is."""
    text = content.decode("utf-8", errors="backslashreplace")
    path = Path(name)
    if path.parts[0] == "series" and path.suffix == ".md":
        return None
    if path.suffix == ".patch":
        return _diffs(text)
    return _code(text) if path.suffix in (".c", ".h") else text


def agent_id(root: Path, own: Iterable[Path]) -> str:
    """The id of what guests run of the agent, with the flags that it is compiled with.

    ``own``: the files of their workloads (``agent_sources``), or others below ``agent/``.
    """
    makefiles = (root / "agent").rglob("Makefile")
    flags = {
        flag for file in makefiles for flag in _FLAGS.findall(file.read_text(encoding="utf-8"))
    }
    # Not their names: a file that is moved is compiled as before.
    code = (_code(file.read_text(encoding="utf-8")) for file in _with_included(root, own))
    return text_id("\n".join(sorted((*flags, *map(text_id, code)))))


def agent_sources(root: Path, workloads: Iterable[str], *, counts: bool = False) -> list[Path]:
    """The files of these workloads, with ``counts`` also those that count; not what they include.

    A workload is a file ``NAME.c`` or a folder ``NAME`` in one of the folders of ``agent/``.
    """
    agent = root / "agent"
    found = sorted(agent.glob("counts/*.[ch]")) if counts else []
    for name in workloads:
        found += [
            path
            for path in sorted([*agent.glob(f"*/{name}/*.[ch]"), *agent.glob(f"*/{name}.c")])
            if path.relative_to(agent).parts[0] not in ("core", "lib", "tests")
        ]
    return found


def _with_included(root: Path, own: Iterable[Path]) -> set[Path]:
    """The core's files that decide a figure, ``own``, and what they include, with the C file of a
    header."""
    agent = root / "agent"
    pending, found = [*(agent / "core" / f"{name}.c" for name in _CORE), *own], set[Path]()
    while pending:
        path = pending.pop()
        if path in found or not path.is_file():
            continue
        found.add(path)
        included = _INCLUDE.findall(path.read_text(encoding="utf-8"))
        headers = [folder / name for name in included for folder in (path.parent, agent)]
        pending += [file for header in headers for file in (header, header.with_suffix(".c"))]
    return found


def tree_commit(root: Path) -> str:
    """The commit of the tree, short; with a + if anything that decides a figure differs from it."""

    def git(*arguments: str) -> bytes:
        return subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, check=False
        ).stdout

    changed = git("diff", "HEAD", "--name-only", "-z", "--", *_MEASURED_WITH)
    added = git("ls-files", "-o", "--exclude-standard", "-z", "--", *_MEASURED_WITH)
    for name in filter(None, (changed + added).decode().split("\0")):
        now = (root / name).read_bytes() if (root / name).is_file() else b""
        if what_counts(name, now) != what_counts(name, git("show", f"HEAD:{name}")):
            return f"{git('rev-parse', '--short=7', 'HEAD').decode().strip()}+"
    return git("rev-parse", "--short=7", "HEAD").decode().strip()


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
    """The diffs of a patch, without its message and git's version; all of it where no diff
    begins."""
    start = text.find("\ndiff --git ")
    if start < 0:
        return text
    body = text[start + 1 :]
    return re.sub(r"\n-- \n[^\n]*\n?\s*\Z", "\n", body)


def _code(text: str) -> str:
    """C without comments, summaries of workloads, indentation and empty lines."""
    bare = _C_SUMMARY.sub("", _C_COMMENT.sub(lambda match: match[1] or " ", text))
    lines = (line.strip() for line in bare.splitlines())
    return "\n".join(line for line in lines if line)
