"""Configure and compile one source tree with tuxmake's native runtime."""

import os
import re
import shutil
import sys
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import tuxmake

from kteardown import sandbox
from kteardown.errors import BuildError
from kteardown.kernels import cache_folder
from kteardown.kernels.source_view import BUILD, TREE
from kteardown.model.arch import ARCHITECTURES, Arch
from kteardown.progress import Reporter
from kteardown.sandbox import Limits, Mount, Running, Sandbox

# Equal sources make equal images: the image must not depend on the time, the user or the host.
_ENVIRONMENT = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 2026",
    "KBUILD_BUILD_USER": "kteardown",
    "KBUILD_BUILD_HOST": "kteardown",
    "KBUILD_BUILD_VERSION": "1",
}
# A line table, for the source lines of a stack. tuxmake's own default contains the name of the folder.
_FLAGS = "-g1 -fdebug-prefix-map={build}=."
_CCACHE_SIZE = "256M"
_LOG_BYTES = 64 << 20
# Where a program in the sandbox sees the folders beside the tree.
_OUTPUT, _COMPILERS, _OBJECTS = Path("/output"), Path("/compilers"), Path("/objects")
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
    """A source tree, and the folders in ``scratch`` for what is built; logs are written to ``logs``."""

    scratch: Path
    view: Sequence[Mount] | None
    """What shows the source in the sandbox; None if the tree is in ``scratch`` and there is no sandbox."""
    logs: Path
    arch: Arch
    objects: Path | None = None
    """Where ccache keeps what it compiles, for a tree whose files may have been compiled before."""
    limits: Limits = field(default_factory=Limits)

    @property
    def path(self) -> Path:
        """The source tree, as the programs of the build see it."""
        return self.scratch / "tree" if self.view is None else TREE

    @property
    def build(self) -> Path:
        """The build folder, which is in the tree, or appears there in the sandbox."""
        return self.scratch / "tree" / BUILD if self.view is None else self.scratch / BUILD

    @property
    def image(self) -> Path:
        """The path of the bootable image after a build."""
        return self.build / ARCHITECTURES[self.arch].image


def configure(tree: Tree, wanted: str, reporter: Reporter) -> None:
    """Write ``.config``: tinyconfig, overridden by the lines ``wanted``, completed by ``olddefconfig``.

    Raises BuildError if Kconfig fails.
    """
    tree.build.mkdir(exist_ok=True)
    name = "wanted.config"
    (tree.build / name).write_text(wanted)
    options = ["--kconfig", "tinyconfig", "--kconfig-add", str(tree.path / BUILD / name), "config"]
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
    output = tree.scratch / "output"
    cache_folder.remove(output)
    output.mkdir()
    argv = [sys.executable, "-P", "-m", "tuxmake", "--runtime", "null", "--verbose", "--fail-fast"]
    argv += ["--directory", str(tree.path), "--build-dir", str(tree.path / BUILD)]
    argv += ["--output-dir", str(_OUTPUT if tree.view is not None else output)]
    argv += ["--target-arch", tree.arch, "--jobs", str(os.cpu_count() or 1)]
    for key, value in {**_ENVIRONMENT, "KCFLAGS": _FLAGS.format(build=tree.path / BUILD)}.items():
        argv += ["--environment", f"{key}={value}"]
    argv += options
    reporter.command(argv)
    try:
        with _running(argv, tree, output) as (process, lines):
            yield from lines
    finally:
        log = _end_of(output / "build.log")
        (tree.logs / step).mkdir(parents=True, exist_ok=True)
        (tree.logs / step / "build.log").write_text(log)
    if process.returncode:
        if "No space left on device" in log:
            raise cache_folder.disk_full(tree.scratch)
        raise BuildError(
            "\n".join(["the kernel did not build:", *(f"  {line}" for line in error_lines(log))]),
            hint="fix the first error; if it is not in a patch, check the tools with `kteardown doctor`.",
        )


@contextmanager
def _running(argv: list[str], tree: Tree, output: Path) -> Iterator[Running]:
    """Run tuxmake in the sandbox, or without it if ``tree`` has no view."""
    compilers = tree.scratch / "compilers"
    through = _write_compilers(compilers) if tree.objects is not None else False
    if tree.view is None:
        ours = _ccache(compilers, tree.objects) if through else {}
        box = Sandbox(limits=tree.limits, confined=False)
        with box.running(argv, {**os.environ, **ours}, tree.scratch) as running:
            yield running
        return
    site = Path(tuxmake.__file__).parents[1]
    mounts = [*sandbox.python_folders(), Mount(site, site), *tree.view]
    mounts += [Mount(tree.build, TREE / BUILD, writable=True), Mount(output, _OUTPUT, writable=True)]
    if through and tree.objects is not None:
        mounts += [Mount(compilers, _COMPILERS), Mount(tree.objects, _OBJECTS, writable=True)]
    box = Sandbox(mounts, tree.limits)
    environment = _ccache(_COMPILERS, _OBJECTS) if through else {}
    environment |= {} if site.is_relative_to(sys.prefix) else {"PYTHONPATH": str(site)}
    with box.running(argv, environment, TREE) as running:
        yield running


def _end_of(path: Path) -> str:
    """Return the end of a log, which may be as large as the sandbox allows; empty if there is none."""
    with suppress(FileNotFoundError), path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _LOG_BYTES))
        return stream.read(_LOG_BYTES).decode(errors="replace")
    return ""


def _write_compilers(folder: Path) -> bool:
    """Write scripts with the names of the compilers that call ccache; return False if it is not installed.

    The scripts come first in the path. tuxmake's own wrapper changes the command lines instead, and Kbuild
    recompiles every object whose command line has changed.
    """
    program = shutil.which("ccache")
    if program is None:
        return False
    cache_folder.remove(folder)
    folder.mkdir()
    folder.chmod(0o755)
    for compiler in ("gcc", *(arch.compiler for arch in ARCHITECTURES.values())):
        if real := shutil.which(compiler):
            script = folder / compiler
            script.write_text(_THROUGH_CCACHE.format(ccache=program, compiler=real))
            script.chmod(0o755)
    return True


def _ccache(compilers: Path, objects: Path | None) -> dict[str, str]:
    """Return the environment in which every compiler is ccache, with its cache in ``objects``."""
    return {
        "PATH": f"{compilers}{os.pathsep}{os.environ['PATH']}",
        "CCACHE_DIR": str(objects),
        "CCACHE_MAXSIZE": _CCACHE_SIZE,
        # Compare the text of all headers instead of the preprocessor's output: a first compilation
        # takes 8% longer instead of 40%.
        "CCACHE_DEPEND": "1",
        "CCACHE_NOHASHDIR": "1",
    }
