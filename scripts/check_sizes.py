"""Fail if a file is longer than 400 lines or a function longer than 60: each should do one thing."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

FILE_LINES = 400
FUNCTION_LINES = 60


def too_long(path: Path) -> list[str]:
    """Return one message for the file and for each function in ``path`` that is too long."""
    text = path.read_text(encoding="utf-8")
    found = []
    lines = text.count("\n")
    if lines > FILE_LINES:
        found.append(f"{path}: {lines} lines, more than {FILE_LINES}")
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > FUNCTION_LINES:
                    found.append(
                        f"{path}:{node.lineno}: {node.name} has {length} lines, more than {FUNCTION_LINES}"
                    )
    return found


def main() -> int:
    """Check every source file that git tracks or would add; return the exit status."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.py", "*.c", "*.h"],
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [Path(line) for line in listed.stdout.splitlines()]
    messages = [message for path in paths if path.is_file() for message in too_long(path)]
    print("\n".join(messages) or f"sizes: {len(paths)} files, none too long")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
