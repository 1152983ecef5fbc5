"""Checks the form of the shipped series, as a maintainer would before reading them.

    series_form.py [--source SOURCE]... [--build NAME]... [SERIES...]

For each source that a series applies to:

- ``scripts/checkpatch.pl --strict`` of that source, on each patch;
- ``git am`` of the whole series;
- whether a person has signed it off: the shipped series are proposals, which a person takes over;
- the C files that it touches compile without a new warning in each of ``BUILDS``: a warning is new
  if the same file without the series does not have it.

A build of a source is configured once and kept in ``build/series-form``. Every finding is printed;
the exit status is 1 if there is one. By default all series are checked on each of ``SOURCES``.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kteardown.errors import BuildError, KteardownError, LabError
from kteardown.kernels import apply_patches, series
from kteardown.kernels.source import Source, Sources
from kteardown.patches import posted
from kteardown.paths import cache_dir
from kteardown.progress import SilentReporter

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "series-form"
SOURCES = ("debian:6.12", "debian:7.2", "debian:7.3")
_WARNING = re.compile(r"^(\S+\.[ch]):\d+(?::\d+)?: ((?:warning|error): .*)$", re.MULTILINE)
_CHECKPATCH = re.compile(r"^(?:ERROR|WARNING|CHECK):.*$", re.MULTILINE)
# Every mail of the lab has a diff without a commit, and new files need no maintainer here.
_IGNORED = "FILE_PATH_CHANGES,NO_AUTHOR_SIGN_OFF"
_UNSIGNED = "Signed-off-by: kteardown developers"
_NEWEST_CLANG = 40
_ELSEWHERE = ("arch/", "tools/")
"""Folders whose files are not compiled: of one architecture, and programs of user space."""


@dataclass(frozen=True)
class Build:
    """One way to compile: the variables of make, and the symbols that are set (``+``) or cleared
    (``-``)."""

    name: str
    make: tuple[str, ...]
    defconfig: str = "defconfig"
    fragments: tuple[str, ...] = ("base", "x86_64")
    symbols: tuple[str, ...] = ()
    tools: tuple[str, ...] = ("gcc",)


_CLANG = ("clang", "ld.lld")
"""A distribution may have them only with their version as a suffix."""
_ARM64 = ("ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-")
BUILDS = (
    Build("gcc W=1", ("ARCH=x86_64", "W=1")),
    Build("clang W=1", ("ARCH=x86_64", "W=1"), tools=_CLANG),
    Build("sparse", ("ARCH=x86_64", "C=2"), tools=("gcc", "sparse")),
    Build("one CPU", ("ARCH=x86_64",), symbols=("-SMP",)),
    Build("PREEMPT_RT", ("ARCH=x86_64",), symbols=("+EXPERT", "+PREEMPT_RT")),
    Build("arm64", _ARM64, fragments=("base", "arm64"), tools=("aarch64-linux-gnu-gcc",)),
    Build("i386", ("ARCH=i386",), "i386_defconfig", ("base",)),
)


def main(arguments: Sequence[str]) -> int:
    """Check what the command line names. Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "series", nargs="*", help="a name, folder or file; by default all that are shipped"
    )
    parser.add_argument("--source", action="append", help="such as debian:6.12; by default all")
    kinds = [build.name for build in BUILDS]
    parser.add_argument("--build", action="append", choices=kinds, help="by default all")
    chosen = parser.parse_args(arguments)
    builds = [build for build in BUILDS if build.name in (chosen.build or kinds)]
    names = chosen.series or [shipped.name for shipped in series.known_series()]
    sources = Sources(cache_dir(), SilentReporter())
    count = 0
    for spec in chosen.source or SOURCES:
        source = sources.identify(spec)
        for name in names:
            for line, is_finding in check(name, source, sources.tree(source), builds):
                print(f"{spec} {name}: {line}", flush=True)
                count += is_finding
    print(f"series form: {count} findings")
    return 1 if count else 0


def check(
    name: str, source: Source, tree: Path, builds: Sequence[Build]
) -> Iterator[tuple[str, bool]]:
    """What each check of a series on a source found, as lines, and whether each line is a
    finding."""
    backport = _backport(name, source, tree)
    if not backport:
        yield "the series is not written for this source", False
        return
    complaints = [
        f"{patch.name[:4]}: {line}" for patch in backport for line in _checkpatch(tree, patch)
    ]
    yield from _lines("checkpatch", complaints)
    refused = _git_am(tree, backport)
    yield from _lines("git am", [refused] if refused else [])
    yield _sign_off(backport), False
    for build in builds:
        needed = [tool for tool in build.tools if tool not in _CLANG]
        if missing := [tool for tool in needed if not shutil.which(tool)]:
            yield f"{build.name}: not tried, {', '.join(missing)} is not installed", False
        elif not needed:
            yield from _with_clang(build, source, tree, backport)
        else:
            yield from _lines(build.name, _new_warnings(build, source, tree, backport))


def _with_clang(
    build: Build, source: Source, tree: Path, patches: Sequence[Path]
) -> Iterator[tuple[str, bool]]:
    if llvm := _llvm(_oldest_clang(tree)):
        with_clang = replace(build, make=(*build.make, f"LLVM={llvm}"))
        yield from _lines(build.name, _new_warnings(with_clang, source, tree, patches))
    else:
        needed = f"clang {_oldest_clang(tree)} or newer, with its lld"
        yield f"{build.name}: not tried, this source needs {needed}", False


def _lines(what: str, findings: Sequence[str]) -> Iterator[tuple[str, bool]]:
    yield from ((f"{what}: {finding}", True) for finding in findings)
    if not findings:
        yield f"{what}: ok", False


def _oldest_clang(tree: Path) -> str:
    """The oldest clang that compiles a source, as its Kconfig asks for it."""
    script = tree / "scripts/min-tool-version.sh"
    environment = {**os.environ, "SRCARCH": "x86"}
    done = subprocess.run(
        ["sh", script, "llvm"], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _llvm(oldest: str) -> str:
    """The variable LLVM of make for the first clang that is not older; an empty string if there is
    none.

    A distribution has a default clang, and others with their version as a suffix.
    """
    for suffix in ("", *(f"-{major}" for major in range(_numbers(oldest)[0], _NEWEST_CLANG + 1))):
        if clang := shutil.which(f"clang{suffix}"):
            done = subprocess.run(
                [clang, "-dumpversion"], capture_output=True, text=True, check=True
            )
            if _numbers(done.stdout) >= _numbers(oldest) and shutil.which(f"ld.lld{suffix}"):
                return suffix or "1"
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _backport(name: str, source: Source, tree: Path) -> tuple[Path, ...]:
    for files in posted.resolve(name).backports:
        with tempfile.TemporaryDirectory() as folder:
            try:
                apply_patches.apply(tree, files, Path(folder), source.id)
            except BuildError:
                continue
            return files
    return ()


def _checkpatch(tree: Path, patch: Path) -> list[str]:
    command = [
        "perl",
        str(tree / "scripts/checkpatch.pl"),
        "--strict",
        "--no-tree",
        "--ignore",
        _IGNORED,
    ]
    done = subprocess.run([*command, str(patch)], capture_output=True, text=True, check=False)
    return _CHECKPATCH.findall(done.stdout)


def _sign_off(patches: Sequence[Path]) -> str:
    """What is left to do before the series can be sent: the certificate of origin is signed by a
    person."""
    if not any(_UNSIGNED in patch.read_text(errors="replace") for patch in patches):
        return "sign-off: of a person"
    command = ["git", "config", "--get", "user.name"]
    name = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    person = f"{name} may take it over" if name else "set `git config user.name` to take it over"
    return (
        f"sign-off: a proposal, {person}: `git am`, `git commit --amend --reset-author --signoff`"
    )


def _git_am(tree: Path, patches: Sequence[Path]) -> str:
    """Why ``git am`` fails on a repository of the touched files; an empty string if it does not."""
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder)
        names = [name for patch in patches for name, _ in apply_patches.files_in(patch)]
        for name in dict.fromkeys(names):
            if (tree / name).is_file():
                (repository / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(tree / name, repository / name)
        identity = ["-c", "user.name=kteardown", "-c", "user.email=kteardown@localhost"]
        git = ["git", *identity, "-C", folder]
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "base", "--allow-empty"]):
            subprocess.run([*git, *command], check=True)
        done = subprocess.run(
            [*git, "am", "-q", *map(str, patches)], capture_output=True, text=True, check=False
        )
        return (done.stderr or done.stdout).strip().splitlines()[0] if done.returncode else ""


def _new_warnings(build: Build, source: Source, tree: Path, patches: Sequence[Path]) -> list[str]:
    """The warnings and errors that the series adds to the C files that it touches."""
    linked = _linked(source, tree)
    output = _configured(build, source, linked)
    names = dict.fromkeys(name for patch in patches for name, _ in apply_patches.files_in(patch))
    with tempfile.TemporaryDirectory() as folder:
        patched = apply_patches.apply(tree, patches, Path(folder), source.id)
        touched = [
            name for name in names if name.endswith(".c") and not name.startswith(_ELSEWHERE)
        ]
        objects = list(dict.fromkeys(_object_of(name, tree) for name in touched))
        existing = [name for name in objects if (tree / f"{name[:-2]}.c").is_file()]
        before = _compiled(build, linked, output, existing)
        try:
            apply_patches.install(patched, linked)
            after = _compiled(build, linked, output, objects)
        finally:
            for name in (*patched.changed, *patched.removed):
                (linked / name).unlink(missing_ok=True)
                if (tree / name).is_file():
                    # A copy: it must be newer than the objects, and the file of the source must not
                    # change.
                    shutil.copyfile(tree / name, linked / name)
    return sorted(after - before)


def _object_of(name: str, tree: Path) -> str:
    """The object that has the code of a C file: its own, or that of a file which includes it."""
    here = Path(name)
    included = re.compile(rf'^\s*#\s*include "{re.escape(here.name)}"', re.MULTILINE)
    others = (path for path in sorted((tree / here.parent).glob("*.c")) if path.name != here.name)
    parts = (path for path in others if included.search(path.read_text(errors="replace")))
    return str(here.with_name(next(parts, here).name).with_suffix(".o"))


def _linked(source: Source, tree: Path) -> Path:
    """A tree of hard links whose files can be replaced, kept from one call to the next."""
    linked = WORK / source.slug / "tree"
    if not linked.is_dir():
        linked.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(
            tree,
            linked,
            copy_function=lambda original, link: Path(link).hardlink_to(original),
            symlinks=True,
        )
        for folder in (
            linked,
            *(path for path in linked.rglob("*") if path.is_dir() and not path.is_symlink()),
        ):
            folder.chmod(0o755)
    return linked


def _configured(build: Build, source: Source, linked: Path) -> Path:
    """The folder of a build whose headers and tools are made, kept from one call to the next."""
    output = WORK / source.slug / re.sub(r"\W+", "-", build.name)
    if (output / "prepared").exists():
        return output
    output.mkdir(parents=True, exist_ok=True)
    make = ["make", "-s", "-C", str(linked), f"O={output}", "-j2", *build.make]
    _run([*make, build.defconfig])
    with (output / ".config").open("a") as config:
        for fragment in build.fragments:
            config.write((ROOT / "kernels" / f"{fragment}.config").read_text())
        for symbol in build.symbols:
            config.write(f"CONFIG_{symbol[1:]}={'y' if symbol.startswith('+') else 'n'}\n")
    _run([*make, "olddefconfig"])
    wanted = [f"CONFIG_{symbol[1:]}=y" for symbol in build.symbols if symbol.startswith("+")]
    if missing := set(wanted) - set((output / ".config").read_text().splitlines()):
        text = f"{build.name} of {source.id}: {', '.join(missing)} cannot be set"
        raise LabError(text, hint=f"Look at {output / '.config'} for what it depends on.")
    _run([*make, "prepare"])
    (output / "prepared").touch()
    return output


def _compiled(build: Build, linked: Path, output: Path, objects: Sequence[str]) -> set[str]:
    make = ["make", "-s", "-k", "-C", str(linked), f"O={output}", "-j2", *build.make, *objects]
    done = subprocess.run(make, capture_output=True, text=True, check=False)
    messages = (done.stderr + done.stdout).replace(f"{linked}/", "")
    warnings = {f"{file}: {text}" for file, text in _WARNING.findall(messages)}
    if done.returncode and not any(": error:" in line for line in warnings):
        raise _failed(make, done.stderr)
    return warnings


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise _failed(command, done.stderr)


def _failed(command: Sequence[str], errors: str) -> LabError:
    text = f"{shlex.join(command)} failed: {errors[-800:].strip()}"
    return LabError(text, hint="Run this command by itself, and install what it asks for.")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KteardownError as error:
        print(f"series_form.py: {error.message}\n  what to do: {error.hint}", file=sys.stderr)
        sys.exit(2)
