"""Which functions a patch changes: the lines of code that differ, and the functions that they are in."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kteardown.coverage.c_functions import Item, Kind, code_of, item_at, items, statement_at
from kteardown.kernels import apply_patches
from kteardown.patches.changed_lines import changed_lines

_C_FILES = (".c", ".h")
_NOT_OF_THE_KERNEL = ("tools/", "Documentation/", "samples/", "scripts/", "usr/")


@dataclass(frozen=True)
class ChangedFunction:
    """A function that a patch changes, adds or removes, or a change of a file outside of its functions."""

    file: str
    name: str
    """Of the function, macro or declaration; empty for a file that is not C, and between declarations."""
    lines_before: tuple[int, ...]
    """The lines of code that are changed or removed, as numbered before the patch."""
    lines_after: tuple[int, ...]
    """The lines of code that are changed or added, as numbered after all patches."""
    kind: Kind = "function"
    """A macro or a declaration (a struct, a variable) is executed where it is used: no counts are known."""
    exists_before: bool = True
    exists_after: bool = True
    statements_after: tuple[tuple[int, int], ...] = ()
    """The first and last lines of the statements that ``lines_after`` are part of."""

    def __str__(self) -> str:
        return f"{self.file}:{self.name}" if self.name else self.file


def changed_functions(patches: Sequence[Path], tree: Path) -> list[ChangedFunction]:
    """Return what ``patches``, applied in order to the source ``tree``, change there.

    Comments, blank lines, indentation and ``#include`` do not count. Raises BuildError if a patch does not
    apply, InputError if a file is not a patch.
    """
    with tempfile.TemporaryDirectory(prefix="kteardown-changed-") as name:
        after = Path(name)
        patched = apply_patches.apply(tree, [patch.resolve() for patch in patches], after, tree.name)
        found: list[ChangedFunction] = []
        for file in (*patched.changed, *patched.removed):
            found += _changed_in(file, _read(tree / file), _read(after / file))
    return found


def _read(path: Path) -> str:
    return path.read_text(encoding="latin-1") if path.is_file() else ""


def _changed_in(file: str, before: str, after: str) -> Iterator[ChangedFunction]:
    removed, added = changed_lines(before, after)
    if not file.endswith(_C_FILES) or file.startswith(_NOT_OF_THE_KERNEL):
        if removed or added:
            yield ChangedFunction(file, "", tuple(removed), tuple(added), "declaration")
        return
    old, new = items(before), items(after)
    code_before, code_after = code_of(before).split("\n"), code_of(after).split("\n")
    lines: dict[tuple[Kind, str], tuple[list[int], list[int]]] = {}
    for found, numbers, code, side in ((old, removed, code_before, 0), (new, added, code_after, 1)):
        for number in numbers:
            line = code[number - 1].strip()
            if line and not line.startswith("#include"):
                item = item_at(found, number) or Item("declaration", "", number, number)
                lines.setdefault((item.kind, item.name), ([], []))[side].append(number)
    for (kind, name), (gone, come) in lines.items():
        known = (_has(old, kind, name), _has(new, kind, name))
        statements = dict.fromkeys(statement_at(code_after, number) for number in come)
        yield ChangedFunction(file, name, tuple(gone), tuple(come), kind, *known, tuple(statements))


def _has(found: Sequence[Item], kind: Kind, name: str) -> bool:
    return any(item.kind == kind and item.name == name for item in found)
