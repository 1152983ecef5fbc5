"""Which functions a patch changes: the lines of code that differ, and the functions that they are in.

For certain those change whose compiled code differs from that of base (``by_code``).
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kteardown.coverage.attribute import DebugInfo, FunctionId
from kteardown.coverage.c_functions import Item, Kind, code_of, item_at, items, statement_at
from kteardown.coverage.maps import CoverageMap
from kteardown.kernels import apply_patches
from kteardown.kernels.object_changes import Functions
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
        was, stays = (any((i.kind, i.name) == (kind, name) for i in found) for found in (old, new))
        statements = dict.fromkeys(statement_at(code_after, number) for number in come)
        yield ChangedFunction(file, name, tuple(gone), tuple(come), kind, was, stays, tuple(statements))


def may_change_users(changed: Sequence[ChangedFunction]) -> bool:
    """Return whether functions that the diffs do not touch may change: those that use a macro or a struct."""
    return any(map(_has_users, changed))


def may_change_executed(changed: Sequence[ChangedFunction], coverage: CoverageMap) -> bool:
    """Return whether these may be functions of ``coverage``; what a C file defines is used only there."""
    files = {function.file for function in coverage.functions}
    return any(_has_users(one) and (one.file.endswith(".h") or one.file in files) for one in changed)


def _has_users(one: ChangedFunction) -> bool:
    kind = one.kind == "macro" or one.name.startswith(("struct ", "union ", "enum "))
    return kind and one.exists_before


def by_code(
    changed: Sequence[ChangedFunction], functions: Functions, info: DebugInfo
) -> tuple[ChangedFunction, ...]:
    """Return ``changed``, what the diffs change, as the code of the kernels says.

    A function whose code is that of base is left out. If the diffs change a macro or a struct, the other
    functions whose code differs are added: they use it. ``functions`` differ, by their objects; ``info`` is
    of the variant.
    """
    every = {name for names in functions.values() for name in names}
    differing = {
        function
        for function in info.named(every)
        for name, names in functions.items()
        # Sources of a folder may be compiled as one object; a header is compiled into any.
        if function.name in names
        and (
            function.file.endswith(".h") or PurePosixPath(function.file).parent == PurePosixPath(name).parent
        )
    }
    own = {FunctionId(one.file, one.name): one for one in changed if one.kind == "function"}
    unchanged = info.named({function.name for function in own}) - differing
    kept = [one for one in changed if FunctionId(one.file, one.name) not in unchanged]
    if not may_change_users(changed):
        return tuple(kept)
    users = sorted(differing - own.keys())
    return (*kept, *(ChangedFunction(user.file, user.name, (), ()) for user in users))
