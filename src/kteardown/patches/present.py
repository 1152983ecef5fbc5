"""Which hunks of a series a source has already, exactly or in another form.

A hunk is there if its lines after the change are in the function that it is for, and its lines
before the change are not. Lines of context may differ: the nearest ones decide.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from unidiff.patch import Hunk, Line

from kteardown.kernels.apply_patches import ReadPatch
from kteardown.kernels.hunk_places import (
    NEAR_LINES,
    block_of,
    function_before,
    function_of,
    is_same_function,
    is_telling,
    places_of,
    sides_of,
    text_of,
)

_CONTEXT = (3, 2, 1)
"""Lines of context that are compared on each side, after all of them."""
_LEAST_OF_REMOVAL = 2
"""Where lines are only removed, nothing but the context says that they are gone."""
_MOST_SEARCHED = 500_000_000
"""Letters, a file counted for each of its hunks."""
_CUT = "\n\0\n"
"""In the place of lines that are not looked at."""


@dataclass(frozen=True)
class Present:
    """What a source has of a series: the numbers of whole patches, and (patch, file, hunk) of
    others."""

    patches: frozenset[int]
    hunks: frozenset[tuple[int, str, int]]
    """Of all patches. They count from 1."""


def present_hunks(
    series: Sequence[ReadPatch],
    files: Mapping[str, Path],
    hunks: Sequence[Mapping[str, Sequence[Hunk]]],
) -> Present:
    """Return what the source with ``files`` has of ``series``, whose ``hunks`` are by their file.

    What is there is taken out again, the last patch first: a patch may change what an earlier one
    added. A hunk that removes what an earlier patch adds says nothing about the source.
    """
    texts = {name: text_of(path) for name, path in files.items()}
    saying = _without_cancelled(hunks)
    present: set[tuple[int, str, int]] = set()
    searched = 0
    for number in range(len(series), 0, -1):
        for name, at, hunk in reversed(saying[number - 1]):
            text = texts.get(name, "")
            searched += len(text)
            # A patch of Linux has some hundred hunks, in files of 100 kB. One that was made to take
            # long has them in the largest file.
            undone = _without(text, hunk) if searched < _MOST_SEARCHED else None
            if undone is not None:
                texts[name] = undone
                present.add((number, name, at))
    whole = {
        number
        for number, patch in enumerate(series, 1)
        if _is_whole(
            patch, texts, [(number, name, at) in present for name, at, _ in saying[number - 1]]
        )
    }
    silent = {
        number for number, of_patch in enumerate(saying, 1) if not of_patch and hunks[number - 1]
    }
    if whole and whole | silent == set(range(1, len(series) + 1)):
        whole |= silent
    return Present(frozenset(whole), frozenset(present))


def _without_cancelled(
    hunks: Sequence[Mapping[str, Sequence[Hunk]]],
) -> list[list[tuple[str, int, Hunk]]]:
    """Return the hunks of each patch, with file and number, but those that only remove lines that
    an earlier patch adds."""
    added: dict[str, set[str]] = {}
    saying: list[list[tuple[str, int, Hunk]]] = []
    for of_patch in hunks:
        kept = [
            (name, at, hunk)
            for name, of_file in of_patch.items()
            for at, hunk in enumerate(of_file, 1)
            if hunk.added
            or not any(line.value in added.get(name, ()) for line in hunk if _removes_telling(line))
        ]
        saying.append(kept)
        for name, of_file in of_patch.items():
            added.setdefault(name, set()).update(
                line.value for hunk in of_file for line in hunk if line.is_added
            )
    return saying


def _removes_telling(line: Line) -> bool:
    return line.is_removed and is_telling(line.value)


def _is_whole(patch: ReadPatch, texts: Mapping[str, str], present: Sequence[bool]) -> bool:
    """Return whether a source has all of a patch; of a patch that only moves files, these."""
    if present:
        return all(present)
    moved = patch.created | patch.removed
    return bool(moved) and all(bool(texts.get(name)) == (name in patch.created) for name in moved)


def _without(text: str, hunk: Hunk) -> str | None:
    """Return ``text`` without the change of ``hunk``; None if it does not have this change."""
    before, after, leading, trailing = sides_of(hunk)
    added = after[leading : len(after) - trailing]
    removed = before[leading : len(before) - trailing]
    if not text.strip() or (not added and _has_many(text, removed)):
        return None
    least = 1 if added else _LEAST_OF_REMOVAL
    says_something = any(map(is_telling, added or removed))
    tried: set[tuple[int, int]] = set()
    for context in (max(leading, trailing), *_CONTEXT):
        first = max(leading - context, 0)
        last = max(trailing - context, 0)
        is_full = not first and not last
        if (first, last) in tried or (not is_full and (context < least or not says_something)):
            continue
        tried.add((first, last))
        old, new = (
            block_of(side[first : len(side) - last]) if len(side) > first + last else ""
            for side in (before, after)
        )
        place = _place(text, hunk, new, leading - first, is_full=is_full)
        if place is None:
            continue
        others = f"{text[:place]}{_CUT}{text[place + len(new) :]}"
        if old and _place(others, hunk, old, leading - first, is_full=is_full) is not None:
            return None
        return text[:place] + (old or "\n") + text[place + len(new) :]
    return None


def _has_many(text: str, removed: Sequence[str]) -> bool:
    """Return whether half of the lines that say something are in ``text``, wherever."""
    telling = list(filter(is_telling, removed))
    return 2 * sum(block_of([line]) in text for line in telling) >= max(len(telling), 1)


def _place(text: str, hunk: Hunk, block: str, leading: int, *, is_full: bool) -> int | None:
    """Return where ``block`` stands in the function that ``hunk`` is for; None if it does not.

    All lines of a hunk may also stand near its line in another function, which was renamed.
    """
    if not block:
        return None
    wanted = function_of(hunk)
    for place in places_of(text, block):
        changed = place
        for _ in range(leading):
            changed = text.find("\n", changed + 1)
        if wanted and is_same_function(wanted, function_before(text, changed)):
            return place
        line = text.count("\n", 0, place) + 1
        is_near = abs(line - hunk.target_start) <= NEAR_LINES
        if (is_full or not wanted) and (is_near or wanted == ""):
            return place
    return None
