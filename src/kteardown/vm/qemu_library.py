"""The C code that is loaded into QEMU: its plugin, which counts what a kernel executes, and ``main_loop``.

Under the instruction clock, ``main_loop`` keeps QEMU's main loop from running beside the virtual CPUs.
"""

import contextlib
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kteardown.errors import BuildError, LabError, MissingError
from kteardown.model.arch import Arch
from kteardown.paths import cache_dir, data_dir
from kteardown.progress import Reporter, SilentReporter
from kteardown.vm import seal
from kteardown.vm.agent import agent_addresses
from kteardown.vm.confinement import readable
from kteardown.vm.host import qemu_version
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


def main_loop_library(reporter: Reporter) -> Path:
    """Return ``plugins/main_loop.c`` as a library, which says why it is needed.

    Raises MissingError, BuildError, LabError.
    """
    return build_library("main_loop", cache=cache_dir(), reporter=reporter)


@contextlib.contextmanager
def preloaded(job: BootJob) -> Iterator[tuple[tuple[str, ...], tuple[int, ...]]]:
    """Yield what comes before QEMU's command for ``job``, and the descriptors that QEMU inherits.

    Raises as ``main_loop_library`` does.
    """
    if job.acceleration != "icount":
        yield (), ()
        return
    # By its descriptor, because a blank or a colon in a path would end it.
    with readable(main_loop_library(SilentReporter())) as opened:
        number = opened.fileno()
        names = [f"/dev/fd/{number}", os.environ.get("LD_PRELOAD", "")]
        yield ("env", f"LD_PRELOAD={':'.join(filter(None, names))}"), (number,)


_MARKS = (
    ("trial", "trial_run"),
    ("begin", "wl_profile_begin"),
    ("end", "wl_profile_end"),
    ("end", "profile_report"),
)
"""The agent's functions that mark trials and stretches; ``profile_report`` ends those of a whole run()."""


class CodeBlock(NamedTuple):
    """A block of instructions that the emulator translates and executes as one."""

    address: int
    inside: int
    """How often it was executed in the measured stretches of the trial."""
    outside: int
    lengths: str
    """The length of each instruction, as a hexadecimal digit."""

    def addresses(self) -> Iterator[int]:
        """Yield the address of each instruction."""
        at = self.address
        for length in self.lengths:
            yield at
            at += int(length, 16)


@dataclass(frozen=True)
class TrialBlocks:
    """What one trial executed. ``stretches``: how many measured stretches it had."""

    stretches: int
    blocks: tuple[CodeBlock, ...]


def build_plugin(arch: Arch, *, cache: Path, reporter: Reporter) -> Path:
    """Return the plugin for the host's QEMU, from ``cache`` or built into it. Raises LabError, BuildError."""
    # QEMU 9.0 refuses plugins that state version 1 of the interface; older ones do not know version 2.
    api = 2 if int(qemu_version(arch).split(".")[0]) >= 9 else 1
    return build_library("coverage", f"-DAPI={api}", cache=cache, reporter=reporter)


def plugin_arguments(
    arch: Arch, out: Path, *, cache: Path, reporter: Reporter, own: Sequence[Path] = ()
) -> tuple[str, ...]:
    """Return the plugin and its arguments for a boot whose counts go to ``out``; ``own`` as for the agent."""
    plugin = build_plugin(arch, cache=cache, reporter=reporter)
    functions = [function for _, function in _MARKS]
    addresses = agent_addresses(functions, arch, cache=cache, reporter=reporter, own=own)
    marks = (f"{kind}={address:#x}" for (kind, _), address in zip(_MARKS, addresses, strict=True))
    return (f"file={plugin}", f"out={out}", *marks)


def read_counts(out: Path) -> list[TrialBlocks]:
    """Return what the plugin wrote: the boot first, then each trial. Raises LabError if it is not whole."""
    sections: list[tuple[int, list[CodeBlock]]] = []
    ended = False
    try:
        with out.open(encoding="ascii") as lines:
            for line in lines:
                words = line.split()
                if words[0] == "trial":
                    sections.append((int(words[2]), []))
                elif words[0] == "end":
                    ended = True
                else:
                    sections[-1][1].append(
                        CodeBlock(int(words[0], 16), int(words[1]), int(words[2]), words[3])
                    )
    except OSError:
        ended = False
    if not ended:
        raise LabError(
            "QEMU wrote no counts of what the guest's kernel executed",
            hint="check that QEMU has TCG plugins (-plugin in the list of `qemu-system-x86_64 -help`).",
        )
    return [TrialBlocks(stretches, tuple(blocks)) for stretches, blocks in sections]
