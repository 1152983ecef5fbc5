"""The files of the core and of all optional packages, for tests of every source."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

SRC = Path(__file__).parents[1] / "src"


def packages() -> list[Path]:
    """Return the folder of each package."""
    return sorted(path for path in SRC.glob("kteardown*") if (path / "__init__.py").is_file())


def named(file: Path) -> str:
    """Return the name of a file: of the core below its package, of an optional package with it."""
    return str(file.relative_to(SRC)).removeprefix("kteardown/")


def source_files() -> list[Path]:
    """Return every Python file."""
    return [file for package in packages() for file in sorted(package.rglob("*.py"))]


def modules() -> Iterator[ModuleType]:
    """Import every module, and yield it."""
    for package in packages():
        top = importlib.import_module(package.name)
        yield top
        for info in pkgutil.walk_packages(top.__path__, f"{package.name}."):
            if not info.name.endswith("__main__"):
                yield importlib.import_module(info.name)
