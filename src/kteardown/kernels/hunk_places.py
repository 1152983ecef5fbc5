"""Where the hunks of a patch belong in a file, and where they are put.

git takes the nearest place whose lines match. It does not look at the function that the header of a
hunk names: of two functions with the same lines, it may change the wrong one.

A file is a text here in which each line, also the first one, follows a newline (``text_of``). So a
block of lines is found with one search, which takes linear time whatever the file has.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from unidiff.patch import Hunk, Line

NEAR_LINES = 100
"""A hunk may lie in another function than its header names, which may have been renamed, if it is
moved by at most so many lines."""
_MOST_PLACES = 20
"""So many places of a block are looked at."""
_TELLING_LETTERS = 8
_MOVED = re.compile(r"^Checking patch (.+)\.\.\.$|^Hunk #(\d+) succeeded at (\d+) \(", re.MULTILINE)
_START = re.compile(r"[A-Za-z_](?!\w*:\s*$)")
"""As git takes the beginning of a function for C: what begins a line, but labels."""
_STARTS = re.compile(r"\n(?=[A-Za-z_](?!\w*+:[^\S\n]*+\n))")
_OUTSIDE = re.compile(r"#\s*(?:define|undef|include)\b|/\*")
"""What begins a line outside of functions, and is not the beginning of one."""
_CALL = re.compile(r"\b([A-Za-z_]\w*+)\s*+\(\s*+(\w*+)")
_KIND = re.compile(r"(?:typedef )?((?:struct|union|enum)\s+\w+)\s*\{?$")
_C_FILES = (".c", ".h")


@dataclass(frozen=True)
class Misplaced:
    """A hunk that git puts into another function than it is for; ``number`` counts from 1."""

    file: str
    number: int
    why: str


def is_telling(line: str) -> bool:
    """Return whether a line says something: it is not a brace, ``break;`` or ``return;``."""
    return sum(letter.isalnum() for letter in line) >= _TELLING_LETTERS


def text_of(path: Path) -> str:
    """Return the text of a file as the functions of this module read it; empty if there is none."""
    return f"\n{path.read_text('utf-8', errors='replace')}\n" if path.is_file() else ""


def block_of(lines: Sequence[str]) -> str:
    """Return lines as they stand in a text of ``text_of``."""
    return "\n".join(("", *lines, ""))


def places_of(text: str, block: str) -> Iterator[int]:
    """Yield where ``block`` stands in ``text``: the offsets of the newlines before it."""
    at = text.find(block)
    for _ in range(_MOST_PLACES):
        if at < 0:
            return
        yield at
        at = text.find(block, at + 1)


def function_before(text: str, offset: int) -> str:
    """Return the line that begins the function, or the declaration, that the line after ``offset``
    is in.

    ``offset`` is that of a newline.
    """
    starts = _starts(text)
    at = bisect_left(starts, offset)
    if not at:
        return ""
    start = starts[at - 1]
    return text[start + 1 : text.find("\n", start + 1)]


@lru_cache(8)
def _starts(text: str) -> list[int]:
    """Return the offsets of the newlines before the lines that begin a function."""
    return [match.start() for match in _STARTS.finditer(text)]


def name_of(line: str) -> str:
    """Return the name that the first line of a function or declaration gives to it.

    A macro that defines a function has its first argument with it: ``SYSCALL_DEFINE3(read``.
    """
    if call := _CALL.search(line):
        return f"{call[1]}({call[2]}" if call[1].isupper() or "DEFINE" in call[1] else call[1]
    if kind := _KIND.match(line):
        return " ".join(kind[1].split())
    return re.split(r"[=\[{;,]", line)[0].strip()


def is_same_function(header: str, line: str) -> bool:
    """Return whether a header, which git cuts at 80 letters, names the function that ``line``
    begins."""
    header = header.rstrip()
    return line.startswith(header) or name_of(header) == name_of(line)


def named_function(header: str, before: Sequence[str], changed: str) -> str | None:
    """Return the first line of the function that a change is in, by the ``header`` of its hunk, the
    lines of the hunk ``before`` it, and the first line that is ``changed``.

    It is empty if the change is outside of functions, and None if the hunk does not say where it
    is.
    """
    if _START.match(changed) or _OUTSIDE.match(changed):
        return ""
    header = header.rstrip()
    name = header if _START.match(header) else None
    for line in before:
        if _START.match(line):
            name = line
        elif line.startswith("}"):
            name = ""
    return name


def function_of(hunk: Hunk) -> str | None:
    """Return the function that the first change of ``hunk`` is in, as ``named_function`` does."""
    before, _, leading, _ = sides_of(hunk)
    return named_function(hunk.section_header, before[:leading], first_line(hunk))


def first_line(lines: Iterable[Line]) -> str:
    """Return the first line that is changed and not blank."""
    texts = (line.value.rstrip("\n") for line in lines if not line.is_context)
    return next((text for text in texts if text.strip()), "")


def sides_of(hunk: Hunk) -> tuple[list[str], list[str], int, int]:
    """Return the lines of ``hunk`` before and after it, and how many lines of context are first and
    last."""
    lines = [line for line in hunk if line.line_type in (" ", "+", "-")]
    before = [line.value.rstrip("\n") for line in lines if line.line_type != "+"]
    after = [line.value.rstrip("\n") for line in lines if line.line_type != "-"]
    changes = [number for number, line in enumerate(lines) if line.line_type != " "]
    if not changes:
        return before, after, 0, 0
    return before, after, changes[0], len(lines) - 1 - changes[-1]


def misplaced(folder: Path, hunks: Mapping[str, Sequence[Hunk]], output: str) -> list[Misplaced]:
    """Return the hunks of a patch that git put into another function than they are for.

    ``folder`` has the files after the patch, ``output`` is what ``git apply --verbose`` printed.
    """
    wrong: list[Misplaced] = []
    name = text = ""
    for file, number, line in _MOVED.findall(output):
        if file:
            name = file
            text = text_of(folder / file) if file in hunks and file.endswith(_C_FILES) else ""
        elif text and int(number) <= len(hunks[name]):
            why = _misplaced(text, hunks[name][int(number) - 1], int(line))
            wrong += [Misplaced(name, int(number), why)] if why else []
    return wrong


def _misplaced(text: str, hunk: Hunk, line: int) -> str:
    """Return why ``hunk`` should not be at ``line``, where git put it; empty if it may be there."""
    wanted = function_of(hunk)
    if not wanted:
        return ""
    before, after, leading, _ = sides_of(hunk)
    at = _offset_of(text, line + leading)
    actual = function_before(text, at)
    if is_same_function(wanted, actual):
        return ""
    for block, what in ((before, "it fits there, too"), (after, "that function has it already")):
        for place in places_of(text, block_of(block)):
            changed = place + len(block_of(block[:leading])) - 1
            if changed != at and is_same_function(wanted, function_before(text, changed)):
                return f"is for {wanted!r}, but git puts it into {actual!r}; {what}"
    distance = abs(line - hunk.target_start)
    if distance <= NEAR_LINES:
        return ""
    return f"is for {wanted!r}, but git puts it into {actual!r}, {distance:,} lines away"


def _offset_of(text: str, line: int) -> int:
    """Return the offset of the newline before a line, which is counted from 1."""
    offsets = _newlines(text)
    return offsets[line - 1] if 0 < line <= len(offsets) else len(text)


@lru_cache(2)
def _newlines(text: str) -> list[int]:
    return [match.start() for match in re.finditer("\n", text)]
