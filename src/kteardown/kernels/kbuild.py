"""Configure and compile one source tree with tuxmake's native runtime.

The sandbox shows it with a series applied, without a copy of the tree: the folders in which a patch
adds, changes or removes a file are copied, without the folders in them; all others are those of the
cached source, read-only.
"""

import os
import re
import shutil
import sys
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import tuxmake

from kteardown import sandbox, spawn
from kteardown.errors import BuildError
from kteardown.kernels import cache_folder, toolchain
from kteardown.kernels.apply_patches import PatchedFiles, copy_patched
from kteardown.limits import Limits
from kteardown.model.arch import ARCHITECTURES, Arch, host_arch
from kteardown.paths import end_of
from kteardown.progress import Reporter
from kteardown.sandbox import Mount, Running, Sandbox

TREE = Path("/linux")
"""Where a program in the sandbox sees the tree."""
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
# A line table, for the source lines of a stack. tuxmake's own default contains the name of the
# folder.
_FLAGS = "-g1 -fdebug-prefix-map={build}=."
_LOG_BYTES = 64 << 20
# Where a program in the sandbox sees the folders beside the tree.
_OUTPUT = Path("/output")
_COMPILERS = Path("/compilers")
# A file of kernel/ or fs/ takes twice as long as one of drivers/acpi/, the archives before the link
# take no time, and Kbuild compiles them in this order. Measured with 6.12, the base configuration
# and two jobs.
_TIME_OF_STEPS = (
    *((0.0, 0.0), (0.05, 0.024), (0.1, 0.07), (0.2, 0.19), (0.3, 0.345), (0.4, 0.505), (0.5, 0.63)),
    *((0.6, 0.73), (0.7, 0.805), (0.8, 0.9), (0.85, 0.94), (0.92, 0.946), (1.0, 1.0)),
)
_STEP = re.compile(r"^\s+[A-Z][A-Z0-9]*(?: \[M\])?\s+(\S+)")
_ERROR = re.compile(
    r"\berror\b|undefined reference|No rule to make target|No such file|\*\*\*", re.IGNORECASE
)

# What gcc says of "enum { false, true }" and "typedef _Bool bool" in the kernel's own headers.
_C23 = re.compile(r"cannot use keyword .(?:false|true)|.bool. cannot be defined via .typedef")

_COMPILER = """#!/bin/sh
exec {compiler} "$@"
"""


def source_view(source: Path, patched: PatchedFiles | None, scratch: Path) -> list[Mount]:
    """Return what shows ``source`` with ``patched`` at ``TREE``; ``scratch`` gets the copied
    folders.

    The top folder is always copied: it gets the folder for the build, and merge_config.sh writes
    into it.
    """
    touched = (
        {PurePosixPath(name) for name in (*patched.changed, *patched.removed)} if patched else set()
    )
    places = {PurePosixPath()}
    for path in touched:
        # The first folder above a new one gets a place for it.
        for parent in path.parents:
            places.add(parent)
            if (source / parent).is_dir():
                break
    mounts: list[Mount] = []
    for number, place in enumerate(sorted(places, key=lambda place: len(place.parts))):
        folder = scratch / str(number)
        inner = _copy(
            source / place, folder, {path.name for path in touched if path.parent == place}
        )
        new = {path.name for path in places if path.parent == place and path != place}
        for name in (*new, *([BUILD] if not place.parts else [])):
            (folder / name).mkdir(exist_ok=True)
        mounts.append(Mount(folder, TREE / place, writable=not place.parts))
        unchanged = [place / name for name in inner if place / name not in places]
        mounts += [Mount(source / entry, TREE / entry) for entry in unchanged]
        for path in touched:
            if patched and path.parent == place and str(path) in patched.changed:
                copy_patched(patched, str(path), folder / path.name)
    # After each step, links are removed from what a program of the build can write to.
    links = scratch / "links"
    links.mkdir()
    for link in (path for path in (scratch / "0").iterdir() if path.is_symlink()):
        mounts.append(Mount(link.rename(links / link.name), TREE / link.name, link=True))
    return mounts


def _copy(source: Path, folder: Path, without: set[str]) -> list[str]:
    """Copy the files of ``source``, with their times, and make its folders; return the names of
    these."""
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    inner = []
    for entry in os.scandir(source) if source.is_dir() else ():
        if entry.is_dir(follow_symlinks=False):
            (folder / entry.name).mkdir()
            inner.append(entry.name)
        elif entry.name not in without:
            shutil.copy2(entry.path, folder / entry.name, follow_symlinks=False)
    return sorted(inner)


@dataclass(frozen=True)
class Tree:
    """A source tree, and the folders in ``scratch`` for what is built; logs are written to
    ``logs``."""

    scratch: Path
    view: Sequence[Mount] | None
    """What shows the source in the sandbox; None if the tree is in ``scratch`` and there is no
    sandbox."""
    logs: Path
    arch: Arch
    compiler: str = ""
    """As in ``KernelRequest``."""
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
    """Write ``.config``: tinyconfig, overridden by the lines ``wanted``, completed by
    ``olddefconfig``.

    Raises BuildError if Kconfig fails.
    """
    tree.build.mkdir(exist_ok=True)
    name = "wanted.config"
    (tree.build / name).write_text(wanted)
    options = ["--kconfig", "tinyconfig", "--kconfig-add", str(tree.path / BUILD / name), "config"]
    with reporter.task("Configuring") as task:
        for number, line in enumerate(_tuxmake(tree, "config", options, reporter), 1):
            task.update(number, line.strip())


def compile_tree(
    tree: Tree, title: str, expected_steps: int, all_steps: int, reporter: Reporter
) -> int:
    """Compile what is out of date and return the number of compile steps.

    ``expected_steps`` only scales the progress. After more steps, ``all_steps`` is used, those of a
    whole kernel: a patch to one header can recompile everything. If all is compiled from
    the beginning, the progress is the share of the time. Raises BuildError with the errors of the
    compiler.
    """
    steps = 0
    everything = expected_steps == all_steps
    with reporter.task(title, total=expected_steps) as task:
        for line in _tuxmake(tree, "default", ["default"], reporter):
            step = _STEP.match(line)
            if step:
                steps += 1
                total = expected_steps if steps <= expected_steps else max(steps, all_steps)
                progress = total * time_share(steps / total) if everything else steps
                task.update(progress, step[1], total=total)
    return steps


def time_share(steps: float) -> float:
    """Return the share of its time that a whole kernel has taken at this share of its compile
    steps."""
    place = max(1, bisect_left(_TIME_OF_STEPS, (steps,)))
    (before, begin), (after, end) = _TIME_OF_STEPS[place - 1 : place + 1]
    return begin + (end - begin) * (steps - before) / (after - before)


def error_lines(log: str, most: int = 12) -> list[str]:
    """Return up to ``most`` lines of a build log with errors.

    Errors of make are returned only if there are no others, the end of the log only without any
    error.
    """
    lines = [line.rstrip() for line in log.splitlines() if _ERROR.search(line)]
    not_of_make = [line for line in lines if not line.lstrip().startswith("make")]
    return (not_of_make or lines or log.splitlines()[-most:])[:most]


def _tuxmake(tree: Tree, step: str, options: list[str], reporter: Reporter) -> Iterator[str]:
    output = tree.scratch / "output"
    cache_folder.remove(output)
    output.mkdir()
    argv = spawn.python("-m", "tuxmake", "--runtime", "null", "--verbose", "--fail-fast")
    argv += ["--directory", str(tree.path), "--build-dir", str(tree.path / BUILD)]
    argv += ["--output-dir", str(_OUTPUT if tree.view is not None else output)]
    argv += ["--jobs", str(os.cpu_count() or 1)]
    for key, value in {**_ENVIRONMENT, "KCFLAGS": _FLAGS.format(build=tree.path / BUILD)}.items():
        argv += ["--environment", f"{key}={value}"]
    argv += [*options, *_choice_of_compiler(tree)]
    reporter.command(argv)
    last: deque[str] = deque(maxlen=12)
    try:
        with _running(argv, tree, output) as (process, lines):
            for line in lines:
                last.append(line)
                yield line
    finally:
        # tuxmake writes none if it does not get so far. It may be as large as the sandbox allows.
        log = end_of(output / "build.log", _LOG_BYTES) or "".join(last)
        (tree.logs / step).mkdir(parents=True, exist_ok=True)
        (tree.logs / step / "build.log").write_text(log)
    if process.returncode:
        if "No space left on device" in log:
            raise cache_folder.disk_full(tree.scratch)
        hint = (
            "fix the first error; if it is not in a patch, check the tools with `kteardown doctor`."
        )
        if _C23.search(log):
            older = [name for name in toolchain.installed() if name != tree.compiler]
            hint = (
                "this kernel is older than its compiler, which treats bool and false as keywords "
                "(C23: gcc 15 and later); give an older compiler with --compiler NAME; installed: "
                f"{', '.join(older) or 'none'}."
            )
        raise BuildError(
            "\n".join(["the kernel did not build:", *(f"  {line}" for line in error_lines(log))]),
            hint=hint,
        )


def _choice_of_compiler(tree: Tree) -> list[str]:
    """Return the options of tuxmake for it; clang also makes the programs of the build for this
    host."""
    compiler = toolchain.compiler_of(tree.arch, tree.compiler)
    # With an architecture, tuxmake names all tools with its prefix, which those of this host need
    # not have.
    native = tree.arch == host_arch() and compiler != ARCHITECTURES[tree.arch].compiler
    options = [] if native else ["--target-arch", tree.arch]
    return [*options, "--toolchain", "clang"] if "clang" in Path(compiler).name else options


def _running(argv: list[str], tree: Tree, output: Path) -> AbstractContextManager[Running]:
    """Run tuxmake in the sandbox, or without it if ``tree`` has no view."""
    compilers = tree.scratch / "compilers"
    programs = _without_ccache(os.environ["PATH"])
    _write_compilers(compilers, programs, tree)
    if tree.view is None:
        box = Sandbox(limits=tree.limits, confined=False)
        return box.running(
            argv, {**os.environ, "PATH": f"{compilers}{os.pathsep}{programs}"}, tree.scratch
        )
    site = Path(tuxmake.__file__).parents[1]
    mounts = [*sandbox.python_folders(), Mount(site, site), *tree.view]
    mounts += [
        Mount(tree.build, TREE / BUILD, writable=True),
        Mount(output, _OUTPUT, writable=True),
    ]
    if compiler_folder := toolchain.folder_of(tree.compiler):
        mounts.append(Mount(compiler_folder, compiler_folder))
    mounts.append(Mount(compilers, _COMPILERS))
    environment = {"PATH": f"{_COMPILERS}{os.pathsep}{programs}"}
    environment |= {} if site.is_relative_to(sys.prefix) else {"PYTHONPATH": str(site)}
    return Sandbox(mounts, tree.limits).running(argv, environment, TREE)


def _without_ccache(path: str) -> str:
    """Return the search path ``path`` without folders in which the names of the compilers are
    ccache.

    The makefiles of a patch can write into any folder of ccache that its build uses: its
    configuration runs commands, and what it keeps is believed. So no build has one.
    """
    places = path.split(os.pathsep)
    return os.pathsep.join(
        place for place in places if (Path(place) / "gcc").resolve().name != "ccache"
    )


def _write_compilers(folder: Path, programs: str, tree: Tree) -> None:
    """Write scripts with the names of the compilers, which call those that were chosen, from
    ``programs``.

    The scripts come first in the path: tuxmake takes no compiler by its path.
    """
    cache_folder.remove(folder)
    folder.mkdir()
    folder.chmod(0o755)
    calls: dict[str, str] = {}
    if "clang" in Path(tree.compiler).name:
        calls["clang"] = tree.compiler
    elif tree.compiler:
        native = ["gcc"] if tree.arch == host_arch() else []
        calls |= dict.fromkeys([ARCHITECTURES[tree.arch].compiler, *native], tree.compiler)
    for name, chosen in calls.items():
        if (real := shutil.which(chosen, path=programs)) and name != chosen:
            script = folder / name
            script.write_text(_COMPILER.format(compiler=real))
            script.chmod(0o755)
