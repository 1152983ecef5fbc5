"""Build the agent: the C program that is PID 1 of every guest.

An agent with C files that are not shipped is built in the sandbox, since a compiler reads whatever
file an ``#include`` names, and a shell reads the names of the files.
"""

import functools
import os
import re
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from kteardown import sandbox, spawn
from kteardown.errors import BuildError, InputError, LabError, MissingError, failing
from kteardown.model.arch import ARCHITECTURES, Arch, host_arch
from kteardown.paths import data_dir, key_of
from kteardown.progress import Reporter
from kteardown.vm import seal

Also = Literal["", "counts", "later", "hunt"]
_GLOBAL_FUNCTION = re.compile(r"^([0-9a-f]+) T (\w+)$", re.MULTILINE)
_SOURCES = (
    "Makefile",
    "*.[ch]",
    "core/*.[ch]",
    "lib/*.[ch]",
    "workloads/*.[ch]",
    "workloads/*/*.[ch]",
)
_HUNT_SOURCES = ("waits/*.[ch]", "hunt/*.[ch]", "hunt/lib/*.[ch]", "hunt/kinds/*.c")
_MOST_BYTES = 10_000_000
"""Of a C file that is not shipped."""


def build_agent(
    arch: Arch, *, cache: Path, reporter: Reporter, own: Sequence[Path] = (), also: Also = ""
) -> Path:
    """Return the statically linked agent for guests of ``arch``, from ``cache`` or built into it.

    ``own``: workloads that are not in every agent (``inputs.load.own_sources``); each is a C file
    or a folder of C files. ``also``: what it does besides, a folder of ``agent/``: ``counts``
    events of the processor, waits for the work that the kernel does ``later``, or has the workload
    ``hunt``, of which ``own`` are further kinds.

    The name of the file contains a hash of everything that it is built from (sources, flags,
    compiler). The file is created atomically, so that several processes may build at the same time.
    Raises LabError if a tool, or the sandbox that ``own`` needs, is missing, or the cache cannot be
    written; InputError if a file of ``own`` cannot be read; BuildError if the sources do not
    compile.
    """
    return _built(arch, cache, reporter, *_program(own, also))


def build_machine_init(arch: Arch, *, cache: Path, reporter: Reporter) -> Path:
    """Return the first process of a real machine, which runs an agent. Raises as ``build_agent``
    does."""
    sources = _sources((), ("Makefile", "machine/*.[ch]"))
    return _built(arch, cache, reporter, sources, "kteardown-machine-init", kind="-machine-init")


def build_kinds_program(*, cache: Path, reporter: Reporter, kinds: Sequence[Path] = ()) -> Path:
    """Return the program for this host that prints the catalogue of kinds. Raises as
    ``build_agent`` does."""
    arches: tuple[Arch, ...] = get_args(Arch)
    arch = next((arch for arch in arches if arch == host_arch()), arches[0])
    return _built(arch, cache, reporter, _hunt_sources(kinds), "kteardown-kinds", kind="-kinds")


def agent_addresses(
    names: Sequence[str],
    arch: Arch,
    *,
    cache: Path,
    reporter: Reporter,
    own: Sequence[Path] = (),
    also: Also = "",
) -> list[int]:
    """Return the addresses of functions of the agent, which in guests is stripped.

    They come from the same build without ``-s``, which places the code in the same way. Raises as
    ``build_agent`` does, and LabError if a function is not there.
    """
    symbols = "LDFLAGS=-static -Wl,--build-id=none"
    with_symbols = _built(arch, cache, reporter, *_program(own, also), symbols, kind="-symbols")
    if shutil.which("nm") is None:
        raise MissingError("nm is not installed", ["binutils"])
    addresses = _global_functions(with_symbols)
    absent = [name for name in names if name not in addresses]
    if absent:
        raise LabError(
            f"the agent lacks the functions {', '.join(absent)}",
            hint=(
                "restore agent/core: the coverage plugin needs the addresses of these functions."
            ),
        )
    return [addresses[name] for name in names]


@functools.cache
def _global_functions(program: Path) -> dict[str, int]:
    """Return the addresses of the functions of ``program``, whose path has a hash of its
    contents."""
    text = sandbox.capture(["nm", str(program)], [program])
    return {name: int(address, 16) for address, name in _GLOBAL_FUNCTION.findall(text)}


def _built(
    arch: Arch,
    cache: Path,
    reporter: Reporter,
    files: dict[Path, Path],
    program: str,
    *variables: str,
    kind: str = "",
) -> Path:
    native = host_arch() == arch
    architecture = ARCHITECTURES[arch]
    compilers = ("gcc", "cc") if native else (architecture.compiler,)
    compiler = next(filter(None, map(shutil.which, compilers)), None)
    if compiler is None:
        raise MissingError(
            f"no C compiler for {arch} programs is installed ({compilers[0]})",
            ("gcc", "libc6-dev") if native else architecture.agent_packages,
        )
    shipped = os.path.abspath(data_dir("agent"))
    user_files = [
        file for file in files.values() if not Path(os.path.abspath(file)).is_relative_to(shipped)
    ]
    if user_files:
        _need_sandbox(user_files)
    with seal.building(cache, "the agent"):
        # Read once, so that the same contents are hashed and built.
        sources = {
            path: _read(file) if file in user_files else file.read_bytes()
            for path, file in files.items()
        }
        version = _version(compiler)
        texts = (f"{path} {len(content)}\n".encode() + content for path, content in sources.items())
        agent = cache / "agent" / f"{arch}-{key_of(version + b''.join(texts))}{kind}"
        if seal.is_intact(agent, reporter):
            return agent
        make = shutil.which("make")
        if make is None:
            raise MissingError("cannot build the agent: make is not installed", ["make"])
        # make cannot quote names with blanks: therefore the path of the folder is not an argument.
        jobs = f"--jobs={len(os.sched_getaffinity(0))}"
        target = f"build/{program}"
        argv = [
            make,
            "--silent",
            jobs,
            f"CC={Path(compiler).name}",
            "BUILD=build",
            target,
            *variables,
        ]
        error = BuildError(
            f"the agent did not build with {compiler}",
            hint=(
                "fix the first error above in agent/; if a header or library is missing, install "
                "libc6-dev."
            ),
        )
        confined = bool(user_files) and not sandbox.problem()
        with reporter.task(f"Building {program} for {arch}"):
            return seal.make(agent, sources, argv, target, reporter, error, confined=confined)


@functools.cache
def _version(compiler: str) -> bytes:
    return spawn.run([compiler, "--version"], capture_output=True, check=False).stdout


def _need_sandbox(files: Sequence[Path]) -> None:
    """Raise LabError if these files would be compiled without a sandbox, which the user has not
    permitted."""
    reason = sandbox.problem()
    if reason and not sandbox.unsafe_build:
        raise LabError(
            f"{files[0]} would be compiled without a sandbox: {reason}",
            hint="install bubblewrap: see `kteardown doctor`, and docs/safety.md.",
        )


def _read(file: Path) -> bytes:
    """Return a file that is not shipped. Raises InputError."""
    with failing(f"{file}: cannot be read", hint="check the file."):
        about = file.stat()
        place = file.resolve()
        wrong = "" if stat.S_ISREG(about.st_mode) else "it is not a file"
        if about.st_size > _MOST_BYTES:
            wrong = "it is too large"
        if not place.is_relative_to(file.parent.resolve()):
            wrong = f"it is a link to {place}"
        if wrong:
            raise InputError(
                f"{file}: cannot be read: {wrong}",
                hint=f"put a C file of at most {_MOST_BYTES:,} bytes there.",
            )
        return file.read_bytes()


def _program(user_sources: Sequence[Path], also: Also) -> tuple[dict[Path, Path], str]:
    """Return the files of an agent and its name."""
    name = f"kteardown-{also}-agent" if also else "kteardown-agent"
    if also == "hunt":
        return _hunt_sources(user_sources), name
    return _sources(user_sources, (*_SOURCES, f"{also}/*.[ch]") if also else _SOURCES), name


def _sources(user_sources: Sequence[Path], patterns: Sequence[str] = _SOURCES) -> dict[Path, Path]:
    """Return the agent's files: by their place in the folder in which it is built, where they
    are."""
    folder = data_dir("agent")
    files = {
        path.relative_to(folder): path
        for pattern in patterns
        for path in sorted(folder.glob(pattern))
    }
    for path in user_sources:
        for file in sorted(path.glob("*.[ch]")) if path.is_dir() else [path]:
            files[Path("workloads") / file.relative_to(path.parent)] = file
    return files


def _hunt_sources(kinds: Sequence[Path]) -> dict[Path, Path]:
    """Return the files of the agent with the hunt; a kind of the user's own replaces one of its
    name."""
    user_kinds = {Path("hunt/kinds") / path.name: path for path in kinds}
    return {**_sources((), (*_SOURCES, *_HUNT_SOURCES)), **user_kinds}
