"""Which hunks of a series a source does not take, and which of its patches the source has."""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from unidiff.patch import Hunk

from kteardown.kernels import apply_patches
from kteardown.kernels.hunk_places import block_of, sides_of, text_of
from kteardown.kernels.series import number_of
from kteardown.patches.present import present_hunks
from kteardown.patches.tried_source import FailingHunk, How, TriedSource

# What git apply --reject prints.
_FILE = re.compile(r"^Applying patch (.+) with \d+ rejects?\.\.\.$")
_HUNK = re.compile(r"^Rejected hunk #(\d+)\.$")
_WHOLE = re.compile(
    r"^error: (.+): (No such file or directory|already exists in working directory"
    r"|does not exist in index)$"
)

_ONLY_REMOVES = (
    "has none of the lines that this change removes: it has the change already, or never had them"
)


def failing_hunks(attempt: TriedSource, tree: Path, patches: Sequence[Path]) -> TriedSource:
    """Apply ``patches`` to copies of the files of ``tree``, hunk by hunk, and return which hunks
    fail, and which the tree has already.

    They are those of ``attempt``, which is returned with them.
    """
    failing: list[FailingHunk] = []
    series = apply_patches.read_series(tree, patches)
    files = apply_patches.touched(tree, series)
    hunks = [patch.hunks() for patch in series]
    present = present_hunks(series, files, hunks)
    with TemporaryDirectory(prefix="kteardown-") as work:
        folder = Path(work)
        apply_patches.copy_files(files, folder)
        for number, patch in enumerate(series, 1):
            if number in present.patches:
                continue
            fails = _failing(folder, patch, hunks[number - 1])
            failing += [f for f in fails if (number, f.file, f.number) not in present.hunks]
            apply_patches.check_links(folder, patch)
    added = dict.fromkeys(name for patch in series for name in patch.names if name in patch.created)
    merged = tuple(name for name in added if os.path.lexists(tree / name))
    how: How = "already there" if len(present.patches) == len(patches) else "fails"
    adds = any(
        hunk.added for of_patch in hunks for of_file in of_patch.values() for hunk in of_file
    )
    return replace(
        attempt,
        how=how,
        reason="" if adds else _ONLY_REMOVES,
        failing=tuple(failing),
        # A renamed file has no hunk.
        hunks=sum(max(len(of_file), 1) for of_patch in hunks for of_file in of_patch.values()),
        merged=merged,
        present=_numbers(patches, present.patches),
        present_hunks=len(present.hunks),
    )


def differs_in_blanks(tree: Path, patches: Sequence[Path]) -> bool:
    """Return whether hunks without a tab fit into ``tree`` only if blanks do not count."""
    is_changed = False
    for patch in apply_patches.read_series(tree, patches):
        for name, hunks in patch.hunks().items():
            text = text_of(tree / name)
            bare_text = _without_blanks(text)
            for hunk in hunks:
                if any("\t" in line.value for line in hunk):
                    return False
                block = block_of(sides_of(hunk)[0])
                bare = _without_blanks(block)
                is_changed |= len(bare.split()) > 1 and block not in text and bare in bare_text
    return is_changed


def _without_blanks(text: str) -> str:
    return re.sub(r"[ \t]+", "", text)


def _numbers(patches: Sequence[Path], present: Collection[int]) -> tuple[int, ...]:
    """Return the numbers that the mails give to those patches whose places are ``present``.

    A mail may have several diffs: it is present if they all are. Without numbers, and of several
    series, the places are returned.
    """
    numbers = [number_of(patch) for patch in patches]
    if 0 in numbers or numbers != sorted(numbers):
        return tuple(sorted(present))
    absent = {number for place, number in enumerate(numbers, 1) if place not in present}
    return tuple(dict.fromkeys(number for number in numbers if number not in absent))


def _failing(
    folder: Path, patch: apply_patches.ReadPatch, hunks: Mapping[str, Sequence[Hunk]]
) -> list[FailingHunk]:
    """Apply those hunks of ``patch`` that can be applied, and return the others and the
    misplaced."""
    texts = {name: list(map(str, of_file)) for name, of_file in hunks.items()}
    result = apply_patches.git_apply(folder, patch, "--reject", "--verbose")
    failing = [] if result.ok else list(_rejected(result.said, patch.path.name, texts))
    misplaced = apply_patches.misplaced_hunks(folder, patch, result.said)
    return failing + [
        FailingHunk(
            patch.path.name,
            wrong.file,
            wrong.number,
            f"{wrong.why}\n{texts[wrong.file][wrong.number - 1]}",
        )
        for wrong in misplaced
    ]


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
