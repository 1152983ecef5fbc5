"""The core works without each of the optional packages: they are removed in a copy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from unit.conftest import PACKAGES

ROOT = Path(__file__).parents[2]
MAIN = """
import runpy, sys
sys.path[:0] = {paths!r}
sys.argv = {argv!r}
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""
_IMPORT_ALL = """
import sys
sys.path[:0] = {paths!r}
import sources
print(len(list(sources.modules())))
"""


def copy_without(folder: Path, *packages: str) -> Path:
    """Make a copy of what git knows of this tree, without some packages, and return its folder."""
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    removed = tuple(f"src/kteardown_{package}/" for package in packages)
    for name in filter(None, names.stdout.split("\0")):
        if not name.startswith(removed):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            _link(ROOT / name, folder / name)
    return folder


def _link(file: Path, target: Path) -> None:
    if file.is_symlink():
        target.symlink_to(os.readlink(file))
        return
    try:
        target.hardlink_to(file)
    except OSError:  # Another file system.
        shutil.copy(file, target)


def run(folder: Path, text: str, **values: object) -> str:
    """Run a program with the libraries of this environment and the code of a copy; return its
    output."""
    # Without site, which would add the folder of this tree.
    libraries = [path for path in sys.path if "site-packages" in path]
    paths = [str(folder / "src"), str(folder / "tests"), *libraries]
    code = text.format(paths=paths, **values)
    done = subprocess.run(
        [sys.executable, "-P", "-S", "-c", code],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("package", PACKAGES)
def test_the_core_works_without_a_package(package: str, tmp_path: Path) -> None:
    folder = copy_without(tmp_path / "copy", package)
    assert int(run(folder, _IMPORT_ALL)) > 150
    listed = run(folder, MAIN, module="kteardown", argv=["kteardown", "--help"])
    assert "Measure a change" in listed and "try" in listed
    collected = run(
        folder,
        MAIN,
        module="pytest",
        argv=["pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests/unit"],
    )
    assert f"tests/unit/{package}/" not in collected
    assert "tests/unit/judge/test_agreement.py" in collected
    assert "error" not in collected.splitlines()[-1]
