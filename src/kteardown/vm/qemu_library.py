"""Build the C code that is loaded into QEMU: its plugin, and what the instruction clock needs.

Under that clock, ``main_loop`` keeps QEMU's main loop from running beside the virtual CPUs.
"""

import contextlib
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kteardown.errors import BuildError, MissingError
from kteardown.paths import cache_dir, data_dir
from kteardown.progress import Reporter, SilentReporter
from kteardown.vm import seal
from kteardown.vm.confinement import readable
from kteardown.vm.job import BootJob

_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden")


def build_library(name: str, *flags: str, cache: Path, reporter: Reporter) -> Path:
    """Return ``plugins/NAME.c`` as a library, from ``cache`` or built into it.

    ``flags`` are arguments of the compiler. Raises MissingError without a compiler, BuildError if it does not
    build, LabError if ``cache`` cannot be written.
    """
    text = (data_dir("plugins") / f"{name}.c").read_bytes()
    content = hashlib.sha256(" ".join((platform.machine(), *flags)).encode() + text).hexdigest()[:16]
    library = cache / "plugins" / f"{name}-{content}.so"
    if seal.is_intact(library, reporter):
        return library
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise MissingError(f"cannot build {name}.c for QEMU: no C compiler is installed", ["gcc"])
    with seal.building(cache, f"{name}.c"):
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".building-", dir=library.parent) as folder:
            Path(folder, f"{name}.c").write_bytes(text)
            argv = [compiler, *_FLAGS, *flags, "-o", f"{name}.so", f"{name}.c"]
            reporter.command(argv)
            done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                raise BuildError(
                    f"{name}.c, which is loaded into QEMU, did not build:\n{done.stderr.strip()}",
                    hint="install the C library's headers: apt install libc6-dev",
                )
            seal.publish(Path(folder, f"{name}.so"), library)
    return library


class Preloaded(NamedTuple):
    """How QEMU is started with the library: the ``prefix`` of its command, the descriptors it inherits."""

    prefix: tuple[str, ...] = ()
    inherit: tuple[int, ...] = ()


def main_loop_library(reporter: Reporter) -> Path:
    """Return ``plugins/main_loop.c`` as a library, which says why it is needed.

    Raises MissingError, BuildError, LabError.
    """
    return build_library("main_loop", cache=cache_dir(), reporter=reporter)


@contextlib.contextmanager
def preloaded(job: BootJob) -> Iterator[Preloaded]:
    """Yield how to start QEMU for ``job``. Raises as ``main_loop_library`` does."""
    if job.acceleration != "icount":
        yield Preloaded()
        return
    # By its descriptor, because a blank or a colon in a path would end it.
    with readable(main_loop_library(SilentReporter())) as opened:
        number = opened.fileno()
        names = [f"/dev/fd/{number}", os.environ.get("LD_PRELOAD", "")]
        yield Preloaded(("env", f"LD_PRELOAD={':'.join(filter(None, names))}"), (number,))
