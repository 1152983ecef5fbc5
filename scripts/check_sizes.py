"""Fails where a function in Python or C has more than 60 lines: a function does one thing.

A file of a package, and of its tests, has at most 420 lines. A C function is found by its braces,
which clang-format puts into the first column.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LINES = 60
FILE_LINES = 420
FOLDERS = ("bench", "src", "tests")
"""Where files have a limit."""
LIMITS = {Path("src/kteardown/pipeline.py"): 120}
"""A file with a limit of its own: the pipeline is to be read on one screen."""
Function = tuple[str, int, int]
"""Its name, its first line, and how many lines it has."""

_NAME = re.compile(r"^(?:__attribute__\(\(\w+\)\) )?(?:\w[\w *]*[ *])?(\w+)\(")


def functions(path: Path) -> Iterator[Function]:
    """Every function of a source file."""
    text = path.read_text(encoding="utf-8")
    return _python(text) if path.suffix == ".py" else _c(text)


def _python(text: str) -> Iterator[Function]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1


def _c(text: str) -> Iterator[Function]:
    """A function goes from its name, the last line in the first column before its brace, to its
    end."""
    name, first, inside = "", 0, False
    for number, line in enumerate(text.splitlines(), 1):
        if inside and line == "}":
            yield name, first, number - first + 1
            inside = False
        elif line == "{":
            inside = True
        elif not inside and (match := _NAME.match(line)):
            name = match[1]
            first = number


def too_long(path: Path) -> list[str]:
    """One message for each function in ``path`` that is too long, and for the file if it has a
    limit."""
    lines = path.read_text(encoding="utf-8").count("\n")
    most = LIMITS.get(path, FILE_LINES if path.parts[0] in FOLDERS else None)
    whole = (
        [f"{path}: has {lines} lines, more than {most}"]
        if most is not None and lines > most
        else []
    )
    return whole + [
        f"{path}:{line}: {name} has {length} lines, more than {LINES}"
        for name, line, length in functions(path)
        if length > LINES
    ]


def main() -> int:
    """Check every source file that git lists."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.py", "*.c", "*.h"],
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [path for path in map(Path, listed.stdout.splitlines()) if path.is_file()]
    messages = [message for path in paths for message in too_long(path)]
    print(
        "\n".join(messages) or f"sizes: {len(paths)} files, no function has more than {LINES} lines"
    )
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
