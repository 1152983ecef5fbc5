"""Building the agent: the C program that is PID 1 of every guest."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kteardown.errors import BuildError, LabError, MissingError
from kteardown.model.arch import ARCHITECTURES, Arch, host_arch
from kteardown.paths import data_dir
from kteardown.progress import Reporter

_SOURCES = ("Makefile", "*.[ch]", "core/*.[ch]", "lib/*.[ch]", "workloads/*.[ch]", "workloads/*/*.[ch]")


def build_agent(arch: Arch, *, cache: Path, reporter: Reporter, own: Sequence[Path] = ()) -> Path:
    """The agent for guests of ``arch``, statically linked: from ``cache``, or built into it.

    ``own``: workloads that are not shipped; each is a C file or a folder of C files.

    The file's name has a hash of all that goes into it (sources, flags, compiler), and it appears
    whole or not at all, so that labs may build at the same time. Raises LabError where a tool is
    missing or the cache cannot be written, BuildError where the sources do not compile.
    """
    compiler = _compiler(arch)
    try:
        sources = _sources(own)
        agent = cache / "agent" / f"{arch}-{_digest(sources, compiler)}"
        if agent.is_file():
            return agent
        agent.parent.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(prefix=".building-", dir=agent.parent) as name,
            reporter.task(f"Building the agent for {arch}"),
        ):
            folder = Path(name)
            for path, content in sources.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(content)
            _make(folder, compiler, reporter)
            os.replace(folder / "build" / "kteardown-agent", agent)
    except OSError as error:
        raise LabError(
            f"building the agent in {cache}: {error.strerror}",
            hint="make room there, or point KTEARDOWN_CACHE at a folder that can be written.",
        ) from error
    return agent


def _compiler(arch: Arch) -> str:
    native, known = host_arch() == arch, ARCHITECTURES[arch]
    for name in ("gcc", "cc") if native else (known.compiler,):
        if path := shutil.which(name):
            return path
    raise MissingError(
        f"there is no C compiler that makes {arch} programs ({'gcc' if native else known.compiler})",
        ("gcc", "libc6-dev") if native else known.agent_packages,
    )


def _sources(own: Sequence[Path]) -> dict[Path, bytes]:
    """What the agent is made of, read once: what is built is what was hashed."""
    folder = data_dir("agent")
    paths = sorted(path for pattern in _SOURCES for path in folder.glob(pattern))
    sources = {path.relative_to(folder): path.read_bytes() for path in paths}
    for path in own:
        for file in sorted(path.glob("*.[ch]")) if path.is_dir() else [path]:
            sources[Path("workloads") / file.relative_to(path.parent)] = file.read_bytes()
    return sources


def _digest(sources: dict[Path, bytes], compiler: str) -> str:
    version = subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout
    digest = hashlib.sha256(version)
    for path, content in sources.items():
        digest.update(f"{path} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def _make(folder: Path, compiler: str, reporter: Reporter) -> None:
    make = shutil.which("make")
    if make is None:
        raise MissingError("make is missing, and the agent needs building", ["make"])
    # Only names without blanks: make cannot quote. Hence the working folder instead of a path.
    argv = [make, "--silent", f"CC={Path(compiler).name}", "BUILD=build"]
    reporter.command(argv)
    # The make of an outer `make demo` would pass its own flags on.
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}
    done = subprocess.run(
        argv,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BuildError(
            f"the agent did not build with {compiler}:\n{(done.stderr or done.stdout).strip()}",
            hint="fix the first error above in agent/; if a library is missing, install libc6-dev.",
        )
