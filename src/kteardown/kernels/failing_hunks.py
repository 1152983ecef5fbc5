"""Which hunks of a series do not apply to a source tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kteardown.kernels import apply_patches
from kteardown.kernels.toolchain import capture

_FILE = re.compile(r"^Applying patch (.+) with \d+ rejects?\.\.\.$")
_HUNK = re.compile(r"^Rejected hunk #(\d+)\.$")
_WHOLE = re.compile(
    r"^error: (.+): (No such file or directory|already exists in working directory|does not exist in index)$"
)


@dataclass(frozen=True)
class FailingHunk:
    """One hunk that a source does not take; ``number`` is 0 if the whole file is not as it should be."""

    patch: str
    file: str
    number: int
    text: str

    def lines(self) -> list[str]:
        """Return the hunk under the name of its patch and file."""
        number = f", hunk {self.number}" if self.number else ""
        return [f"{self.patch}: {self.file}{number}", *(f"  {line}" for line in self.text.splitlines())]


@dataclass(frozen=True)
class FailingSeries:
    """The hunks of a series that fail on one source, out of how many."""

    hunks: tuple[FailingHunk, ...]
    total: int
    present: int
    """How many patches of the series the source already has."""
    there: tuple[str, ...]
    """Files that the series adds, and that the source has."""


def failing_hunks(tree: Path, patches: Sequence[Path]) -> FailingSeries:
    """Apply ``patches`` to copies of the files of ``tree``, hunk by hunk, and return which hunks fail."""
    found: list[FailingHunk] = []
    total = present = 0
    with TemporaryDirectory(prefix="kteardown-") as work:
        folder = Path(work)
        for patch in patches:
            hunks = apply_patches.hunks_of(patch)
            total += sum(map(len, hunks.values()))
            for name, _ in apply_patches.files_in(patch):
                if (tree / name).is_file() and not (folder / name).exists():
                    (folder / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(tree / name, folder / name)
            done = _git_apply(folder, "--reverse", "--check", str(patch))
            if done.returncode == 0:
                present += 1
                found += [FailingHunk(patch.name, name, 0, "already there") for name in hunks]
                continue
            done = _git_apply(folder, "--reject", str(patch))
            if done.returncode:
                found += _rejected(done.stderr, patch.name, hunks)
    added = [name for patch in patches for name in apply_patches.added_by(patch)]
    return FailingSeries(
        tuple(found), total, present, tuple(name for name in added if (tree / name).exists())
    )


def _git_apply(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    # Inside a repository, git would take the paths as relative to its top and silently skip them.
    environment |= {"GIT_CEILING_DIRECTORIES": str(folder.parent), "LC_ALL": "C"}
    return capture(["git", "apply", "--whitespace=nowarn", *options], env=environment, cwd=folder)


def _rejected(said: str, patch: str, hunks: dict[str, list[str]]) -> Iterator[FailingHunk]:
    file, any_found = "", False
    for line in said.splitlines():
        if match := _FILE.match(line):
            file = match[1]
        elif match := _HUNK.match(line):
            number, texts = int(match[1]), hunks.get(file, [])
            text = texts[number - 1] if number <= len(texts) else ""
            any_found = True
            yield FailingHunk(patch, file, number, text)
        elif match := _WHOLE.match(line):
            any_found = True
            there = match[2].startswith("already")
            reason = "there is such a file already" if there else "there is no such file"
            for text in hunks.get(match[1], [""]):
                yield FailingHunk(patch, match[1], 0, f"{reason}\n{text}")
    if not any_found:
        yield FailingHunk(patch, "", 0, said.strip())
