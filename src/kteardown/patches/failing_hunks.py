"""Which hunks of a series do not apply to a source tree."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kteardown.kernels import apply_patches

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
        series = apply_patches.read_series(tree, patches)
        apply_patches.copy_files(apply_patches.touched(tree, series), folder)
        for patch in series:
            texts = {name: list(map(str, hunks)) for name, hunks in patch.hunks().items()}
            total += sum(max(len(hunks), 1) for hunks in texts.values())  # A renamed file has no hunk.
            if apply_patches.git_apply(folder, patch, "--reverse", "--check").ok:
                present += 1
                found += [FailingHunk(patch.path.name, name, 0, "already there") for name in texts]
                continue
            done = apply_patches.git_apply(folder, patch, "--reject")
            if not done.ok:
                found += _rejected(done.said, patch.path.name, texts)
            apply_patches.check_links(folder, patch)
    added = dict.fromkeys(name for patch in series for name in patch.names if name in patch.created)
    return FailingSeries(
        tuple(found), total, present, tuple(name for name in added if os.path.lexists(tree / name))
    )


def _rejected(said: str, patch: str, hunks: dict[str, list[str]]) -> Iterator[FailingHunk]:
    file, any_found = "", False
    for line in said.splitlines():
        if match := _FILE.match(line):
            file = apply_patches.unquoted(match[1])
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
