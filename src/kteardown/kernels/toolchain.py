"""The programs that a build needs: check that they are installed, and find the compiler's
version."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from kteardown import spawn
from kteardown.errors import InputError, MissingError
from kteardown.model.arch import ARCHITECTURES, Arch, host_arch
from kteardown.paths import cache_dir

_PACKAGES = {"xz": "xz-utils", "cp": "coreutils"}
"""By the program; the package of any other has its name."""
_PROGRAMS = ("gcc", "make", "flex", "bison", "bc", "perl", "tar", "git", *_PACKAGES)


def capture(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    text_in: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a short command and capture its output. The caller must check the exit status.

    ``text_in`` is its standard input, empty by default. It runs as ``spawn.run`` does.
    """
    stdin = subprocess.DEVNULL if text_in is None else None
    return spawn.run(
        argv,
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
        env=env,
        cwd=cwd,
        stdin=stdin,
        input=text_in,
    )


def compiler_of(arch: Arch, wanted: str = "") -> str:
    """Return the compiler for kernels of ``arch``: ``wanted``, or else the default, as a name or a
    path.

    Only Debian and what is made from it has a compiler with the name of the architecture for the
    host's own. Raises InputError if ``wanted`` is no compiler, MissingError if the default is not
    installed.
    """
    architecture = ARCHITECTURES[arch]
    if wanted:
        if not re.search(r"gcc|clang", Path(wanted).name) or not shutil.which(wanted):
            raise InputError(
                f"--compiler {wanted}: there is no such compiler on this host",
                hint=(
                    f"name one of: {', '.join(installed()) or 'none is installed'}; or the path of "
                    "one."
                ),
            )
        folder_of(wanted)
        return str(Path(wanted).absolute()) if "/" in wanted else wanted
    names = (architecture.compiler, *(["gcc"] if host_arch() == arch else []))
    if compiler := next(filter(shutil.which, names), None):
        return compiler
    raise MissingError(
        f"not installed on this host: {architecture.compiler}", [architecture.compiler_package]
    )


def folder_of(compiler: str) -> Path | None:
    """Return the folder of a compiler outside of the system's, which a build must see; None for
    others.

    Raises InputError if it has other files of the user, such as the home folder for ``~/bin/gcc``.
    """
    if "/" not in compiler or (folder := Path(compiler).resolve().parent.parent).is_relative_to(
        "/usr"
    ):
        return None
    if any(
        place.resolve().is_relative_to(folder) for place in (Path.home(), Path("/usr"), cache_dir())
    ):
        raise InputError(
            f"--compiler {compiler}: a build would see all of {folder}, which has more than the "
            "compiler",
            hint="install it in a folder of its own: FOLDER/bin/gcc.",
        )
    return folder


def installed() -> list[str]:
    """Return the names of compilers with a version that are in the path, such as ``gcc-14``."""
    folders = map(Path, os.environ.get("PATH", "").split(os.pathsep))
    names = {file.name for folder in folders if folder.is_dir() for file in folder.iterdir()}
    return sorted(name for name in names if re.fullmatch(r"(gcc|clang)-\d+", name))


def compiler_version(arch: Arch, wanted: str = "") -> str:
    """Return the first line of the compiler's ``--version``. Raises as ``compiler_of`` does."""
    return capture([compiler_of(arch, wanted), "--version"]).stdout.splitlines()[0]


def need_build_tools(arch: Arch, wanted: str = "") -> None:
    """Raise MissingError, which names every missing program and header, if a kernel cannot be
    built.

    Raises InputError if ``wanted`` is no compiler.
    """
    compiler = ARCHITECTURES[arch].compiler
    with suppress(MissingError):
        compiler = compiler_of(arch, wanted)
    packages = {**_PACKAGES, compiler: ARCHITECTURES[arch].compiler_package}
    absent = {
        tool: packages.get(tool, tool) for tool in (*_PROGRAMS, compiler) if not shutil.which(tool)
    }
    # objtool, which is built with the kernel, uses libelf.
    argv = ["gcc", "-E", "-x", "c", "-"]
    if not absent and capture(argv, text_in="#include <gelf.h>\n").returncode:
        absent["gelf.h"] = "libelf-dev"
    if absent:
        names = ", ".join(sorted(absent))
        raise MissingError(f"not installed on this host: {names}", sorted(set(absent.values())))
