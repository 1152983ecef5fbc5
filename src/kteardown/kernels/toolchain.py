"""The programs that a build needs: check that they are installed, and find the compiler's version."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from kteardown.errors import MissingError
from kteardown.model.arch import ARCHITECTURES, Arch

_PACKAGES = {
    "gcc": "gcc",
    "make": "make",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "perl": "perl",
    "tar": "tar",
    "xz": "xz-utils",
    "git": "git",
    "cp": "coreutils",
}


def capture(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    text_in: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a short command and capture its output. The caller must check the exit status.

    ``text_in`` is its standard input, empty by default.
    """
    stdin = subprocess.DEVNULL if text_in is None else None
    return subprocess.run(
        argv, check=False, capture_output=True, text=True, errors="replace", env=env, cwd=cwd,
        stdin=stdin, input=text_in,
    )  # fmt: skip


def compiler_version(arch: Arch) -> str:
    """Return the first line of the compiler's ``--version``. Raises MissingError if it is not installed."""
    compiler = ARCHITECTURES[arch].compiler
    if not shutil.which(compiler):
        package = ARCHITECTURES[arch].compiler_package
        raise MissingError(f"not installed on this host: {compiler}", [package])
    return capture([compiler, "--version"]).stdout.splitlines()[0]


def need_build_tools(arch: Arch) -> None:
    """Raise MissingError, which names every missing program and header, if a kernel cannot be built."""
    wanted = {**_PACKAGES, ARCHITECTURES[arch].compiler: ARCHITECTURES[arch].compiler_package}
    absent = {tool: package for tool, package in wanted.items() if not shutil.which(tool)}
    # objtool, which is built with the kernel, uses libelf.
    argv = ["gcc", "-E", "-x", "c", "-"]
    if not absent and capture(argv, text_in="#include <gelf.h>\n").returncode:
        absent["gelf.h"] = "libelf-dev"
    if absent:
        names = ", ".join(sorted(absent))
        raise MissingError(f"not installed on this host: {names}", sorted(set(absent.values())))
