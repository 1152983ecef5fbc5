"""The core works without each of the optional packages: they are removed in a copy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from unit.conftest import PACKAGES

ROOT = Path(__file__).parents[2]
_IMPORT_ALL = "import sources; print(len(list(sources.modules())))"


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


def interpreter(folder: Path) -> Path:
    """Make an environment with the libraries of this one and the code of a copy, for all processes
    that a test starts, and return its Python."""
    environment = folder / ".venv"
    venv.create(environment, symlinks=True)
    # A path that a .pth file adds is not searched for such files: the code of this tree is not
    # found.
    libraries = [path for path in sys.path if "site-packages" in path]
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "copy.pth").write_text("\n".join([f"{folder}/src", f"{folder}/tests", *libraries]))
    programs = environment / "bin"
    for program in Path(sys.executable).parent.iterdir():
        if not program.name.startswith("kteardown") and not (programs / program.name).exists():
            (programs / program.name).symlink_to(program)
    return programs / "python"


def run(python: Path, *words: str) -> str:
    """Run a program with the Python of a copy, in its folder; return its output."""
    done = subprocess.run(
        [python, "-P", *words],
        cwd=python.parents[2],
        env={
            **os.environ,
            "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("package", PACKAGES)
def test_the_core_works_without_a_package(package: str, tmp_path: Path) -> None:
    python = interpreter(copy_without(tmp_path / "copy", package))
    assert int(run(python, "-c", _IMPORT_ALL)) > 150
    listed = run(python, "-m", "kteardown", "--help")
    assert "Measure" in listed and "try" in listed
    words = ("--collect-only", "-q", "-p", "no:cacheprovider", "tests/unit")
    collected = run(python, "-m", "pytest", *words)
    assert f"tests/unit/{package}/" not in collected
    assert "tests/unit/judge/test_agreement.py" in collected
    assert "error" not in collected.splitlines()[-1]
