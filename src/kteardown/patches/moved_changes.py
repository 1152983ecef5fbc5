"""Whether a series that was fitted into a source changes the functions that it was made for.

A merge, or a comparison of one line of context, can put a change into another function than that
of its header, or beside the same code.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from unidiff.patch import Hunk

from kteardown.kernels import apply_patches
from kteardown.kernels.hunk_places import (
    NEAR_LINES,
    block_of,
    first_line,
    is_same_function,
    is_telling,
    name_of,
    named_function,
    places_of,
    text_of,
)

_BESIDE = 12
"""Code that is added stands twice if the same lines are so near in the file."""


@dataclass(frozen=True)
class ChangedRun:
    """Consecutive lines that a patch changes, with their signs."""

    file: str
    text: str
    function: str | None
    """The first line of the function that it is in, as ``named_function`` returns it."""
    line: int
    """The line in the file after the patch."""

    @property
    def removed(self) -> list[str]:
        """The lines that are removed, without their signs."""
        return [line[1:] for line in self.text.split("\n") if line.startswith("-")]

    @property
    def added(self) -> list[str]:
        """The lines that are added, without their signs."""
        return [line[1:] for line in self.text.split("\n") if line.startswith("+")]


def moved_elsewhere(tree: Path, patches: Sequence[Path], fitted: Sequence[Path]) -> str:
    """Return which change of ``patches`` is in another place in ``fitted``, or stands twice there.

    ``fitted`` has the same patches as they apply to ``tree``. Empty if all are where they belong.
    """
    pairs = zip(
        apply_patches.read_series(tree, patches),
        apply_patches.read_series(tree, fitted),
        strict=True,
    )
    for posted, applied in pairs:
        expected: dict[tuple[str, str], list[ChangedRun]] = {}
        for run in _runs(posted):
            expected.setdefault((run.file, run.text), []).append(run)
        runs = list(_runs(applied))
        for run in runs:
            same = expected.get((run.file, run.text), [])
            text = text_of(tree / run.file)
            if same and not any(_may_be_at(run, other, text) for other in same):
                return (
                    f"{posted.path.name} changes {same[0].function!r} of {run.file}, but here "
                    f"{run.function!r}"
                )
            moved = {line for other in runs if other.file == run.file for line in other.removed}
            added = {line for line in run.added if line.strip()}
            if not added <= moved and _stands_beside(run, text):
                return f"{posted.path.name} adds to {run.file} what is there already"
    return ""


def _may_be_at(run: ChangedRun, posted: ChangedRun, text: str) -> bool:
    """Return whether ``run`` is in the function that ``posted`` is in, or in a new name of it."""
    if not posted.function or not run.function:
        return posted.function == "" or abs(run.line - posted.line) <= NEAR_LINES
    if is_same_function(posted.function, run.function):
        return True
    name = re.escape(name_of(posted.function))
    has_function = re.search(rf"^[A-Za-z_].*\b{name}\b", text, re.MULTILINE)
    return not has_function and abs(run.line - posted.line) <= NEAR_LINES


def _stands_beside(run: ChangedRun, text: str) -> bool:
    """Return whether the lines that ``run`` adds are in the file before it, near its place."""
    added = run.added
    while added and not added[-1].strip():
        added.pop()
    while added and not added[0].strip():
        added.pop(0)
    if not any(map(is_telling, added)):
        return False
    lines = (text.count("\n", 0, place) + 1 for place in places_of(text, block_of(added)))
    return any(abs(line - run.line) <= _BESIDE for line in lines)


def _runs(patch: apply_patches.ReadPatch) -> Iterator[ChangedRun]:
    for file, hunks in patch.hunks().items():
        for hunk in hunks:
            yield from _runs_of(file, hunk)


def _runs_of(file: str, hunk: Hunk) -> Iterator[ChangedRun]:
    """Yield the runs of a hunk; what its earlier lines say about the function counts, too."""
    before: list[str] = []
    line_number = hunk.target_start
    for is_context, group in groupby(hunk, key=lambda line: line.is_context):
        lines = list(group)
        if not is_context:
            function = named_function(hunk.section_header, before, first_line(lines))
            yield ChangedRun(file, "".join(map(str, lines)), function, line_number)
        after = [line.value.rstrip("\n") for line in lines if not line.is_removed]
        before += after
        line_number += len(after)
