"""Which functions a patch changes: the lines of code that differ, and the functions that they are
in.

For certain those change whose compiled code differs from that of base (``by_code``). The functions,
macros and declarations of a C file are found by its braces. This is not a parser: it needs no
preprocessor and no configuration, and it reads code that does not compile yet. It knows the forms
that the kernel uses.
"""

import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from kteardown.coverage.attribute import DebugInfo, FunctionId
from kteardown.coverage.maps import CoverageMap
from kteardown.kernels import apply_patches, build
from kteardown.kernels.object_changes import Functions
from kteardown.kernels.request import KernelImage
from kteardown.patches.changed_lines import changed_lines

Kind = Literal["function", "macro", "declaration"]

_NOT_CODE = re.compile(
    r"""//(?:\\\n|[^\n])*+|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*+"|'(?:\\.|[^'\\\n])*+'""", re.DOTALL
)
_TOKEN = re.compile(r"\w+|[^\w\s]")
_DIRECTIVE = re.compile(r"\s*+#\s*+(\w*+)\s*+(\w*+)")
_SYSCALL = re.compile(r"(COMPAT_)?SYSCALL(?:32|64)?_DEFINE\d")
# Attributes and types that have parentheses of their own.
_ATTRIBUTE = re.compile(
    r"__attribute__|__attribute|__printf|__scanf|__section|__aligned|__alloc_size|__assume_aligned|__counted_by"
    r"|__releases|__acquires|__must_hold|__no_sanitize\w*|__realloc_size|typeof|__typeof__|__nonnull"
)
_C_FILES = (".c", ".h")
_NOT_OF_THE_KERNEL = ("tools/", "Documentation/", "samples/", "scripts/", "usr/")


@dataclass(frozen=True)
class Item:
    """One function, macro or declaration outside of functions, with its first and last line."""

    kind: Kind
    name: str
    first: int
    last: int


def code_of(text: str) -> str:
    """Return ``text`` with comments and the contents of strings as blanks; lines keep their
    numbers."""

    def blank(match: re.Match[str]) -> str:
        word = match[0]
        kept = re.sub(r"[^\n]", " ", word)
        return kept if word[0] == "/" else word[0] + kept[1:-1] + word[-1]

    return _NOT_CODE.sub(blank, text)


def items(text: str) -> list[Item]:
    """Return the functions, macros and other declarations of a C file, in the order of their
    lines."""
    scanner = _Scanner()
    lines = iter(enumerate(code_of(text).split("\n"), 1))
    for number, line in lines:
        if not line:
            continue
        directive = _DIRECTIVE.match(line)
        if directive:
            last = number
            more = line
            while more.rstrip().endswith("\\"):
                last, more = next(lines, (last, ""))
            scanner.directive(directive, number, last)
        else:
            for token in _TOKEN.finditer(line):
                scanner.token(token[0], number)
    return sorted(scanner.items, key=lambda item: (item.first, item.last))


def item_at(candidates: list[Item], line: int) -> Item | None:
    """Return the smallest item that contains ``line``: a macro rather than the function around
    it."""
    containing = [item for item in candidates if item.first <= line <= item.last]
    return min(containing, key=lambda item: item.last - item.first, default=None)


def statement_at(code: Sequence[str], line: int) -> tuple[int, int]:
    """Return the first and last line of the statement that contains ``line``.

    ``code`` has the lines of a file without comments. The compiler knows a statement by one of its
    lines.
    """
    first = last = line
    while first > 1 and not _ends(code[first - 2]):
        first -= 1
    while last < len(code) and not _ends(code[last - 1]):
        last += 1
    while first < line and not code[first - 1].strip():
        first += 1
    return first, last


def _ends(line: str) -> bool:
    """Return whether no statement goes on after this line."""
    return line.rstrip().endswith((";", "{", "}", ":")) or line.lstrip().startswith("#")


class _Scanner:
    """Collects what is declared outside of braces: up to its semicolon, or to the end of a
    function."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._depth = 0
        self._at_if: list[int] = []
        """The depth at each ``#if``: every branch of it begins at the same one."""
        self._head: list[str] = []
        """What was declared so far: all before the first brace."""
        self._first = 0
        self._braces = False
        self._name = ""
        """Of the function whose body the first brace begins; empty if it begins none."""

    def directive(self, match: re.Match[str], first: int, last: int) -> None:
        """Take a line of the preprocessor."""
        word = match[1]
        if word == "define":
            self.items.append(Item("macro", match[2], first, last))
        elif word in ("if", "ifdef", "ifndef"):
            self._at_if.append(self._depth)
        elif word.startswith("el") and self._at_if:
            self._depth = self._at_if[-1]
        elif word == "endif" and self._at_if:
            self._at_if.pop()

    def token(self, token: str, line: int) -> None:
        """Take a word or a sign of line ``line``."""
        self._first = self._first or line
        if token == "{":
            self._depth += 1
            if not self._braces:
                self._braces = True
                self._name = function_name(self._head)
        elif token == "}":
            self._depth = max(self._depth - 1, 0)
        elif not self._braces:
            self._head.append(token)
        if self._depth:
            return
        if token == ";" or (token == "}" and self._name):
            kind: Kind = "function" if self._name and token == "}" else "declaration"
            self.items.append(
                Item(kind, self._name or _declared_name(self._head), self._first, line)
            )
            self._head = []
            self._first = 0
            self._braces = False
            self._name = ""


def function_name(head: Sequence[str]) -> str:
    """Return the name of the function whose definition begins with the words ``head``; empty if it
    is none.

    A system call has the name of the function that its macro makes for its body.
    """
    depth = 0
    named: list[tuple[int, str, str]] = []
    for at, token in enumerate(head):
        if token == "(":
            before = head[at - 1] if at else ""
            if depth == 0 and re.match(r"[A-Za-z_]", before) and not _ATTRIBUTE.fullmatch(before):
                named.append((at - 1, before, head[at + 1] if at + 1 < len(head) else ""))
            depth += 1
        elif token == ")":
            depth -= 1
        elif token == "=" and depth == 0:
            return ""
    # An annotation may follow directly after the parameters: void f(void) __acquires(lock).
    while len(named) > 1 and named[-1][1].startswith("__") and head[-1] == ")":
        at = named[-1][0]
        if at == 0 or head[at - 1] != ")":
            break
        named.pop()
    if not named:
        return ""
    _, name, argument = named[-1]
    call = _SYSCALL.fullmatch(name)
    if call:
        return f"__do_{'compat_' if call[1] else ''}sys_{argument}"
    # Other macros that define a function name it in their first argument: BPF_CALL_2(name, ...).
    return argument if name.isupper() and re.match(r"[a-z_]", argument) else name


def _declared_name(head: Sequence[str]) -> str:
    """Return a name for a declaration: of a struct with its kind, else the last word before its
    value."""
    called = function_name([token for token in head if token != ";"])
    if called:
        return called
    if len(head) > 1 and head[0] in ("struct", "union", "enum") and head[-1] != ";":
        return f"{head[0]} {head[1]}"
    words = list(head[: head.index("=")] if "=" in head else head)
    while words and words[-1] in ("]", ";", ")", "(", "["):
        words.pop()
    named = [word for word in words if re.match(r"[A-Za-z_]\w*$", word)]
    return named[-1] if named else ""


@dataclass(frozen=True)
class ChangedFunction:
    """A function that a patch changes, adds or removes, or a change of a file outside of its
    functions."""

    file: str
    name: str
    """Of the function, macro or declaration; empty for a file that is not C, and between
    declarations."""
    kind: Kind = "function"
    """A macro or a declaration (a struct, a variable) is executed where it is used: no counts are
    known."""
    exists_before: bool = True
    exists_after: bool = True
    statements_after: tuple[tuple[int, int], ...] = ()
    """The first and last lines of the statements that are changed or added, after all patches."""

    @property
    def id(self) -> FunctionId:
        """The function as coverage maps name it."""
        return FunctionId(self.file, self.name)

    def __str__(self) -> str:
        return f"{self.file}:{self.name}" if self.name else self.file


def changed_functions(patches: Sequence[Path], tree: Path) -> list[ChangedFunction]:
    """Return what ``patches``, applied in order to the source ``tree``, change there.

    Comments, blank lines, indentation and ``#include`` do not count. Raises BuildError if a patch
    does not apply, InputError if a file is not a patch.
    """
    with tempfile.TemporaryDirectory(prefix="kteardown-changed-") as name:
        after = Path(name)
        patched = apply_patches.apply(
            tree, [patch.resolve() for patch in patches], after, tree.name
        )
        functions: list[ChangedFunction] = []
        for file in (*patched.changed, *patched.removed):
            functions += _changed_in(file, _read(tree / file), _read(after / file))
    return functions


def _read(path: Path) -> str:
    return path.read_text(encoding="latin-1") if path.is_file() else ""


def _changed_in(file: str, before: str, after: str) -> Iterator[ChangedFunction]:
    removed, added = changed_lines(before, after)
    if not file.endswith(_C_FILES) or file.startswith(_NOT_OF_THE_KERNEL):
        if removed or added:
            yield ChangedFunction(file, "", "declaration")
        return
    old = items(before)
    new = items(after)
    code_before = code_of(before).split("\n")
    code_after = code_of(after).split("\n")
    changed: dict[tuple[Kind, str], dict[tuple[int, int], None]] = {}
    for side, numbers, code in ((old, removed, code_before), (new, added, code_after)):
        for number in numbers:
            line = code[number - 1].strip()
            if line and not line.startswith("#include"):
                item = item_at(side, number) or Item("declaration", "", number, number)
                statements = changed.setdefault((item.kind, item.name), {})
                if side is new:
                    statements[statement_at(code_after, number)] = None
    for (kind, name), statements in changed.items():
        was, stays = (any((i.kind, i.name) == (kind, name) for i in side) for side in (old, new))
        yield ChangedFunction(file, name, kind, was, stays, tuple(statements))


def may_change_users(changed: Sequence[ChangedFunction]) -> bool:
    """Return whether functions that the diffs do not touch may change: those that use a macro or a
    struct."""
    return any(map(_has_users, changed))


def may_change_executed(
    changed: Sequence[ChangedFunction], coverage: CoverageMap, users: Mapping[str, Collection[str]]
) -> bool:
    """Return whether these may be functions of ``coverage``; what a C file defines is used only
    there.

    ``users``: by header, which C files include it; one that is missing there may be included by
    any.
    """
    files = {function.file for function in coverage.functions}
    return any(
        not files.isdisjoint(
            users.get(change.file, files if change.file.endswith(".h") else (change.file,))
        )
        for change in filter(_has_users, changed)
    )


def _has_users(change: ChangedFunction) -> bool:
    used = change.kind == "macro" or change.name.startswith(("struct ", "union ", "enum "))
    return used and change.exists_before


def changed_for_certain(
    changed: Sequence[ChangedFunction], variant: KernelImage
) -> tuple[ChangedFunction, ...]:
    """Return what the diffs change, corrected by the code of ``variant`` if it is known how that
    differs."""
    functions = build.functions_of(variant)
    if functions is None:
        return tuple(changed)
    return by_code(changed, *functions, DebugInfo(variant.image.parent))


def by_code(
    changed: Sequence[ChangedFunction], functions: Functions, moved: Functions, info: DebugInfo
) -> tuple[ChangedFunction, ...]:
    """Return ``changed``, what the diffs change, as the code of the kernels says.

    A function whose code is that of base is left out. If the diffs change a macro or a struct, the
    other functions whose code differs are added: they use it. ``functions`` differ, by their
    objects; of these ``moved`` differ only in where fields are, and are left out if no macro is
    changed, unless there are no others. ``info`` is of the variant.
    """
    differing = _named(functions, info)
    changed_ids = {change.id for change in changed if change.kind == "function"}
    unchanged = info.named({function.name for function in changed_ids}) - differing
    kept = [change for change in changed if change.id not in unchanged]
    if not may_change_users(changed):
        return tuple(kept)
    if not any(change.kind == "macro" or change.name.startswith("enum ") for change in changed):
        recompiled = {
            name: [function for function in names if function not in moved.get(name, ())]
            for name, names in functions.items()
        }
        differing = _named(recompiled, info) or differing
    users = sorted(differing - changed_ids)
    return (*kept, *(ChangedFunction(user.file, user.name) for user in users))


def _named(functions: Functions, info: DebugInfo) -> set[FunctionId]:
    """Return ``functions``, which are given by the objects that they are in."""
    return {
        function
        for function in info.named({name for names in functions.values() for name in names})
        for name, names in functions.items()
        # Sources of a folder may be compiled as one object; a header is compiled into any.
        if function.name in names
        and (
            function.file.endswith(".h")
            or PurePosixPath(function.file).parent == PurePosixPath(name).parent
        )
    }
