"""Which hunks of a series a source does not take, and which of its patches the source has."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from kteardown.kernels import apply_patches
from kteardown.patches.tried_source import FailingHunk, How, TriedSource

# What git apply --reject prints.
_FILE = re.compile(r"^Applying patch (.+) with \d+ rejects?\.\.\.$")
_HUNK = re.compile(r"^Rejected hunk #(\d+)\.$")
_WHOLE = re.compile(
    r"^error: (.+): (No such file or directory|already exists in working directory"
    r"|does not exist in index)$"
)


def failing_hunks(attempt: TriedSource, tree: Path, patches: Sequence[Path]) -> TriedSource:
    """Apply ``patches`` to copies of the files of ``tree``, hunk by hunk, and return which hunks
    fail.

    They are those of ``attempt``, which is returned with them.
    """
    failing: list[FailingHunk] = []
    total = 0
    series = apply_patches.read_series(tree, patches)
    files = apply_patches.touched(tree, series)
    present = _present(series, files)
    with TemporaryDirectory(prefix="kteardown-") as work:
        folder = Path(work)
        apply_patches.copy_files(files, folder)
        for patch in series:
            texts = {name: list(map(str, hunks)) for name, hunks in patch.hunks().items()}
            total += sum(
                max(len(hunks), 1) for hunks in texts.values()
            )  # A renamed file has no hunk.
            if patch in present:
                continue
            result = apply_patches.git_apply(folder, patch, "--reject")
            if not result.ok:
                failing += _rejected(result.said, patch.path.name, texts)
            apply_patches.check_links(folder, patch)
    added = dict.fromkeys(name for patch in series for name in patch.names if name in patch.created)
    merged = tuple(name for name in added if os.path.lexists(tree / name))
    how: How = "already there" if len(present) == len(patches) else "fails"
    numbers = tuple(number for number, patch in enumerate(series, 1) if patch in present)
    return replace(
        attempt, how=how, failing=tuple(failing), hunks=total, merged=merged, present=numbers
    )


def _present(
    series: Sequence[apply_patches.ReadPatch], files: Mapping[str, Path]
) -> list[apply_patches.ReadPatch]:
    """Return the patches that can be taken out of the tree of ``files``, the last one first."""
    present = []
    with TemporaryDirectory(prefix="kteardown-") as work:
        apply_patches.copy_files(files, Path(work))
        for patch in reversed(series):
            if apply_patches.git_apply(Path(work), patch, "--reverse").ok:
                present.append(patch)
            apply_patches.check_links(Path(work), patch)
    return present


def _rejected(output: str, patch: str, hunks: dict[str, list[str]]) -> Iterator[FailingHunk]:
    file = ""
    any_found = False
    whole_files: set[str] = set()
    for line in output.splitlines():
        if match := _FILE.match(line):
            file = apply_patches.unquoted(match[1])
        elif match := _HUNK.match(line):
            number = int(match[1])
            texts = hunks.get(file, [])
            text = texts[number - 1] if number <= len(texts) else ""
            any_found = True
            yield FailingHunk(patch, file, number, text)
        elif match := _WHOLE.match(line):
            any_found = True
            # A patch can have a file a thousand times: there is such a line for each, for all
            # hunks.
            if match[1] in whole_files:
                continue
            whole_files.add(match[1])
            exists = match[2].startswith("already")
            reason = "the file exists already" if exists else "there is no such file"
            for text in hunks.get(match[1], [""]):
                yield FailingHunk(patch, match[1], 0, f"{reason}\n{text}")
    if not any_found:
        yield FailingHunk(patch, "", 0, output.strip())
