"""A file that is generated from ``results/``: ``make`` writes it, ``check`` fails if it is
another."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(file: Path, text: Callable[[Path], str]) -> int:
    """Do what the command line asks for; ``text`` returns the content for a folder of results."""
    name = file.relative_to(ROOT)
    if sys.argv[1:] == ["make"]:
        file.write_text(text(ROOT / "results"))
        return 0
    if file.read_text() != text(ROOT / "results"):
        print(f"{name} is not what results/ gives: run scripts/{file.stem}.py make")
        return 1
    print(f"{file.stem}: {name} is what results/ gives")
    return 0
