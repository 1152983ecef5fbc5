"""The lines that a series changes, and the options that they are compiled with."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from kteardown.kernels import git

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_DIRECTIVE = re.compile(r"^\s*+#\s*+(\w++)(.*)$")
_NOT_CODE = re.compile(r"\s*(?:$|//|/?\*|#)")
_SYMBOL = re.compile(
    r"(?:defined\s*+(?:\(\s*+)?|IS_ENABLED\(|IS_BUILTIN\(|IS_REACHABLE\(|^\s*+)CONFIG_(\w+)"
)


def changed_hunks(before: str, after: str) -> list[tuple[range, range]]:
    """Return the numbers of the lines that differ by more than blanks, before and after, by
    hunk."""
    with TemporaryDirectory(prefix="kteardown-changed-") as name:
        old = Path(name) / "before"
        new = Path(name) / "after"
        old.write_text(before, encoding="latin-1")
        new.write_text(after, encoding="latin-1")
        options = ("--no-index", "--unified=0", "--ignore-all-space", "--histogram")
        diff = git.run("diff", *options, str(old), str(new)).text
    hunks = []
    for hunk in _HUNK.finditer(diff):
        first, count, new_first, new_count = (int(part) if part else 1 for part in hunk.groups())
        hunks.append((range(first, first + count), range(new_first, new_first + new_count)))
    return hunks


def changed_lines(before: str, after: str) -> tuple[list[int], list[int]]:
    """Return the numbers of the lines that differ by more than blanks, before and after."""
    hunks = changed_hunks(before, after)
    removed = [number for lines, _ in hunks for number in lines]
    return removed, [number for _, lines in hunks for number in lines]


def missing_symbols(before: str, after: str, config: Mapping[str, str]) -> list[str]:
    """Return the symbols that compile what differs in a C file, if ``config`` compiles none of it.

    Empty if any changed line of code is compiled, as far as the ``#if`` lines around it say so
    plainly.
    """
    symbols: dict[str, None] = {}
    for text, numbers in zip((before, after), changed_lines(before, after), strict=True):
        lines = text.split("\n")
        around = symbols_around(lines)
        for number in numbers:
            if _NOT_CODE.match(lines[number - 1]):
                continue
            missing = [symbol for symbol in around[number - 1] if config.get(symbol, "n") == "n"]
            if not missing:
                return []
            symbols |= dict.fromkeys(missing)
    return list(symbols)


def symbols_around(lines: Sequence[str]) -> list[tuple[str, ...]]:
    """Return for each line the symbols that must be set so that it is compiled: at most 100."""
    around: list[tuple[str, ...]] = []
    every: list[tuple[str, ...]] = []
    symbols: tuple[str, ...] = ()
    for line in lines:
        directive = _DIRECTIVE.match(line) if line else None
        if directive is None:
            every.append(symbols)
            continue
        word, condition = directive.groups()
        if word in ("if", "ifdef", "ifndef"):
            plain = word != "ifndef" and not re.search(r"\|\||!", condition)
            around.append(tuple(_SYMBOL.findall(condition)) if plain else ())
        elif word in ("else", "elif") and around:
            around[-1] = ()
        elif word == "endif" and around:
            around.pop()
        symbols = tuple(symbol for level in around[:10] for symbol in level[:10])
        every.append(symbols)
    return every
