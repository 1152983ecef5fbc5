"""The programs that a build needs: whether they are there, and which compiler it is."""

from __future__ import annotations

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
    """Run a short command to its end with its output captured; its exit status is the caller's to judge."""
    stdin = subprocess.DEVNULL if text_in is None else None
    return subprocess.run(
        argv, check=False, capture_output=True, text=True, errors="replace", env=env, cwd=cwd,
        stdin=stdin, input=text_in,
    )  # fmt: skip


def compiler_version(arch: Arch) -> str:
    """First line of the compiler's ``--version``. Raises LabError where there is no compiler."""
    compiler = ARCHITECTURES[arch].compiler
    if not shutil.which(compiler):
        raise missing([compiler], [ARCHITECTURES[arch].compiler_package])
    return capture([compiler, "--version"]).stdout.splitlines()[0]


def need_build_tools(arch: Arch) -> None:
    """Raise LabError naming every program and header that a kernel build would miss."""
    wanted = {**_PACKAGES, ARCHITECTURES[arch].compiler: ARCHITECTURES[arch].compiler_package}
    absent = {tool: package for tool, package in wanted.items() if not shutil.which(tool)}
    # objtool, a program of the build, reads the objects through libelf.
    if not absent and not _has_header("gelf.h"):
        absent["gelf.h"] = "libelf-dev"
    if absent:
        raise missing(sorted(absent), sorted(set(absent.values())))


def missing(tools: Sequence[str], packages: Sequence[str]) -> MissingError:
    """The error for absent programs, with the packages that have them."""
    return MissingError(f"missing on this machine: {', '.join(tools)}", packages)


def _has_header(name: str) -> bool:
    return capture(["gcc", "-E", "-x", "c", "-"], text_in=f"#include <{name}>\n").returncode == 0
