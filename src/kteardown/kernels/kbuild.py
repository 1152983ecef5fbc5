"""Configure and compile one source tree with tuxmake's native runtime."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kteardown.errors import BuildError
from kteardown.kernels import cache_folder
from kteardown.model.arch import ARCHITECTURES, Arch
from kteardown.progress import Reporter

BUILD = "build"
"""The build folder, inside the source tree.

Kbuild refers to a source tree that is the parent of the build folder by a relative path
(srctree = ..), so that no folder name gets into the image.
"""

# Equal sources make equal images: the image must not depend on the time, the user or the host.
_ENVIRONMENT = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 2026",
    "KBUILD_BUILD_USER": "kteardown",
    "KBUILD_BUILD_HOST": "kteardown",
    "KBUILD_BUILD_VERSION": "1",
}
# A line table, for the source lines of a stack. tuxmake's own default contains the name of the folder.
_FLAGS = "-g1 -fdebug-prefix-map={build}=."
_CCACHE_SIZE = "1G"
# A file of kernel/ or fs/ takes twice as long as one of drivers/acpi/, the archives before the link take no
# time, and Kbuild compiles them in this order. Measured with 6.12, the base configuration and two jobs.
_TIME_OF_STEPS = (
    *((0.0, 0.0), (0.05, 0.024), (0.1, 0.07), (0.2, 0.19), (0.3, 0.345), (0.4, 0.505), (0.5, 0.63)),
    *((0.6, 0.73), (0.7, 0.805), (0.8, 0.9), (0.85, 0.94), (0.92, 0.946), (1.0, 1.0)),
)
_STEP = re.compile(r"^\s+[A-Z][A-Z0-9]*(?: \[M\])?\s+(\S+)")
_ERROR = re.compile(
    r"\berror\b|undefined reference|No rule to make target|No such file|\*\*\*", re.IGNORECASE
)

_THROUGH_CCACHE = """#!/bin/sh
# With CCACHE_DEPEND ccache does not see what assembly includes by .incbin. The kernel in a bzImage
# is such a file: if only its contents differ, and not its size, ccache returns another kernel.
case "$*" in *.S) exec {compiler} "$@" ;; esac
exec {ccache} {compiler} "$@"
"""


@dataclass(frozen=True)
class Tree:
    """A source tree that contains its build folder; logs and tuxmake's metadata are written to ``logs``."""

    path: Path
    logs: Path
    arch: Arch
    objects: Path | None = None
    """Where ccache keeps what it compiles, for a tree whose files may have been compiled before."""

    @property
    def build(self) -> Path:
        """The build folder."""
        return self.path / BUILD

    @property
    def image(self) -> Path:
        """The path of the bootable image after a build."""
        return self.build / ARCHITECTURES[self.arch].image


def configure(tree: Tree, wanted: str, reporter: Reporter) -> None:
    """Write ``.config``: tinyconfig, overridden by the lines ``wanted``, completed by ``olddefconfig``.

    Raises BuildError if Kconfig fails.
    """
    tree.build.mkdir(exist_ok=True)
    fragment = tree.build / "wanted.config"
    fragment.write_text(wanted)
    options = ["--kconfig", "tinyconfig", "--kconfig-add", str(fragment), "config"]
    with reporter.task("Configuring") as task:
        for number, line in enumerate(_tuxmake(tree, "config", options, reporter), 1):
            task.update(number, line.strip())


def compile_tree(tree: Tree, title: str, expected_steps: int, whole: int, reporter: Reporter) -> int:
    """Compile what is out of date and return the number of compile steps.

    ``expected_steps`` only scales the progress. Once more steps were taken, ``whole`` is used, the steps
    of a whole kernel: a patch to one header can recompile everything. If all is compiled from the beginning,
    the progress is the share of the time. Raises BuildError with the errors of the compiler.
    """
    steps, everything = 0, expected_steps == whole
    with reporter.task(title, total=expected_steps) as task:
        for line in _tuxmake(tree, "default", ["default"], reporter):
            step = _STEP.match(line)
            if step:
                steps += 1
                total = expected_steps if steps <= expected_steps else max(steps, whole)
                done = total * time_share(steps / total) if everything else steps
                task.update(done, step[1], total=total)
    return steps


def time_share(steps: float) -> float:
    """Return the share of its time that a whole kernel has taken at this share of its compile steps."""
    place = max(1, bisect_left(_TIME_OF_STEPS, (steps,)))
    (before, begin), (after, end) = _TIME_OF_STEPS[place - 1 : place + 1]
    return begin + (end - begin) * (steps - before) / (after - before)


def error_lines(log: str, most: int = 12) -> list[str]:
    """Return up to ``most`` lines of a build log with errors.

    Errors of make are returned only if there are no others, the end of the log only without any error.
    """
    lines = [line.rstrip() for line in log.splitlines() if _ERROR.search(line)]
    not_of_make = [line for line in lines if not line.lstrip().startswith("make")]
    return (not_of_make or lines or log.splitlines()[-most:])[:most]


def _tuxmake(tree: Tree, step: str, options: list[str], reporter: Reporter) -> Iterator[str]:
    output = tree.logs / step
    output.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "tuxmake", "--runtime", "null", "--verbose", "--fail-fast"]
    argv += ["--directory", str(tree.path), "--build-dir", str(tree.build), "--output-dir", str(output)]
    argv += ["--target-arch", tree.arch, "--jobs", str(os.cpu_count() or 1)]
    flags = {"KCFLAGS": _FLAGS.format(build=tree.build)}
    for key, value in {**_ENVIRONMENT, **flags}.items():
        argv += ["--environment", f"{key}={value}"]
    argv += options
    reporter.command(argv)
    with _running(argv, {**os.environ, **_ccache(tree)}) as process:
        assert process.stdout is not None
        yield from process.stdout
    if process.returncode:
        text = (output / "build.log").read_text(errors="replace") if (output / "build.log").exists() else ""
        if "No space left on device" in text:
            raise cache_folder.disk_full(tree.path)
        raise BuildError(
            "\n".join(["the kernel did not build:", *(f"  {line}" for line in error_lines(text))]),
            hint="fix the first error; if it is not in a patch, check the tools with `kteardown doctor`.",
        )


def _ccache(tree: Tree) -> dict[str, str]:
    """Return the environment in which every compiler of ``tree`` is ccache; empty if ccache is not installed.

    Scripts with the names of the compilers come first in the path. tuxmake's own wrapper changes the command
    lines instead, and Kbuild recompiles every object whose command line has changed.
    """
    program = shutil.which("ccache")
    if program is None or tree.objects is None:
        return {}
    names = tree.objects / "bin"
    names.mkdir(parents=True, exist_ok=True)
    for compiler in ("gcc", *(arch.compiler for arch in ARCHITECTURES.values())):
        if real := shutil.which(compiler):
            script = names / f".{compiler}.{os.getpid()}"
            script.write_text(_THROUGH_CCACHE.format(ccache=program, compiler=real))
            script.chmod(0o755)
            # Builds that run at the same time use it.
            script.replace(names / compiler)
    os.utime(tree.objects)
    return {
        "PATH": f"{names}{os.pathsep}{os.environ['PATH']}",
        "CCACHE_DIR": str(tree.objects),
        "CCACHE_MAXSIZE": _CCACHE_SIZE,
        # Compare the text of all headers instead of the preprocessor's output: a first compilation
        # takes 8% longer instead of 40%.
        "CCACHE_DEPEND": "1",
        "CCACHE_NOHASHDIR": "1",
    }


@contextmanager
def _running(argv: list[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Run ``argv`` in its own process group, which is killed if the block ends before the process."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        yield process
        process.wait()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert process.stdout is not None
        process.stdout.close()
