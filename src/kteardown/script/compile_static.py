"""C that a script brings, compiled for a guest that has no libraries."""

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kteardown import sandbox
from kteardown.errors import BuildError, LabError, MissingError, failing
from kteardown.limits import Limits
from kteardown.model.arch import ARCHITECTURES, Arch, host_arch
from kteardown.progress import Reporter
from kteardown.sandbox import Mount, Sandbox

HEADERS = ("stdio.h", "stdlib.h", "unistd.h", "string.h")
"""What is included if a file does not compile without: a mail often has lost the lines with
``<``."""
_FLAGS = ("-O2", "-static", "-pthread", "-Wl,--build-id=none")
_STRICT = "-Werror=implicit-function-declaration"
_LENIENT = "-Wno-error=implicit-function-declaration"
_SOURCE = Path("/source")
_OUTPUT = Path("/output")
_LIMITS = Limits(total_s=300, output_mb=16, disk_mb=512, file_mb=256, processes=64)
_SHOWN = 12


def compile_static(
    source: Path, arch: Arch, reporter: Reporter, beside: Sequence[Path] = ()
) -> tuple[bytes, tuple[str, ...]]:
    """Return the program of the C file ``source``, and the headers that had to be added.

    ``beside`` are files in its folder that it may include; it sees no other file of the user.
    Raises BuildError if it does not compile, LabError if there is no sandbox, MissingError if there
    is no compiler.
    """
    native = host_arch() == arch
    architecture = ARCHITECTURES[arch]
    compiler = next(
        filter(None, map(shutil.which, ("gcc", "cc") if native else (architecture.compiler,))), None
    )
    packages = ("gcc", "libc6-dev") if native else architecture.agent_packages
    if compiler is None:
        raise MissingError(f"no C compiler for {arch} programs is installed", packages)
    if (reason := sandbox.problem()) and not sandbox.unsafe_build:
        raise LabError(
            f"{source.name} would be compiled without a sandbox: {reason}",
            hint=(
                "install bubblewrap (see `kteardown doctor`); or give --unsafe-build "
                "(docs/safety.md)."
            ),
        )
    with failing(f"cannot read {source}", hint="check the path, and that you may read the file."):
        text = source.read_text(errors="replace")
    program, printed = _compiled(compiler, source, beside, (_STRICT,), reporter)
    if program:
        return program, ()
    if "cannot find -l" in "".join(printed):
        raise MissingError(f"there is no static C library for {arch} programs", packages)
    has = set(re.findall(r"^[ \t]*+#[ \t]*+include[ \t]*+<([^>\n]++)>", text, re.MULTILINE))
    missing = tuple(name for name in HEADERS if name not in has)
    flags = (_LENIENT, "-w", *(word for name in missing for word in ("-include", name)))
    program, printed = _compiled(compiler, source, beside, flags, reporter)
    if program:
        return program, missing
    excerpt = [line.rstrip() for line in printed if "error" in line][:_SHOWN] or printed[:_SHOWN]
    raise BuildError(
        "\n".join([f"{source.name} did not compile:", *(f"  {line.rstrip()}" for line in excerpt)]),
        hint="fix the first error; name a header of your own with --file HEADER.",
    )


def _compiled(
    compiler: str, source: Path, beside: Sequence[Path], flags: Sequence[str], reporter: Reporter
) -> tuple[bytes, list[str]]:
    """Return the program, empty if there is none, and what the compiler printed."""
    confined = not sandbox.problem()
    with tempfile.TemporaryDirectory(prefix="kteardown-compile-") as folder:
        output = Path(folder)
        source_folder, output_folder = (
            (_SOURCE, _OUTPUT) if confined else (source.parent.absolute(), output)
        )
        mounts = [Mount(path.absolute(), _SOURCE / path.name) for path in (source, *beside)]
        mounts.append(Mount(output, _OUTPUT, writable=True))
        argv = [compiler, *_FLAGS, *flags]
        argv += ["-o", str(output_folder / "program"), str(source_folder / source.name), "-lm"]
        reporter.command(argv)
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C",
            "TMPDIR": str(output_folder),
        }
        box = Sandbox(mounts, _LIMITS, f"the compiler of {source.name}", confined=confined)
        with box.running(argv, environment, source_folder) as (process, lines):
            printed = list(lines)
        if process.returncode:
            return b"", printed
        return (output / "program").read_bytes(), printed
